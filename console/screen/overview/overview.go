// Package overview shows the whole layer at a glance: the grid with the busiest forwarders and what needs a person.
package overview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap"
	"fairway/webui/api"
)

// The panels of the overview that can hold the cursor.
const (
	panelGrid = iota
	panelList
	panelNeeds
	panelCount
)

// Screen is the whole layer at a glance: the grid with the hottest forwarders and what needs
// a person, or one table.
type Screen struct {
	metric    int
	sort      table.Sorting
	filter    string
	asTable   bool
	panel     int
	cursor    topology.ForwarderID // "" is the first forwarder
	need      int
	filtering *screen.Input
	// perRow and small are what the last drawn size allows; moving up and down needs them.
	perRow int
	small  bool
}

func New(a screen.Address) *Screen {
	p := &Screen{sort: table.Sorting{Column: screen.ByOccupancy}, filter: a.Filter, asTable: a.View == "table",
		cursor: topology.ForwarderID(a.Sel)}
	p.metric = max(0, slices.IndexFunc(metrics, func(m metric) bool { return m.name == a.Metric }))
	table.ParseSort(&p.sort, screen.ForwarderColumns(&screen.State{}), a.Sort)
	return p
}

func (p *Screen) Name() string                                  { return screen.OnOverview }
func (p *Screen) Refresh(*screen.State) tea.Cmd                 { return nil }
func (p *Screen) Answer(*screen.State, tea.Msg) tea.Cmd         { return nil }
func (p *Screen) Field() *screen.Input                          { return p.filtering }
func (p *Screen) selected(s *screen.State) topology.ForwarderID { return p.cursorRow(s).ID }

// Table is all that a list can show of the forwarders that match the filter.
func (p *Screen) Table(s *screen.State) [][]string {
	return table.Texts(screen.ForwarderColumns(s), p.rows(s))
}

func (p *Screen) Address(s *screen.State) screen.Address {
	a := screen.Address{Page: "overview", Metric: metrics[p.metric].name, Sort: p.sort.String(), Filter: p.filter,
		Sel: string(p.cursor)}
	if p.asTable {
		a.View = "table"
	}
	return a
}

// Typed ends the filter: enter keeps it, escape takes it away.
func (p *Screen) Typed(s *screen.State, ok bool) tea.Cmd {
	p.filter = ""
	if ok {
		p.filter = strings.TrimSpace(p.filtering.Text)
	}
	p.filtering = nil
	return nil
}

func (p *Screen) cursorRow(s *screen.State) api.ForwarderRow {
	if r := s.Forwarder(p.cursor); r != nil {
		return *r
	}
	if p.asTable || p.small || p.panel == panelList {
		if rows := p.rows(s); len(rows) > 0 {
			return *rows[0]
		}
	}
	if len(s.Shown.Forwarders) > 0 {
		return s.Shown.Forwarders[0]
	}
	return api.ForwarderRow{}
}

func (p *Screen) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActMetric:
		p.metric = (p.metric + 1) % len(metrics)
	case screen.ActTable:
		p.asTable = !p.asTable
	case screen.ActPanel:
		p.panel = (p.panel + 1) % panelCount
	case screen.ActFilter:
		p.filtering = &screen.Input{Label: "filter:", Text: p.filter}
	case screen.ActReverse:
		p.sort.Reverse = !p.sort.Reverse
	case screen.ActSortPrev:
		table.StepSort(&p.sort, p.columns(s), -1)
	case screen.ActSortNext:
		table.StepSort(&p.sort, p.columns(s), 1)
	case screen.ActOpen:
		if p.panel == panelNeeds && !p.asTable {
			return p.openNeed(s)
		}
		return p.onSelected(s, func(id topology.ForwarderID) tea.Cmd { return s.Host.Open(screen.AtForwarder(id)) })
	case screen.ActPropose:
		return p.onSelected(s, func(id topology.ForwarderID) tea.Cmd { return s.Host.Propose(id, "", nil) })
	default:
		p.move(s, a)
	}
	return nil
}

func (p *Screen) columns(s *screen.State) []table.Column[api.ForwarderRow] {
	if p.asTable || p.small {
		return screen.ForwarderColumns(s)
	}
	return table.Pick(screen.ForwarderColumns(s), hottest...)
}

