package overview

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"

	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/table"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// gridLabel is the width of a row's number with its spaces.
const gridLabel = 5

// cellsPerRow fits whole dozens into a width; a wide terminal has room for each row's largest
// level as well.
func cellsPerRow(w int) int {
	room := w - gridLabel - 2
	if w >= 120 {
		room -= len("    row max 9")
	}
	return max(12, room/2/12*12)
}

// grid draws the cells of all forwarders, at most h rows, the cursor's row among them.
func (p *Screen) grid(s *screen.State, selected topology.ForwarderID, w, h int) []string {
	rows := s.Shown.Forwarders
	p.perRow = cellsPerRow(w)
	n := (len(rows) + p.perRow - 1) / p.perRow
	cursor := -1
	for i := range rows {
		if rows[i].ID == selected {
			cursor = i
		}
	}
	h = max(1, h)
	shown := min(n, h)
	if n > h {
		shown = max(1, h-1)
	}
	first := table.Window(max(cursor, 0)/p.perRow, n, shown)
	chosen := p.chosenPlan(s)
	var out []string
	for r := first; r < first+shown; r++ {
		out = append(out, p.gridRow(s, chosen, r*p.perRow, min(len(rows), (r+1)*p.perRow), cursor, w))
	}
	if n > shown {
		out = append(out, chart.Clip(fmt.Sprintf(" : %d of %d rows; move down for the others, or %s for a table", shown,
			n,
			s.Key(screen.ActTable)), w))
	}
	return out
}

// chosenPlan is the plan whose forwarders are marked: of the need under the cursor, else of the first that has one.
func (p *Screen) chosenPlan(s *screen.State) string {
	waits := func(c *advise.Card) bool { return c.Action != nil && c.Action.Name == remap.ActApprove }
	if p.panel == panelNeeds && p.need < len(s.Shown.Needs) && waits(&s.Shown.Needs[p.need]) {
		return s.Shown.Needs[p.need].Plan
	}
	for i := range s.Shown.Needs {
		if c := &s.Shown.Needs[i]; waits(c) {
			return c.Plan
		}
	}
	return ""
}

// gridRow draws the cells from..to-1. The control sequence of a level is written only where it
// changes, which keeps a row that changes every second cheap on the wire.
func (p *Screen) gridRow(s *screen.State, chosen string, from, to, cursor, w int) string {
	pal := s.Palette
	b := chart.NewPainter(pal)
	b.Grow(512)
	fmt.Fprintf(b, " %03d ", from)
	top, extra := byte('-'), 0
	pending := byte(0) // the mark of the cell before, not yet written
	flush := func(opens bool) {
		switch {
		case opens && (pending == ' ' || pending == 0):
			if pending == 0 {
				extra++
			}
			b.Wear("")
			b.WriteByte('[')
		case opens:
			b.Wear("")
			b.WriteByte(pending)
			b.WriteByte('[')
			extra++
		case pending == '!':
			b.Wear(pal.Slow)
			b.WriteByte(pending)
		case pending != 0:
			b.Wear("")
			b.WriteByte(pending)
		}
		pending = 0
	}
	for i := from; i < to; i++ {
		r := &s.Shown.Forwarders[i]
		flush(i == cursor)
		sign := s.Sign(r)
		symbol, m := level(r, p.metric), sign[1]
		switch {
		case sign[0] == '?':
			symbol = '?' // suspect: its level is in its line
		case m == '?' || m == 'x': // no level: the mark takes its place
			symbol, m = m, ' '
		default:
			top = max(top, symbol) // '-', '.' and the digits follow each other
			if m == ' ' && r.Plan != "" && r.Plan == chosen {
				m = '>'
			}
		}
		if symbol >= '0' && symbol <= '9' {
			b.Wear(pal.Level[symbol-'0'])
		} else {
			b.Wear("")
		}
		b.WriteByte(symbol)
		pending = m
		if i == cursor {
			b.Wear("")
			b.WriteByte(m)
			b.WriteByte(']')
			pending = 0
			extra++
		}
	}
	flush(false)
	b.Wear("")
	if w >= 120 {
		pad := (p.perRow-(to-from))*2 + 4 - extra
		fmt.Fprintf(b, "%*srow max %c", max(1, pad), "", top)
	}
	return b.Painted()
}

// legend explains the cells and names the one under the cursor.
func legend(s *screen.State, full string, r *api.ForwarderRow, w int) string {
	at := ""
	if r.ID != "" {
		at = "[ ] " + chart.Clean(string(r.ID)) + " " + s.StandingText(r)
	}
	text := " . idle  0-9 tenths of " + full +
		"  ! slow  ?! suspect  x drained  d dedicated  > plan  ? silent"
	if ansi.StringWidth(text+at) >= w {
		text = " . idle 0-9 slowness ! slow ?! suspect x drained > plan ? silent"
		if w < 110 {
			at = "[ ] " + chart.Clean(string(r.ID))
		}
	}
	return chart.Ends(text, at+" ", w)
}

// The smallest terminal that holds the grid.
const (
	gridWidth  = 80
	gridHeight = 24
)

// metric is what the grid's levels show.
type metric struct {
	name  string // in addresses
	title string
	full  string // what ten tenths are
}

// metrics are how slow a forwarder is, and api.ForwarderScales.
var metrics = func() []metric {
	all := []metric{{"slow", "slowness", "50 times its peers, log scale"}, {"occ", "occupancy", "the last hour"}}
	for _, s := range api.ScalesOf(topology.Forwarder) {
		all = append(all, metric{s.Name, s.Label, s.FullText()})
	}
	return all
}()

// columns are what lists are ordered by when the grid shows a metric.
var columns = map[string]string{"slow": screen.BySlowness, "occ": "occ", "bw": "moves", "queue": "queue",
	"mdwait": "mdwait", "err": "errors"}

// level is the level of a forwarder's cell: a digit, '.' or '-'.
func level(r *api.ForwarderRow, metric int) byte {
	if metric < len(r.Levels) {
		return r.Levels[metric]
	}
	return '-' // of a server that does not send it
}
