package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

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
	metric    int
	sort      Sorting
	filter    string
	asTable   bool
	panel     int
	cursor    topology.ForwarderID // "" is the first forwarder
	need      int
	filtering *Input
	// perRow and small are what the last drawn size allows; moving up and down needs them.
	perRow int
	small  bool
}

func newOverviewPage(a Address) *overviewPage {
	p := &overviewPage{sort: Sorting{Column: ByOccupancy}, filter: a.Filter, asTable: a.View == "table",
		cursor: topology.ForwarderID(a.Sel)}
	p.metric = max(0, slices.IndexFunc(metrics, func(m metric) bool { return m.name == a.Metric }))
	ParseSort(&p.sort, ForwarderColumns(&State{}), a.Sort)
	return p
}

func (p *overviewPage) Name() string                           { return onOverview }
func (p *overviewPage) Refresh(*State) tea.Cmd                 { return nil }
func (p *overviewPage) Answer(*State, tea.Msg) tea.Cmd         { return nil }
func (p *overviewPage) Field() *Input                          { return p.filtering }
func (p *overviewPage) selected(s *State) topology.ForwarderID { return p.cursorRow(s).ID }

// Table is all that a list can show of the forwarders that match the filter.
func (p *overviewPage) Table(s *State) [][]string { return Texts(ForwarderColumns(s), p.rows(s)) }

func (p *overviewPage) Address(s *State) Address {
	a := Address{Page: "overview", Metric: metrics[p.metric].name, Sort: p.sort.String(), Filter: p.filter,
		Sel: string(p.cursor)}
	if p.asTable {
		a.View = "table"
	}
	return a
}

// typed ends the filter: enter keeps it, escape takes it away.
func (p *overviewPage) Typed(s *State, ok bool) tea.Cmd {
	p.filter = ""
	if ok {
		p.filter = strings.TrimSpace(p.filtering.Text)
	}
	p.filtering = nil
	return nil
}