// hottest are the columns of the list beside the grid.
var hottest = []string{"node", screen.ByOccupancy, "read", "write", "queue", "mdwait", "job"}

// rows are the forwarders of the list: filtered and in order.
func (p *Screen) rows(s *screen.State) []*api.ForwarderRow {
	rows := make([]*api.ForwarderRow, 0, len(s.Shown.Forwarders))
	for i := range s.Shown.Forwarders {
		if r := &s.Shown.Forwarders[i]; matches(r, p.filter) {
			rows = append(rows, r)
		}
	}
	screen.SortForwarders(s, rows, p.sort)
	return rows
}

func matches(r *api.ForwarderRow, filter string) bool {
	f := strings.ToLower(filter)
	for _, t := range []string{string(r.ID), string(r.State), string(r.TopJob), r.Rack} {
		if strings.Contains(strings.ToLower(t), f) {
			return true
		}
	}
	return false
}

// lines draws at most h lines of the list; selected is the forwarder under the cursor, "" for none. What does not
// fit is counted in the last line.
func (p *Screen) lines(s *screen.State, cols []table.Column[api.ForwarderRow], w, h int,
	selected topology.ForwarderID) []string {
	rows := p.rows(s)
	if len(rows) == 0 && h > 0 {
		text := " No forwarder is known yet: does an agent run on each of them?"
		if p.filter != "" {
			text = " No forwarder matches \"" + p.filter + "\"; press " + s.Key(screen.ActFilter) +
				" to change the filter."
		}
		return []string{chart.Clip(text, w)}
	}
	at := slices.IndexFunc(rows, func(r *api.ForwarderRow) bool { return r.ID == selected })
	return table.Lines(s.Palette, len(rows), at, w, h, ", or filter with "+s.Key(screen.ActFilter),
		func(i int) string { return screen.ForwarderLine(s, rows[i], cols) })
}

func (p *Screen) onSelected(s *screen.State, open func(topology.ForwarderID) tea.Cmd) tea.Cmd {
	id := p.selected(s)
	if id == "" {
		s.Note = "no forwarder is selected: none is known yet"
		return nil
	}
	return open(id)
}

// move moves the cursor: in the grid by place, in the list by its order, among the needs by line.
func (p *Screen) move(s *screen.State, a screen.Action) {
	step := a.Step()
	if p.panel == panelNeeds && !p.asTable && !p.small {
		p.need = max(0, min(p.need+step, len(needs(s))-1))
		return
	}
	ids := make([]topology.ForwarderID, 0, len(s.Shown.Forwarders))
	if p.panel == panelList || p.asTable || p.small {
		for _, r := range p.rows(s) {
			ids = append(ids, r.ID)
		}
	} else {
		for _, r := range s.Shown.Forwarders {
			ids = append(ids, r.ID)
		}
		step = map[screen.Action]int{screen.ActUp: -p.perRow, screen.ActDown: p.perRow, screen.ActLeft: -1,
			screen.ActRight: 1, screen.ActPageUp: -5 * p.perRow,
			screen.ActPageDown: 5 * p.perRow}[a]
	}
	if len(ids) == 0 || step == 0 {
		return
	}
	at := slices.Index(ids, p.selected(s))
	if next := at + step; next >= 0 && next < len(ids) {
		p.cursor = ids[next]
	} else if a == screen.ActPageUp || a == screen.ActPageDown || at < 0 {
		p.cursor = ids[max(0, min(next, len(ids)-1))]
	}
}

func (p *Screen) Title(s *screen.State, w int) string {
	o := &s.Shown
	if o.Machine == "" {
		return " fairway"
	}
	if w < 110 {
		who := chart.Clean(o.Role)
		if o.User != "" {
			who = chart.Clean(o.User) + "/" + who
		}
		return fmt.Sprintf(" %s  %s  %s %s", chart.Clean(o.Machine), who,
			api.Counted(len(screen.OpenFindings(o.Findings)), "finding"), api.Counted(len(o.Waiting), "plan"))
	}
	title := " fairway  " + chart.Clean(o.Machine)
	if o.User != "" {
		title += "   " + chart.Clean(o.User) + " (" + chart.Clean(o.Role) + ")"
	}
	return title + fmt.Sprintf("   findings %d   plans waiting %d   %s help", len(screen.OpenFindings(o.Findings)),
		len(o.Waiting), s.Key(screen.ActHelp))
}

