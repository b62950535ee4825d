// Package overview shows the whole layer at a glance: the grid with the busiest forwarders and what needs a person.
package overview

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap"
	"fairway/webui/api"
)

// The panels of the overview that can hold the cursor.
const (
	panelList = iota
	panelGrid
	panelNeeds
	panelCount
)

// Screen is the whole layer at a glance: the grid with the hottest forwarders and what needs
// a person, or one table.
type Screen struct {
	screen.Filter
	metric  int
	sort    table.Sorting
	asTable bool
	panel   int
	cursor  topology.ForwarderID // "" is the first forwarder
	need    int
	// perRow and small are what the last drawn size allows; moving up and down needs them.
	perRow int
	small  bool
	// rowsAt and gridAt are the lines where the list and the grid begin, 0 without one; first is the first row shown.
	rowsAt, gridAt, first int
}

func New(a screen.Address) *Screen {
	p := &Screen{sort: table.Sorting{Column: screen.BySlowness}, Filter: screen.Filter{Text: a.Filter},
		asTable: a.View == "table", cursor: topology.ForwarderID(a.Sel)}
	p.metric = max(0, slices.IndexFunc(metrics, func(m metric) bool { return m.name == a.Metric }))
	if c := columns[metrics[p.metric].name]; c != "" {
		p.sort.Column = c
	}
	table.ParseSort(&p.sort, screen.ForwarderColumns(&screen.State{}), a.Sort)
	return p
}

func (p *Screen) Name() string                                  { return screen.OnOverview }
func (p *Screen) Refresh(s *screen.State) tea.Cmd               { return s.Trend.Refresh(s) }
func (p *Screen) selected(s *screen.State) topology.ForwarderID { return p.under(s, p.rows(s)).ID }

// Answer takes the minutes before.
func (p *Screen) Answer(s *screen.State, msg tea.Msg) tea.Cmd {
	s.Trend.Answer(msg)
	return nil
}

// Table is all that a list can show of the forwarders that match the filter.
func (p *Screen) Table(s *screen.State) [][]string {
	cols := slices.DeleteFunc(screen.ForwarderColumns(s),
		func(c table.Column[api.ForwarderRow]) bool { return c.Name == screen.Graph })
	return table.Texts(cols, p.rows(s))
}

func (p *Screen) Address(s *screen.State) screen.Address {
	a := screen.Address{Page: "overview", Metric: metrics[p.metric].name, Sort: p.sort.String(), Filter: p.Text,
		Sel: string(p.cursor)}
	if p.asTable {
		a.View = "table"
	}
	return a
}

// Left is how the list is left.
func (p *Screen) Left() screen.Kept { return screen.LeftOf(p.sort, p.Text) }

// Restore is how it was left.
func (p *Screen) Restore(k screen.Kept) {
	p.Text = k.Filter
	screen.Restore(&p.sort, screen.ForwarderColumns(&screen.State{}), k)
}

// under is the forwarder under the cursor, the first of the list until it has been moved.
func (p *Screen) under(s *screen.State, rows []*api.ForwarderRow) *api.ForwarderRow {
	if r := s.Forwarder(p.cursor); r != nil {
		return r
	}
	if len(rows) > 0 {
		return rows[0]
	}
	return &api.ForwarderRow{}
}

func (p *Screen) Act(s *screen.State, a screen.Action) tea.Cmd {
	switch a {
	case screen.ActMetric:
		p.metric = (p.metric + 1) % len(metrics)
		if c := columns[metrics[p.metric].name]; c != "" {
			p.sort.Column, p.sort.Reverse = c, false
		}
	case screen.ActApprove:
		return p.openPlan(s)
	case screen.ActTable:
		p.asTable = !p.asTable
	case screen.ActPanel:
		p.panel = (p.panel + 1) % panelCount
	case screen.ActFilter:
		p.Begin("filter:")
	case screen.ActOpen:
		if p.panel == panelNeeds && !p.asTable {
			return p.openNeed(s)
		}
		return onSelected(s, p, func(id topology.ForwarderID) tea.Cmd { return s.Host.Open(screen.AtForwarder(id)) })
	case screen.ActPropose:
		return onSelected(s, p, func(id topology.ForwarderID) tea.Cmd { return s.Host.Propose(id, "", nil) })
	default:
		if !screen.Arrange(&p.sort, screen.ForwarderColumns(s), a) {
			p.move(s, a)
		}
	}
	return nil
}

