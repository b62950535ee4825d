package console

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// findingsPage lists what is wrong, out of the shown second: it is as fresh as the overview.
type findingsPage struct {
	judging
	all    bool // also those closed within an hour
	cursor string
}

func (p *findingsPage) name() string                   { return onFindings }
func (p *findingsPage) address(*State) Address         { return Address{Page: "findings"} }
func (p *findingsPage) refresh(*State, *asker) tea.Cmd { return nil }

func (p *findingsPage) answer(s *State, _ *asker, msg tea.Msg) tea.Cmd {
	p.judging.answer(s, msg)
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

func (p *findingsPage) act(s *State, ask *asker, a action) tea.Cmd {
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
		return s.open(ask, newFindingPage(rows[at].ID))
	case steps[a] != 0:
		p.cursor = rows[max(0, min(at+steps[a], len(rows)-1))].ID
		return nil
	}
	return p.judge(s, ask, a, &rows[at])
}

func (p *findingsPage) title(s *State, _ int) string {
	open := len(openFindings(s.Shown.Findings))
	title := fmt.Sprintf(" findings   %d open", open)
	if n := s.silent(); n > 0 {
		title += fmt.Sprintf(", %d silent", n)
	}
	if p.all {
		title += fmt.Sprintf(", %d closed within an hour", len(s.Shown.Findings)-open)
	}
	return title
}

// silent counts the open findings that call nobody.
func (s *State) silent() (n int) {
	for _, f := range openFindings(s.Shown.Findings) {
		if f.Silent(s.Now) {
			n++
		}
	}
	return n
}

func (p *findingsPage) body(s *State, w, h int) []string {
	rows := p.rows(s)
	if s.Received.IsZero() {
		return []string{"", clip(" Nothing is known yet: no second has come from the server.", w)}
	}
	if len(rows) == 0 {
		text := "No finding is open. Detectors speak when a forwarder is slow for what it is asked to do; they need " +
			"some minutes of data first. " + s.key(actPanel) + " shows those closed within an hour."
		return append([]string{""}, indent(wrap(text, max(1, w-2)), w)...)
	}
	lines := []string{s.Palette.paint(s.Palette.bold, clip(findingHead(w), w))}
	at := p.at(rows)
	under := indent(wrap(clean(rows[at].Sentence), max(1, w-2)), w)
	lines = append(lines, s.scrolled(len(rows), at, w, max(1, h-len(under)-2), "",
		func(i int) string { return s.findingLine(&rows[i], w) })...)
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

func (s *State) findingLine(f *anomaly.Finding, w int) string {
	line := " " + left(clean(f.ID), 8) + left(subject(f.Node), 10) + left(findingTitle(f), whatWidth(w)) +
		right(age(s.asOf().Sub(f.Since)), 6) +
		fmt.Sprintf("  %.2f  ", f.Confidence)
	if w >= wideFindings {
		line += left(impact(f), 26)
	}
	line += left(s.stateOf(f), 12) + left(orMissing(f.Owner), 9)
	if w >= planFindings {
		line += s.planOf(f)
	}
	return line
}

// stateOf is a finding's state, or for how long it calls nobody.
func (s *State) stateOf(f *anomaly.Finding) string {
	if f.Open() && f.Silent(s.Now) {
		return "silent " + age(f.Silenced.Sub(s.Now))
	}
	return stateWords(f)
}

// planOf is the waiting plan that touches a finding's node.
func (s *State) planOf(f *anomaly.Finding) string {
	r := s.forwarder(topology.ForwarderID(f.Node))
	switch {
	case r == nil:
		return missing
	case r.Plan == "":
		return "none"
	}
	return clean(r.Plan)
}

func subject(n topology.NodeID) string {
	if n == anomaly.Everywhere {
		return "back end"
	}
	return clean(string(n))
}

// findingTitle is a finding in three words.
func findingTitle(f *anomaly.Finding) string {
	if f.Kind == anomaly.FailSlow && f.Class != "" {
		return "slow " + map[string]string{"read": "reads", "write": "writes", "meta": "metadata"}[f.Class]
	}
	return clean(remap.KindWords(f.Kind))
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

// estimatedShare is an estimated share in percent: a little is not nothing.
func estimatedShare(v float64) string {
	if v > 0 && v < 0.005 {
		return "<1%"
	}
	return fmt.Sprintf("~%.0f%%", 100*v)
}

// stateWords is a finding's state; in probation also how far that has come.
func stateWords(f *anomaly.Finding) string {
	if f.State == anomaly.Probation && f.Stage == anomaly.StageCanary {
		return "canary I/O"
	}
	if f.State == anomaly.Probation {
		return "on trial"
	}
	return clean(string(f.State))
}

func indent(lines []string, w int) []string {
	for i, l := range lines {
		lines[i] = clip(" "+l, w)
	}
	return lines
}

// NextCommand is what an operator would do about a finding, as a command; empty when nothing.
func NextCommand(f *anomaly.Finding) string {
	node := clean(string(f.Node))
	switch {
	case !f.Open() || !f.Kind.Accuses():
		return ""
	case f.State == anomaly.Excluded || f.State == anomaly.Probation && f.Stage == anomaly.StageCanary:
		return fmt.Sprintf("fairway return %s, once it is repaired", node)
	case f.State == anomaly.Confirmed:
		return fmt.Sprintf("fairway exclude %s --reason %q", node, f.ID+" "+strings.ReplaceAll(findingTitle(f), "\"",
			""))
	}
	return fmt.Sprintf("fairway findings ack %s", f.ID)
}