func (p *Screen) Body(s *screen.State, w, h int) []string {
	if s.Received.IsZero() && errors.Is(s.Lost, api.ErrNotAllowed) {
		return append([]string{""}, chart.Paragraphs(w, s.Advice(s.Lost))...)
	}
	if s.Received.IsZero() && s.Lost != nil {
		return append([]string{""},
			chart.Paragraphs(w,
				"Does fairwayd run on this host? If it listens elsewhere: --addr unix:/path or https://host, or "+
					"FAIRWAY_ADDR.")...)
	}
	if s.Received.IsZero() {
		return []string{"", " Waiting for the first second from the server."}
	}
	height := s.Host.Height()
	p.small = w < gridWidth || height < gridHeight
	lines := []string{chart.Clip(p.summary(s, w), w)}
	if p.small {
		lines = append(lines, chart.Clip(fmt.Sprintf(" Terminal is %dx%d; the grid needs %dx%d.", w, height, gridWidth,
			gridHeight), w))
	}
	if p.asTable || p.small {
		cols := screen.ForwarderColumnsIn(s, w)
		lines = append(lines, s.Bold(chart.Clip(table.Heading(cols, p.sort), w)))
		return append(lines, p.lines(s, cols, w, h-len(lines), p.selected(s))...)
	}
	lines = append(lines, chart.Rule(w))
	lines = append(lines, p.grid(s, w, h-12)...)
	lines = append(lines, p.legend(s, w), chart.Rule(w))
	if w >= 120 {
		lines = append(lines, p.panels(s, w, h-len(lines)-1)...)
		return append(lines, chart.Rule(w))
	}
	cols := table.Pick(screen.ForwarderColumns(s), "node", screen.ByOccupancy, "queue", "mdwait", "job")
	lines = append(lines, s.Bold(chart.Clip(table.Heading(cols, p.sort), w)))
	list := p.lines(s, cols, w, h-len(lines)-1, p.listCursor(s))
	lines = append(lines, list...)
	return append(lines, nextLine(s, w))
}

func (p *Screen) listCursor(s *screen.State) topology.ForwarderID {
	if p.panel == panelList {
		return p.selected(s)
	}
	return ""
}

// summary counts the layer in one line.
func (p *Screen) summary(s *screen.State, w int) string {
	if s.Stale() {
		return fmt.Sprintf(" %s, nothing newer is known of them | colour: %s (%s)",
			api.Counted(len(s.Shown.Forwarders), "forwarder"), metrics[p.metric].title, s.Key(screen.ActMetric))
	}
	n := map[remap.ForwarderState]int{}
	var moved, peak float64
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		n[r.State]++
		peak += r.PeakBytesPerSec
		if v := screen.Sum(s.Value(r, r.Value(collector.ReadBytes)),
			s.Value(r, r.Value(collector.WriteBytes)), s.Value(r, r.Value(collector.RoutedBytes))); v != nil {
			moved += *v
		}
	}
	rate, unknown := bandwidth(moved, peak), ""
	if k := n[remap.ForwarderUnknown]; k > 0 { // what these move is in no sum
		unknown = fmt.Sprintf(" %d unknown", k)
	}
	m := metrics[p.metric].title
	if w < 110 {
		return fmt.Sprintf(" %d: %d busy %d idle %d! %dx %d?%s | %s | %s", len(s.Shown.Forwarders),
			n[remap.ForwarderOK]+n[remap.ForwarderDedicated],
			n[remap.ForwarderIdle], n[remap.ForwarderSuspect], n[remap.ForwarderExcluded], n[remap.ForwarderStale],
			unknown, rate, m)
	}
	jobs := ""
	if s.Shown.Jobs != nil {
		jobs = api.Counted(*s.Shown.Jobs, "job") + " | "
	}
	return fmt.Sprintf(" %s: %d busy %d idle %d suspect %d excluded %d stale%s | %s%s | colour: %s (%s)",
		api.Counted(len(s.Shown.Forwarders), "forwarder"),
		n[remap.ForwarderOK]+n[remap.ForwarderDedicated], n[remap.ForwarderIdle], n[remap.ForwarderSuspect],
		n[remap.ForwarderExcluded], n[remap.ForwarderStale], unknown, jobs, rate, m, s.Key(screen.ActMetric))
}