func (p *overviewPage) cursorRow(s *State) api.ForwarderRow {
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

func (p *overviewPage) Act(s *State, a Action) tea.Cmd {
	switch a {
	case actMetric:
		p.metric = (p.metric + 1) % len(metrics)
	case actTable:
		p.asTable = !p.asTable
	case actPanel:
		p.panel = (p.panel + 1) % panelCount
	case actFilter:
		p.filtering = &Input{Label: "filter:", Text: p.filter}
	case actReverse:
		p.sort.Reverse = !p.sort.Reverse
	case actSortPrev:
		StepSort(&p.sort, p.columns(s), -1)
	case actSortNext:
		StepSort(&p.sort, p.columns(s), 1)
	case actOpen:
		if p.panel == panelNeeds && !p.asTable {
			return p.openNeed(s)
		}
		return p.onSelected(s, func(id topology.ForwarderID) tea.Cmd { return s.Host.Open(AtForwarder(id)) })
	case actPropose:
		return p.onSelected(s, func(id topology.ForwarderID) tea.Cmd { return s.Host.Propose(id, "", nil) })
	default:
		p.move(s, a)
	}
	return nil
}

func (p *overviewPage) columns(s *State) []Column[api.ForwarderRow] {
	if p.asTable || p.small {
		return ForwarderColumns(s)
	}
	return Pick(ForwarderColumns(s), hottest...)
}

// hottest are the columns of the list beside the grid.
var hottest = []string{"node", ByOccupancy, "read", "write", "queue", "mdwait", "job"}

// rows are the forwarders of the list: filtered and in order.
func (p *overviewPage) rows(s *State) []*api.ForwarderRow {
	rows := make([]*api.ForwarderRow, 0, len(s.Shown.Forwarders))
	for i := range s.Shown.Forwarders {
		if r := &s.Shown.Forwarders[i]; p.matches(r) {
			rows = append(rows, r)
		}
	}
	SortForwarders(s, rows, p.sort)
	return rows
}

func (p *overviewPage) matches(r *api.ForwarderRow) bool {
	f := strings.ToLower(p.filter)
	for _, t := range []string{string(r.ID), string(r.State), string(r.TopJob), r.Rack} {
		if strings.Contains(strings.ToLower(t), f) {
			return true
		}
	}
	return false
}

// lines draws at most h lines of the list; selected is the forwarder under the cursor, "" for none. What does not
// fit is counted in the last line.
func (p *overviewPage) lines(s *State, cols []Column[api.ForwarderRow], w, h int, selected topology.ForwarderID) []string {
	rows := p.rows(s)
	if len(rows) == 0 && h > 0 {
		text := " No forwarder is known yet: does an agent run on each of them?"
		if p.filter != "" {
			text = " No forwarder matches \"" + p.filter + "\"; press " + s.Key(actFilter) + " to change the filter."
		}
		return []string{clip(text, w)}
	}
	at := slices.IndexFunc(rows, func(r *api.ForwarderRow) bool { return r.ID == selected })
	return Lines(s.Palette, len(rows), at, w, h, ", or filter with "+s.Key(actFilter),
		func(i int) string { return ForwarderLine(s, rows[i], cols) })
}

func (p *overviewPage) onSelected(s *State, open func(topology.ForwarderID) tea.Cmd) tea.Cmd {
	id := p.selected(s)
	if id == "" {
		s.Note = "no forwarder is selected: none is known yet"
		return nil
	}
	return open(id)
}

// move moves the cursor: in the grid by place, in the list by its order, among the needs by line.
func (p *overviewPage) move(s *State, a Action) {
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
		step = map[Action]int{actUp: -p.perRow, actDown: p.perRow, actLeft: -1, actRight: 1, actPageUp: -5 * p.perRow,
			actPageDown: 5 * p.perRow}[a]
	}
	if len(ids) == 0 || step == 0 {
		return
	}
	at := slices.Index(ids, p.selected(s))
	if next := at + step; next >= 0 && next < len(ids) {
		p.cursor = ids[next]
	} else if a == actPageUp || a == actPageDown || at < 0 {
		p.cursor = ids[max(0, min(next, len(ids)-1))]
	}
}

func (p *overviewPage) Title(s *State, w int) string {
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
		len(o.Waiting), s.Key(actHelp))
}

func (p *overviewPage) Body(s *State, w, h int) []string {
	if s.Received.IsZero() && errors.Is(s.Lost, api.ErrNotAllowed) {
		return append([]string{""}, paragraphs(w, s.Advice(s.Lost))...)
	}
	if s.Received.IsZero() && s.Lost != nil {
		return append([]string{""},
			paragraphs(w, "Does fairwayd run on this host? If it listens elsewhere: --addr unix:/path or https://host, or "+
				"FAIRWAY_ADDR.")...)
	}
	if s.Received.IsZero() {
		return []string{"", " Waiting for the first second from the server."}
	}
	height := s.Host.Height()
	p.small = w < gridWidth || height < gridHeight
	lines := []string{clip(p.summary(s, w), w)}
	if p.small {
		lines = append(lines, clip(fmt.Sprintf(" Terminal is %dx%d; the grid needs %dx%d.", w, height, gridWidth,
			gridHeight), w))
	}
	if p.asTable || p.small {
		cols := ForwarderColumnsIn(s, w)
		lines = append(lines, s.Bold(clip(Heading(cols, p.sort), w)))
		return append(lines, p.lines(s, cols, w, h-len(lines), p.selected(s))...)
	}
	lines = append(lines, rule(w))
	lines = append(lines, p.grid(s, w, h-12)...)
	lines = append(lines, p.legend(s, w), rule(w))
	if w >= 120 {
		lines = append(lines, p.panels(s, w, h-len(lines)-1)...)
		return append(lines, rule(w))
	}
	cols := Pick(ForwarderColumns(s), "node", ByOccupancy, "queue", "mdwait", "job")
	lines = append(lines, s.Bold(clip(Heading(cols, p.sort), w)))
	list := p.lines(s, cols, w, h-len(lines)-1, p.listCursor(s))
	lines = append(lines, list...)
	return append(lines, nextLine(s, w))
}

