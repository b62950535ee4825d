package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/anomaly"
	"fairway/collector/topology"
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

// overviewPage is the whole layer at a glance: the grid with the hottest forwarders and what needs
// a person, or one table.
type overviewPage struct {
	asTable   bool
	panel     int
	cursor    topology.ForwarderID // "" is the first forwarder
	need      int
	filtering *input
	// perRow and small are what the last drawn size allows; moving up and down needs them.
	perRow int
	small  bool
}

func (p *overviewPage) name() string                           { return onOverview }
func (p *overviewPage) refresh(*State, *asker) tea.Cmd         { return nil }
func (p *overviewPage) answer(*State, *asker, tea.Msg) tea.Cmd { return nil }
func (p *overviewPage) field() *input                          { return p.filtering }
func (p *overviewPage) selected(s *State) topology.ForwarderID { return p.cursorRow(s).ID }

// table is all that a list can show of the forwarders that match the filter.
func (p *overviewPage) table(s *State) [][]string { return texts(s, columns, s.rows()) }

func (p *overviewPage) address(s *State) Address {
	a := Address{Page: "overview", Metric: metrics[s.metric].name, Sort: s.sort.String(), Filter: s.filter,
		Sel: string(p.cursor)}
	if p.asTable {
		a.View = "table"
	}
	return a
}

// typed ends the filter: enter keeps it, escape takes it away.
func (p *overviewPage) typed(s *State, _ *asker, ok bool) tea.Cmd {
	s.filter = ""
	if ok {
		s.filter = strings.TrimSpace(p.filtering.text)
	}
	p.filtering = nil
	return nil
}

func (p *overviewPage) cursorRow(s *State) api.ForwarderRow {
	if r := s.forwarder(p.cursor); r != nil {
		return *r
	}
	if p.asTable || p.small || p.panel == panelList {
		if rows := s.rows(); len(rows) > 0 {
			return *rows[0]
		}
	}
	if len(s.Shown.Forwarders) > 0 {
		return s.Shown.Forwarders[0]
	}
	return api.ForwarderRow{}
}

func (p *overviewPage) act(s *State, ask *asker, a action) tea.Cmd {
	switch a {
	case actMetric:
		s.setMetric(s.metric + 1)
	case actTable:
		p.asTable = !p.asTable
	case actPanel:
		p.panel = (p.panel + 1) % panelCount
	case actFilter:
		p.filtering = &input{label: "filter:", text: s.filter}
	case actReverse:
		s.sort.reverse = !s.sort.reverse
	case actSortPrev:
		stepSort(&s.sort, p.columns(), -1)
	case actSortNext:
		stepSort(&s.sort, p.columns(), 1)
	case actOpen:
		if p.panel == panelNeeds && !p.asTable {
			return s.openNeed(ask, p.need)
		}
		return p.onSelected(s, ask, func(id topology.ForwarderID) page { return newForwarderPage(string(id)) })
	case actPropose:
		return p.onSelected(s, ask, func(id topology.ForwarderID) page { return newProposePage(id, nil) })
	default:
		p.move(s, a)
	}
	return nil
}

func (p *overviewPage) columns() []column[api.ForwarderRow] {
	if p.asTable || p.small {
		return columns
	}
	return pick(hottestColumns)
}

func (p *overviewPage) onSelected(s *State, ask *asker, make func(topology.ForwarderID) page) tea.Cmd {
	id := p.selected(s)
	if id == "" {
		s.Note = "no forwarder is selected: none is known yet"
		return nil
	}
	return s.open(ask, make(id))
}

// move moves the cursor: in the grid by place, in the list by its order, among the needs by line.
func (p *overviewPage) move(s *State, a action) {
	steps := steps
	if p.panel == panelNeeds && !p.asTable && !p.small {
		p.need = max(0, min(p.need+steps[a], len(s.needs())-1))
		return
	}
	ids := make([]topology.ForwarderID, 0, len(s.Shown.Forwarders))
	if p.panel == panelList || p.asTable || p.small {
		for _, r := range s.rows() {
			ids = append(ids, r.ID)
		}
	} else {
		for _, r := range s.Shown.Forwarders {
			ids = append(ids, r.ID)
		}
		steps = map[action]int{actUp: -p.perRow, actDown: p.perRow, actLeft: -1, actRight: 1, actPageUp: -5 * p.perRow,
			actPageDown: 5 * p.perRow}
	}
	if len(ids) == 0 || steps[a] == 0 {
		return
	}
	at := slices.Index(ids, p.selected(s))
	if next := at + steps[a]; next >= 0 && next < len(ids) {
		p.cursor = ids[next]
	} else if a == actPageUp || a == actPageDown || at < 0 {
		p.cursor = ids[max(0, min(next, len(ids)-1))]
	}
}