// bandwidth is what moves now, of the layer's peak where that is known, in the unit that fits.
func bandwidth(moved, peak float64) string {
	unit, scale := "MB/s", 1e6
	if max(moved, peak) >= 1e10 {
		unit, scale = "GB/s", 1e9
	}
	if peak <= 0 {
		return chart.Number(moved/scale) + " " + unit
	}
	return chart.Number(moved/scale) + " of " + chart.Number(peak/scale) + " " + unit
}

// need is one line of NEEDS YOU.
type need struct {
	id, what, sure, tail string
	at                   screen.Address
}

// needs lists what waits for a person: open findings, waiting plans, silent forwarders.
func needs(s *screen.State) []need {
	var out []need
	for _, f := range screen.OpenFindings(s.Shown.Findings) {
		if f.Silent(s.AsOf()) {
			continue // until then it does not alert
		}
		out = append(out, need{
			id: chart.Clean(f.ID), what: screen.Subject(f.Node) + " " + screen.FindingTitle(&f),
			sure: fmt.Sprintf("conf %.2f ", f.Confidence), tail: fmt.Sprintf("%4s %s", chart.Age(s.AsOf().Sub(f.Since)),
				screen.StateWords(&f)),
			at: screen.AtFinding(f.ID),
		})
	}
	for _, w := range s.Shown.Waiting {
		out = append(out, need{
			id: chart.Clean(w.ID), what: chart.Clean(w.Title),
			tail: fmt.Sprintf("waits %s", chart.Age(s.AsOf().Sub(w.Created))),
			at:   screen.AtPlan(w.ID),
		})
	}
	stale := make([]string, 0, 4)
	since := time.Time{}
	first := ""
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		if r.State != remap.ForwarderStale {
			continue
		}
		if first == "" {
			first = string(r.ID)
		}
		stale = append(stale, chart.Clean(string(r.ID)))
		if since.IsZero() || r.LastSeen.Before(since) {
			since = r.LastSeen
		}
	}
	if len(stale) > 0 {
		tail := "since " + chart.Clock(since)
		if since.IsZero() {
			tail = "never seen"
		}
		out = append(out, need{id: fmt.Sprintf("%d stale:", len(stale)), what: strings.Join(stale, " "), tail: tail,
			at: screen.AtForwarder(topology.ForwarderID(first))})
	}
	return out
}

func (p *Screen) openNeed(s *screen.State) tea.Cmd {
	all := needs(s)
	if p.need < 0 || p.need >= len(all) {
		s.Note = "nothing needs you"
		return nil
	}
	return s.Host.Open(all[p.need].at)
}

// Next opens the next thing that needs a person, on says one further than the last.
func (p *Screen) Next(s *screen.State, on bool) tea.Cmd {
	if on {
		p.need = (p.need + 1) % max(1, len(needs(s)))
	} else {
		p.need = min(p.need, max(0, len(needs(s))-1))
	}
	return p.openNeed(s)
}

// nextLine is NEEDS YOU in one line.
func nextLine(s *screen.State, w int) string {
	all := needs(s)
	if len(all) == 0 {
		return chart.Clip(" nothing needs you", w)
	}
	more := ""
	if len(all) > 1 {
		more = fmt.Sprintf(", %d more", len(all)-1)
	}
	open := fmt.Sprintf(" (%s to open%s)", s.Key(screen.ActNext), more)
	what, tail := fmt.Sprintf(" next: %s %s ", all[0].id, all[0].what), strings.TrimSpace(all[0].tail)
	if sure := all[0].sure; ansi.StringWidth(what+sure+tail+open) <= w { // what is wrong comes before how sure that is
		what += sure
	}
	what += tail
	return s.Bold(chart.Clip(chart.Clip(what, max(0, w-len(open)))+open, w))
}
