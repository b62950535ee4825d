package finding

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
)

// List lists what is wrong, out of the shown second: it is as fresh as the overview.
type List struct {
	screen.Judging
	filter screen.Filter
	all    bool // also those closed within an hour
	cursor string
}

func (p *List) Name() string { return screen.OnFindings }
func (p *List) Address(*screen.State) screen.Address {
	return screen.Address{Page: "findings", Filter: p.filter.Text}
}

// NewList is the list of findings with a filter.
func NewList(filter string) *List { return &List{filter: screen.Filter{Text: filter}} }

// Left is how the list is left.
func (p *List) Left() screen.Kept { return p.filter.Left() }

// Restore is how it was left.
func (p *List) Restore(k screen.Kept) { p.filter.Restore(k) }

// Field is the filter's or a reason's: only one of them is typed at a time.
func (p *List) Field() *screen.Input {
	if f := p.filter.Field(); f != nil {
		return f
	}
	return p.Judging.Field()
}

// Typed ends the field that is open.
func (p *List) Typed(s *screen.State, ok bool) tea.Cmd {
	if p.filter.Field() != nil {
		return p.filter.Typed(s, ok)
	}
	return p.Judging.Typed(s, ok)
}

// Unfilter takes the filter away; false without one.
func (p *List) Unfilter() bool { return p.filter.Unfilter() }

func (p *List) Refresh(*screen.State) tea.Cmd { return nil }

func (p *List) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	p.Judging.Answer(s, msg)
	return nil
}

func (p *List) rows(s *screen.State) []anomaly.Finding {
	rows := s.Shown.Findings
	if !p.all {
		rows = screen.OpenFindings(rows)
	}
	return screen.Left(&p.filter, rows, func(f *anomaly.Finding) string {
		return findingLine(s, f, wideFindings) + " " + f.Sentence
	})
}

// at is the cursor's row; 0 when its finding is gone from the list.
func (p *List) at(rows []anomaly.Finding) int {
	for i := range rows {
		if rows[i].ID == p.cursor {
			return i
		}
	}
	return 0
}

// chosen is the finding under the cursor; nil without one.
func (p *List) chosen(s *screen.State) *anomaly.Finding {
	if rows := p.rows(s); len(rows) > 0 {
		return &rows[p.at(rows)]
	}
	return nil
}

func (p *List) Act(s *screen.State, a screen.Action) tea.Cmd {
	rows := p.rows(s)
	if a == screen.ActPanel {
		p.all = !p.all
		return nil
	}
	if a == screen.ActFilter {
		p.filter.Begin("filter:")
		return nil
	}
	if len(rows) == 0 {
		s.Note = "no finding is here"
		return nil
	}
	at := p.at(rows)
	switch {
	case a == screen.ActOpen:
		return s.Host.Open(screen.AtFinding(rows[at].ID))
	case a.Step() != 0:
		p.cursor = rows[max(0, min(at+a.Step(), len(rows)-1))].ID
		return nil
	}
	return p.Judge(s, a, &rows[at], nil)
}

func (p *List) Title(s *screen.State, _ int) string {
	open := len(screen.OpenFindings(s.Shown.Findings))
	title := fmt.Sprintf(" findings   %d open", open)
	if n := p.silent(s); n > 0 {
		title += fmt.Sprintf(", %d silent", n)
	}
	if p.all {
		title += fmt.Sprintf(", %d closed within an hour", len(s.Shown.Findings)-open)
	}
	return title + p.filter.Title()
}

// silent counts the open findings that do not alert.
func (p *List) silent(s *screen.State) (n int) {
	for _, f := range screen.OpenFindings(s.Shown.Findings) {
		if f.Silent(s.Now) {
			n++
		}
	}
	return n
}