func (p *overviewPage) title(s *State, w int) string {
	o := &s.Shown
	if o.Machine == "" {
		return " fairway"
	}
	if w < 110 {
		who := clean(o.Role)
		if o.User != "" {
			who = clean(o.User) + "/" + who
		}
		return fmt.Sprintf(" %s  %s  %s %s", clean(o.Machine), who,
			api.Counted(len(openFindings(o.Findings)), "finding"), api.Counted(len(o.Waiting), "plan"))
	}
	title := " fairway  " + clean(o.Machine)
	if o.User != "" {
		title += "   " + clean(o.User) + " (" + clean(o.Role) + ")"
	}
	return title + fmt.Sprintf("   findings %d   plans waiting %d   %s help", len(openFindings(o.Findings)),
		len(o.Waiting), s.key(actHelp))
}

func (p *overviewPage) body(s *State, w, h int) []string {
	if s.Received.IsZero() && errors.Is(s.Lost, api.ErrNotAllowed) {
		return append([]string{""}, indent(wrap(s.adviceFor(s.Lost), max(1, w-2)), w)...)
	}
	if s.Received.IsZero() && s.Lost != nil {
		return append([]string{""},
			indent(
				wrap(
					"Does fairwayd run on this host? If it listens elsewhere: --addr unix:/path or https://host, or "+
						"FAIRWAY_ADDR.", max(1, w-2)), w)...)
	}
	if s.Received.IsZero() {
		return []string{"", " Waiting for the first second from the server."}
	}
	screen := h + 2 + len(s.banners(w))
	p.small = w < gridWidth || screen < gridHeight
	lines := []string{clip(s.summary(w), w)}
	if p.small {
		lines = append(lines, clip(fmt.Sprintf(" Terminal is %dx%d; the grid needs %dx%d.", w, screen, gridWidth,
			gridHeight), w))
	}
	if p.asTable || p.small {
		cols := tableColumns(w)
		lines = append(lines, s.Palette.paint(s.Palette.bold, clip(heading(cols, s.sort), w)))
		return append(lines, s.listLines(cols, w, h-len(lines), p.selected(s))...)
	}
	lines = append(lines, rule(w))
	lines = append(lines, p.grid(s, w, h-12)...)
	lines = append(lines, p.legend(s, w), rule(w))
	if w >= 120 {
		lines = append(lines, p.panels(s, w, h-len(lines)-1)...)
		return append(lines, rule(w))
	}
	cols := pick([]string{"node", "occ", "queue", "mdwait", "job"})
	lines = append(lines, s.Palette.paint(s.Palette.bold, clip(heading(cols, s.sort), w)))
	list := s.listLines(cols, w, h-len(lines)-1, p.listCursor(s))
	lines = append(lines, list...)
	return append(lines, s.nextLine(w))
}

// tableColumns are the columns that fit a width.
func tableColumns(w int) []column[api.ForwarderRow] {
	switch {
	case w >= 110:
		return columns
	case w >= 78:
		return pick(narrowColumns)
	}
	return pick(tinyColumns)
}

func (p *overviewPage) listCursor(s *State) topology.ForwarderID {
	if p.panel == panelList {
		return p.selected(s)
	}
	return ""
}

// summary counts the layer in one line.
func (s *State) summary(w int) string {
	if s.stale() {
		return fmt.Sprintf(" %s, nothing newer is known of them | colour: %s (%s)",
			api.Counted(len(s.Shown.Forwarders), "forwarder"), metrics[s.metric].title, s.key(actMetric))
	}
	n := map[remap.ForwarderState]int{}
	var moved, peak float64
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		n[r.State]++
		peak += r.PeakBytesPerSec
		if v := sum(s.value(r, r.ReadBytesPerSec), s.value(r, r.WriteBytesPerSec)); v != nil {
			moved += *v
		}
	}
	rate := bandwidth(moved, peak)
	m := metrics[s.metric].title
	if w < 110 {
		return fmt.Sprintf(" %d: %d busy %d idle %d! %dx %d? | %s | %s", len(s.Shown.Forwarders),
			n[remap.ForwarderOK]+n[remap.ForwarderDedicated],
			n[remap.ForwarderIdle], n[remap.ForwarderSuspect], n[remap.ForwarderExcluded], n[remap.ForwarderStale],
			rate, m)
	}
	jobs := ""
	if s.Shown.Jobs != nil {
		jobs = api.Counted(*s.Shown.Jobs, "job") + " | "
	}
	return fmt.Sprintf(" %s: %d busy %d idle %d suspect %d excluded %d stale | %s%s | colour: %s (%s)",
		api.Counted(len(s.Shown.Forwarders), "forwarder"),
		n[remap.ForwarderOK]+n[remap.ForwarderDedicated], n[remap.ForwarderIdle], n[remap.ForwarderSuspect],
		n[remap.ForwarderExcluded], n[remap.ForwarderStale], jobs, rate, m, s.key(actMetric))
}