func (p *overviewPage) listCursor(s *State) topology.ForwarderID {
	if p.panel == panelList {
		return p.selected(s)
	}
	return ""
}

// summary counts the layer in one line.
func (p *overviewPage) summary(s *State, w int) string {
	if s.Stale() {
		return fmt.Sprintf(" %s, nothing newer is known of them | colour: %s (%s)",
			api.Counted(len(s.Shown.Forwarders), "forwarder"), metrics[p.metric].title, s.Key(actMetric))
	}
	n := map[remap.ForwarderState]int{}
	var moved, peak float64
	for i := range s.Shown.Forwarders {
		r := &s.Shown.Forwarders[i]
		n[r.State]++
		peak += r.PeakBytesPerSec
		if v := Sum(s.Value(r, r.ReadBytesPerSec), s.Value(r, r.WriteBytesPerSec)); v != nil {
			moved += *v
		}
	}
	rate := bandwidth(moved, peak)
	m := metrics[p.metric].title
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
		n[remap.ForwarderExcluded], n[remap.ForwarderStale], jobs, rate, m, s.Key(actMetric))
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
	at                   Address
}

// needs lists what waits for a person: open findings, waiting plans, silent forwarders.
func needs(s *State) []need {
	var out []need
	for _, f := range openFindings(s.Shown.Findings) {
		if f.Silent(s.AsOf()) {
			continue // until then it calls nobody
		}
		out = append(out, need{
			id: clean(f.ID), what: subject(f.Node) + " " + findingTitle(&f),
			sure: fmt.Sprintf("conf %.2f ", f.Confidence), tail: fmt.Sprintf("%4s %s", age(s.AsOf().Sub(f.Since)),
				stateWords(&f)),
			at: AtFinding(f.ID),
		})
	}
	for _, w := range s.Shown.Waiting {
		out = append(out, need{
			id: clean(w.ID), what: clean(w.Title), tail: fmt.Sprintf("waits %s", age(s.AsOf().Sub(w.Created))),
			at: AtPlan(w.ID),
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
			at: AtForwarder(topology.ForwarderID(first))})
	}
	return out
}

func (p *overviewPage) openNeed(s *State) tea.Cmd {
	all := needs(s)
	if p.need < 0 || p.need >= len(all) {
		s.Note = "nothing needs you"
		return nil
	}
	return s.Host.Open(all[p.need].at)
}

// Next opens the next thing that needs a person, on says one further than the last.
func (p *overviewPage) Next(s *State, on bool) tea.Cmd {
	if on {
		p.need = (p.need + 1) % max(1, len(needs(s)))
	} else {
		p.need = min(p.need, max(0, len(needs(s))-1))
	}
	return p.openNeed(s)
}

// nextLine is NEEDS YOU in one line.
func nextLine(s *State, w int) string {
	all := needs(s)
	if len(all) == 0 {
		return clip(" nothing needs you", w)
	}
	more := ""
	if len(all) > 1 {
		more = fmt.Sprintf(", %d more", len(all)-1)
	}
	open := fmt.Sprintf(" (%s to open%s)", s.Key(actNext), more)
	what, tail := fmt.Sprintf(" next: %s %s ", all[0].id, all[0].what), strings.TrimSpace(all[0].tail)
	if sure := all[0].sure; ansi.StringWidth(what+sure+tail+open) <= w { // what is wrong comes before how sure that is
		what += sure
	}
	what += tail
	return s.Bold(clip(clip(what, max(0, w-len(open)))+open, w))
}