func (p *List) Body(s *screen.State, w, h int) []string {
	rows := p.rows(s)
	if s.Received.IsZero() {
		return []string{"", chart.Clip(" Nothing is known yet: no second has come from the server.", w)}
	}
	if len(rows) == 0 && p.filter.Narrows() {
		return append([]string{""}, chart.Paragraphs(w, "No finding has that. Escape shows all again.")...)
	}
	if len(rows) == 0 {
		text := "No finding is open. Detectors speak when a forwarder is slow for what it is asked to do; they need " +
			"some minutes of data first. " + s.Key(screen.ActPanel) + " shows those closed within an hour."
		return append([]string{""}, chart.Paragraphs(w, text)...)
	}
	lines := []string{s.Bold(chart.Clip(findingHead(w), w))}
	at := p.at(rows)
	under := append(chart.Paragraphs(w, chart.Clean(rows[at].Sentence)),
		screen.NeedLines(s, screen.NeedOf(s, rows[at].ID), w)...)
	if rows[at].Notes > 0 {
		under = append(under, chart.Paragraphs(w, screen.NoteWords(&rows[at]))...)
	}
	lines = append(lines, table.Lines(s.Palette, len(rows), at, w, max(1, h-len(under)-2), "",
		func(i int) string { return findingLine(s, &rows[i], w) })...)
	return append(append(lines, s.Palette.Rule(w)), under...)
}

// wideFindings is the width from which a line has room for its impact, planFindings for its plan.
const (
	wideFindings = 110
	planFindings = 78
)

// findingHead are the columns' names, each as wide as its column.
func findingHead(w int) string {
	return findingRow(w, "ID", "SUBJECT", "WHAT", "FOR", "CONF", "IMPACT", "STATE", "OWNER", "PLAN")
}

func findingLine(s *screen.State, f *anomaly.Finding, w int) string {
	return findingRow(w, screen.SignNote(chart.Clean(f.ID), f.Notes > 0, 8), screen.Subject(f.Node),
		screen.FindingTitle(f), chart.Age(f.Lasted(s.AsOf())), fmt.Sprintf("%.2f", f.Confidence), impact(f),
		screen.StateOf(s, f), chart.OrMissing(f.Owner), planOf(s, f))
}

// findingRow sets a finding's cells side by side, without those that the width has no room for.
func findingRow(w int, id, subject, what, lasts, confidence, impact, state, owner, plan string) string {
	whatWidth, impactWidth := -17, 0
	if w >= wideFindings {
		whatWidth, impactWidth = -26, -26
	}
	line := " " + chart.Row([]int{-8, -10, whatWidth, 6, 2, -6, impactWidth, -12, -9}, id, subject, what, lasts, "",
		confidence, impact, state, owner)
	if w >= planFindings {
		line += plan
	}
	return line
}

// planOf is the waiting plan that touches a finding's node.
func planOf(s *screen.State, f *anomaly.Finding) string {
	r := s.Forwarder(topology.ForwarderID(f.Node))
	switch {
	case r == nil:
		return chart.Missing
	case r.Plan == "":
		return "none"
	}
	return chart.Clean(r.Plan)
}

// impact is who suffers and how much; missing where no job is known behind the node.
func impact(f *anomaly.Finding) string {
	if len(f.Impact) == 0 {
		return chart.Missing
	}
	most := f.Impact[0].Share
	for _, i := range f.Impact {
		most = max(most, i.Share)
	}
	return fmt.Sprintf("%s %s %s", anomaly.Counted(len(f.Impact), "job"),
		anomaly.VerbOf(len(f.Impact), "waits", "wait"), screen.EstimatedShare(most))
}

func (p *List) Twin(s *screen.State, a screen.Action) string {
	return findingTwin(p.chosen(s), a)
}

// Refuses says why something cannot be done with the chosen finding now.
func (p *List) Refuses(s *screen.State, a screen.Action) string {
	return p.Judging.Refuses(s, a, p.chosen(s), nil)
}

// Hides leaves out what is refused.
func (p *List) Hides(s *screen.State, a screen.Action) bool { return p.Refuses(s, a) != "" }