// bandwidth is what moves now, of the layer's peak where that is known, in the unit that fits.
func bandwidth(moved, peak float64) string {
	unit, scale := "MB/s", 1e6
	if max(moved, peak) >= 1e10 {
		unit, scale = "GB/s", 1e9
	}
	if peak <= 0 {
		return number(moved/scale) + " " + unit
	}
	return number(moved/scale) + " of " + number(peak/scale) + " " + unit
}

// need is one line of NEEDS YOU.
type need struct {
	id, what, sure, tail string
	page                 func() page
}

// needs lists what waits for a person: open findings, waiting plans, silent forwarders.
func (s *State) needs() []need {
	var out []need
	for _, f := range openFindings(s.Shown.Findings) {
		if f.Silent(s.asOf()) {
			continue // until then it calls nobody
		}
		out = append(out, need{
			id: clean(f.ID), what: subject(f.Node) + " " + findingTitle(&f),
			sure: fmt.Sprintf("conf %.2f ", f.Confidence), tail: fmt.Sprintf("%4s %s", age(s.asOf().Sub(f.Since)),
				stateWords(&f)),
			page: func() page { return newFindingPage(f.ID) },
		})
	}
	for _, w := range s.Shown.Waiting {
		out = append(out, need{
			id: clean(w.ID), what: clean(w.Title), tail: fmt.Sprintf("waits %s", age(s.asOf().Sub(w.Created))),
			page: func() page { return newPlanPage(w.ID) },
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
		stale = append(stale, clean(string(r.ID)))
		if since.IsZero() || r.LastSeen.Before(since) {
			since = r.LastSeen
		}
	}
	if len(stale) > 0 {
		tail := "since " + clock(since)
		if since.IsZero() {
			tail = "never seen"
		}
		out = append(out, need{id: fmt.Sprintf("%d stale:", len(stale)), what: strings.Join(stale, " "), tail: tail,
			page: func() page { return newForwarderPage(first) }})
	}
	return out
}

func openFindings(all []anomaly.Finding) []anomaly.Finding {
	var out []anomaly.Finding
	for _, f := range all {
		if f.State != anomaly.Returned && f.State != anomaly.Dismissed {
			out = append(out, f)
		}
	}
	return out
}

func (s *State) openNeed(ask *asker, i int) tea.Cmd {
	all := s.needs()
	if i < 0 || i >= len(all) {
		s.Note = "nothing needs you"
		return nil
	}
	return s.open(ask, all[i].page())
}

// nextNeed opens the next thing that needs a person, each press one further.
func (s *State) nextNeed(ask *asker) tea.Cmd {
	o := s.pages[0].(*overviewPage)
	if len(s.pages) > 1 {
		o.need = (o.need + 1) % max(1, len(s.needs()))
	} else {
		o.need = min(o.need, max(0, len(s.needs())-1))
	}
	return s.openNeed(ask, o.need)
}

// nextLine is NEEDS YOU in one line.
func (s *State) nextLine(w int) string {
	all := s.needs()
	if len(all) == 0 {
		return clip(" nothing needs you", w)
	}
	more := ""
	if len(all) > 1 {
		more = fmt.Sprintf(", %d more", len(all)-1)
	}
	open := fmt.Sprintf(" (%s to open%s)", s.key(actNext), more)
	what, tail := fmt.Sprintf(" next: %s %s ", all[0].id, all[0].what), strings.TrimSpace(all[0].tail)
	if sure := all[0].sure; ansi.StringWidth(what+sure+tail+open) <= w { // what is wrong comes before how sure that is
		what += sure
	}
	what += tail
	return s.Palette.paint(s.Palette.bold, clip(clip(what, max(0, w-len(open)))+open, w))
}