// rows are the forwarders of the list: filtered and in order.
func (p *Screen) rows(s *screen.State) []*api.ForwarderRow {
	rows := make([]*api.ForwarderRow, 0, len(s.Shown.Forwarders))
	for i := range s.Shown.Forwarders {
		if r := &s.Shown.Forwarders[i]; matches(r, p.Text) {
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
func (p *Screen) lines(s *screen.State, cols []table.Column[api.ForwarderRow], rows []*api.ForwarderRow, w, h int,
	selected topology.ForwarderID) []string {
	if len(rows) == 0 && h > 0 {
		text := " No forwarder is known yet: does an agent run on each of them?"
		if p.Text != "" {
			text = " No forwarder matches \"" + p.Text + "\"; press " + s.Key(screen.ActFilter) +
				" to change the filter."
		}
		return []string{chart.Clip(text, w)}
	}
	at := slices.IndexFunc(rows, func(r *api.ForwarderRow) bool { return r.ID == selected })
	p.first = table.Window(max(at, 0), len(rows), max(0, h-1))
	return table.Lines(s.Palette, len(rows), at, w, h, ", or filter with "+s.Key(screen.ActFilter),
		func(i int) string { return screen.ForwarderLine(s, rows[i], cols) })
}

func onSelected(s *screen.State, p *Screen, open func(topology.ForwarderID) tea.Cmd) tea.Cmd {
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
	if p.panel == panelNeeds && !p.asTable {
		p.need = max(0, min(p.need+step, len(s.Shown.Needs)-1))
		return
	}
	ids := make([]topology.ForwarderID, 0, len(s.Shown.Forwarders))
	if p.panel != panelGrid || p.gridAt == 0 {
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

// state is the layer's health in some words, and their look.
func state(s *screen.State) (text, look string) {
	n, storage := map[remap.ForwarderState]int{}, 0
	for i := range s.Shown.Forwarders {
		n[s.Standing(&s.Shown.Forwarders[i])]++
	}
	for i := range s.Shown.Findings {
		if f := &s.Shown.Findings[i]; f.Kind == anomaly.TargetSlow && f.State == anomaly.Confirmed {
			storage++
		}
	}
	pal := s.Palette
	var words []string
	for _, c := range []struct {
		n          int
		what, look string
	}{{n[remap.ForwarderDead], "dead", pal.Slow}, {n[remap.ForwarderHung], "hung", pal.Slow},
		{n[remap.ForwarderSlow], "slow", pal.Slow},
		{n[remap.ForwarderSuspect] + n[remap.ForwarderTrial], "suspect", pal.Suspect},
		{n[remap.ForwarderStale], "silent", pal.Suspect}} {
		if c.n == 0 {
			continue
		}
		look = cmp.Or(look, c.look)
		if len(words) == 0 {
			words = append(words, fmt.Sprintf("%s %s", anomaly.Counted(c.n, "forwarder"), c.what))
		} else {
			words = append(words, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if storage > 0 {
		words = append(words, anomaly.Counted(storage, "back end")+" slow")
		look = cmp.Or(look, pal.Suspect)
	}
	if len(words) == 0 {
		return "healthy", pal.Well
	}
	return strings.Join(words, ", "), look
}

func (p *Screen) Title(s *screen.State, w int) string {
	o := &s.Shown
	if o.Machine == "" {
		return " fairway"
	}
	title := " " + chart.Clean(o.Machine) + "  "
	if o.Simulated && w < 110 {
		title = "  "
	}
	text, look := state(s)
	if s.Stale() || o.LateSeconds > 0 {
		text, look = "not known", ""
	}
	// The look ends before the rest, which is bold again.
	title += s.Palette.Paint(look, text) + s.Palette.Bold + p.Filter.Title()
	if n := len(o.Waiting); n > 0 {
		title += "  " + anomaly.Counted(n, "plan") + " " + anomaly.VerbOf(n, "waits", "wait")
		if w >= 110 {
			title += " for you"
		}
	}
	switch {
	case w < 110 && o.User != "":
		who := "  " + chart.Clean(o.User) + "/" + chart.Clean(o.Role)
		if ansi.StringWidth(title+who) <= s.TitleRoom(w) {
			title += who
		}
	case o.User != "":
		title += "   " + chart.Clean(o.User) + " (" + chart.Clean(o.Role) + ")"
	default:
		title += "  " + chart.Clean(o.Role)
	}
	if w >= 110 {
		title += "   " + s.Key(screen.ActHelp) + " help"
	}
	return title
}

const (
	frame      = 2  // lines of a box
	gaugeLines = 3  // of the machine's gauges, two beside each other
	gridFrom   = 16 // forwarders from which on the grid is drawn
	tallest    = 6  // lines of a gauge
)

// stripHeight is how many lines each of the machine's gauges has: more where the list leaves some of h free, or where
// the needs beside them want more lines.
func stripHeight(forwarders, needs, h int) int {
	free := h - frame - gaugeLines - 1 - forwarders
	if forwarders >= gridFrom {
		free -= h / 3 // the grid's
	}
	return min(tallest, max(1, 1+free/gaugeLines/2, (needs+gaugeLines-1)/gaugeLines))
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
	p.rowsAt, p.gridAt = 0, 0
	var lines []string
	rows := p.rows(s)
	few, chosen := len(s.Shown.Forwarders) < gridFrom, -1
	if p.panel == panelNeeds && !p.asTable {
		chosen = p.need
	}
	switch {
	case few && w >= 110 && height >= 30:
		lines = append(lines, storyCard(s, w, fullCard, chosen)...)
		high := 2
		if height >= 40 {
			high = 3
		}
		lines = append(lines, wideStrip(s, w, high)...)
		lines = append(lines, s.Palette.Rule(w))
	case few && !p.small:
		lines = append(lines, shortStrip(s, w))
		lines = append(lines, storyCard(s, w, smallCard, chosen)...)
	case w >= 120 && height >= 30:
		left := w * 56 / 100
		high := stripHeight(len(s.Shown.Forwarders), needsPlace(s, w-left-2), h)
		box := frame + gaugeLines*high
		lines = append(lines, chart.Beside(s.Palette.Box(stripTitle(s), strip(s, left-2, high), left, box), left,
			p.needsBox(s, w-left, box))...)
	default:
		lines = append(lines, shortStrip(s, w))
		most := needsPlace(s, w-1)
		if p.small {
			most = needHeight
		}
		needs, _ := p.needLines(s, w-1, most)
		for _, l := range needs {
			lines = append(lines, " "+l)
		}
	}
	if p.small {
		lines = append(lines, chart.Clip(fmt.Sprintf(" Terminal is %dx%d; the grid needs %dx%d.", w, height, gridWidth,
			gridHeight), w))
	}
	selected := p.under(s, rows)
	if !p.asTable && !p.small && len(s.Shown.Forwarders) >= gridFrom {
		p.gridAt = len(lines)
		lines = append(lines, p.grid(s, selected.ID, w, h/3)...)
		lines = append(lines, legend(s, metrics[p.metric].full, selected, w))
	}
	cols := table.Shown(screen.ForwarderColumnsIn(s, w), p.sort)
	tw := w
	detailed := w >= 120 && !p.asTable
	if detailed {
		cols = table.Pick(table.Shown(screen.ForwarderColumns(s), p.sort), "node", screen.BySlowness, "graph", "took",
			"moves", "queue", "job")
		tw = min(w-46, 88)
	}
	head := s.Bold(chart.Clip("  "+table.Heading(cols, p.sort), tw))
	p.rowsAt = len(lines) + 1
	list := append([]string{head}, p.lines(s, cols, rows, tw, h-len(lines)-1, selected.ID)...)
	if !detailed {
		if !p.asTable && !p.small {
			list = append(list, beside(s, selected, w, h-len(lines)-len(list))...)
		}
		return append(lines, list...)
	}
	if !few || len(s.Shown.Needs) == 0 || s.Shown.Needs[0].Node != selected.ID.Node() { // the card has it else
		list = append(list, beside(s, selected, tw-1, h-len(lines)-len(list))...)
	}
	side := p.detail(s, selected, w-tw-3, h-len(lines))
	for i := range side {
		side[i] = s.Palette.Side() + side[i]
	}
	return append(lines, chart.Beside(list, tw, side)...)
}

// Click selects what lies under the mouse; once more opens it.
func (p *Screen) Click(s *screen.State, x, y int) tea.Cmd {
	id := topology.ForwarderID("")
	rows := p.rows(s)
	first := p.first
	switch {
	case p.rowsAt > 0 && y >= p.rowsAt && first+y-p.rowsAt < len(rows):
		id = rows[first+y-p.rowsAt].ID
	case p.gridAt > 0 && y >= p.gridAt && y < p.rowsAt-2 && x >= gridLabel:
		if i := (y-p.gridAt)*p.perRow + (x-gridLabel)/2; i < len(s.Shown.Forwarders) {
			id = s.Shown.Forwarders[i].ID
		}
	case p.gridAt == 0 && y < p.rowsAt-1, y < p.gridAt:
		return p.openNeed(s)
	}
	if id == "" {
		return nil
	}
	if id == p.selected(s) {
		return s.Host.Open(screen.AtForwarder(id))
	}
	p.cursor = id
	return nil
}
