package console

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// findingsPage lists what is wrong, out of the shown second: it is as fresh as the overview.
type findingsPage struct {
	judging
	all    bool // also those closed within an hour
	cursor string
}

func (p *findingsPage) Name() string           { return onFindings }
func (p *findingsPage) Address(*State) Address { return Address{Page: "findings"} }
func (p *findingsPage) Refresh(*State) tea.Cmd { return nil }

func (p *findingsPage) Answer(s *State, msg tea.Msg) tea.Cmd {
	p.judging.Answer(s, msg)
	return nil
}

func (p *findingsPage) rows(s *State) []anomaly.Finding {
	if p.all {
		return s.Shown.Findings
	}
	return openFindings(s.Shown.Findings)
}

// at is the cursor's row; 0 when its finding is gone from the list.
func (p *findingsPage) at(rows []anomaly.Finding) int {
	for i := range rows {
		if rows[i].ID == p.cursor {
			return i
		}
	}
	return 0
}

func (p *findingsPage) Act(s *State, a Action) tea.Cmd {
	rows := p.rows(s)
	if a == actPanel {
		p.all = !p.all
		return nil
	}
	if len(rows) == 0 {
		s.Note = "there is no finding"
		return nil
	}
	at := p.at(rows)
	switch {
	case a == actOpen:
		return s.Host.Open(AtFinding(rows[at].ID))
	case a.Step() != 0:
		p.cursor = rows[max(0, min(at+a.Step(), len(rows)-1))].ID
		return nil
	}
	return p.judge(s, a, &rows[at])
}

func (p *findingsPage) Title(s *State, _ int) string {
	open := len(openFindings(s.Shown.Findings))
	title := fmt.Sprintf(" findings   %d open", open)
	if n := p.silent(s); n > 0 {
		title += fmt.Sprintf(", %d silent", n)
	}
	if p.all {
		title += fmt.Sprintf(", %d closed within an hour", len(s.Shown.Findings)-open)
	}
	return title
}

// silent counts the open findings that call nobody.
func (p *findingsPage) silent(s *State) (n int) {
	for _, f := range openFindings(s.Shown.Findings) {
		if f.Silent(s.Now) {
			n++
		}
	}
	return n
}

func (p *findingsPage) Body(s *State, w, h int) []string {
	rows := p.rows(s)
	if s.Received.IsZero() {
		return []string{"", clip(" Nothing is known yet: no second has come from the server.", w)}
	}
	if len(rows) == 0 {
		text := "No finding is open. Detectors speak when a forwarder is slow for what it is asked to do; they need " +
			"some minutes of data first. " + s.Key(actPanel) + " shows those closed within an hour."
		return append([]string{""}, paragraphs(w, text)...)
	}
	lines := []string{s.Bold(clip(findingHead(w), w))}
	at := p.at(rows)
	under := paragraphs(w, clean(rows[at].Sentence))
	lines = append(lines, Lines(s.Palette, len(rows), at, w, max(1, h-len(under)-2), "",
		func(i int) string { return findingLine(s, &rows[i], w) })...)
	return append(append(lines, rule(w)), under...)
}

// wideFindings is the width from which a line has room for its impact, planFindings for its plan.
const (
	wideFindings = 110
	planFindings = 78
)

// findingHead are the columns' names, each as wide as its column.
func findingHead(w int) string {
	head := " " + left("ID", 8) + left("SUBJECT", 10) + left("WHAT", whatWidth(w)) + right("SINCE", 6) + "  CONF  "
	if w >= wideFindings {
		head += left("IMPACT", 26)
	}
	head += left("STATE", 12) + left("OWNER", 9)
	if w >= planFindings {
		head += "PLAN"
	}
	return head
}

func whatWidth(w int) int {
	if w >= wideFindings {
		return 26
	}
	return 17
}

func findingLine(s *State, f *anomaly.Finding, w int) string {
	line := " " + left(clean(f.ID), 8) + left(subject(f.Node), 10) + left(findingTitle(f), whatWidth(w)) +
		right(age(s.AsOf().Sub(f.Since)), 6) +
		fmt.Sprintf("  %.2f  ", f.Confidence)
	if w >= wideFindings {
		line += left(impact(f), 26)
	}
	line += left(stateOf(s, f), 12) + left(orMissing(f.Owner), 9)
	if w >= planFindings {
		line += planOf(s, f)
	}
	return line
}

// planOf is the waiting plan that touches a finding's node.
func planOf(s *State, f *anomaly.Finding) string {
	r := s.Forwarder(topology.ForwarderID(f.Node))
	switch {
	case r == nil:
		return missing
	case r.Plan == "":
		return "none"
	}
	return clean(r.Plan)
}

// impact is who suffers and how much; missing where no job is known behind the node.
func impact(f *anomaly.Finding) string {
	if len(f.Impact) == 0 {
		return missing
	}
	most := f.Impact[0].Share
	for _, i := range f.Impact {
		most = max(most, i.Share)
	}
	if len(f.Impact) == 1 {
		return fmt.Sprintf("1 job, %s of its time", estimatedShare(most))
	}
	return fmt.Sprintf("%d jobs, %s of run time", len(f.Impact), estimatedShare(most))
}

func (p *findingsPage) Twin(s *State, a Action) string {
	rows := p.rows(s)
	if len(rows) == 0 {
		return ""
	}
	return findingTwin(&rows[p.at(rows)], a)
}
