package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"fairway/collector/topology"
	"fairway/remap"
)

// column is one column of the forwarder list. Width holds the space before it.
type column struct {
	name  string
	title string
	width int
	text  func(s *State, r *ForwarderRow) string
	// number is what the column sorts by; nil sorts by text.
	number func(r *ForwarderRow) *float64
}

const columnOccupancy = "occ"

func (s *State) job(r *ForwarderRow) string {
	if r.TopJob == "" || s.stale() || r.State == remap.ForwarderStale {
		return missing
	}
	if r.TopJobShare == nil {
		return clean(string(r.TopJob))
	}
	return clean(string(r.TopJob)) + " (" + ratio(r.TopJobShare) + "%)"
}

// columns in the order in which a wide list shows them; a narrow one keeps those of `keep`.
var columns = []column{
	{name: "node", title: "NODE", width: 10, text: func(_ *State, r *ForwarderRow) string { return clean(string(r.ID)) }},
	{name: "state", title: "STATE", width: 10, text: func(s *State, r *ForwarderRow) string { return string(s.standing(r)) }},
	{name: columnOccupancy, title: "OCC", width: 5, text: func(s *State, r *ForwarderRow) string { return ratio(s.value(r, r.Occupancy)) },
		number: func(r *ForwarderRow) *float64 { return r.Occupancy }},
	{name: "read", title: "READ", width: 7, text: func(s *State, r *ForwarderRow) string { return mega(s.value(r, r.ReadBytesPerSec)) },
		number: func(r *ForwarderRow) *float64 { return r.ReadBytesPerSec }},
	{name: "write", title: "WRITE", width: 7, text: func(s *State, r *ForwarderRow) string { return mega(s.value(r, r.WriteBytesPerSec)) },
		number: func(r *ForwarderRow) *float64 { return r.WriteBytesPerSec }},
	{name: "queue", title: "QUEUE", width: 7, text: func(s *State, r *ForwarderRow) string { return count(s.value(r, r.QueueLen)) },
		number: func(r *ForwarderRow) *float64 { return r.QueueLen }},
	{name: "mdwait", title: "MDms", width: 7, text: func(s *State, r *ForwarderRow) string { return millis(s.value(r, r.MetaWaitSeconds)) },
		number: func(r *ForwarderRow) *float64 { return r.MetaWaitSeconds }},
	{name: "md", title: "MD/s", width: 7, text: func(s *State, r *ForwarderRow) string { return count(s.value(r, r.MetaOpsPerSec)) },
		number: func(r *ForwarderRow) *float64 { return r.MetaOpsPerSec }},
	{name: "server", title: "SRVms", width: 7, text: func(s *State, r *ForwarderRow) string { return millis(s.value(r, r.ServerTime)) },
		number: func(r *ForwarderRow) *float64 { return r.ServerTime }},
	{name: "err", title: "ERR/s", width: 7, text: func(s *State, r *ForwarderRow) string { return count(s.value(r, r.ErrorsPerSec)) },
		number: func(r *ForwarderRow) *float64 { return r.ErrorsPerSec }},
	{name: "clients", title: "CN", width: 6, text: func(_ *State, r *ForwarderRow) string { return strconv.Itoa(r.Clients) },
		number: func(r *ForwarderRow) *float64 { c := float64(r.Clients); return &c }},
	{name: "job", title: "TOP JOB (share)", width: 20, text: func(s *State, r *ForwarderRow) string { return s.job(r) }},
}

// The columns of the overview's list beside the grid, and of one too narrow for all.
var (
	hottestColumns = []string{"node", "occ", "read", "write", "queue", "mdwait", "job"}
	narrowColumns  = []string{"node", "state", "occ", "read", "write", "queue", "mdwait", "clients", "job"}
	tinyColumns    = []string{"node", "state", "occ", "read", "write", "queue"}
)

func pick(names []string) []column {
	out := make([]column, 0, len(names))
	for _, c := range columns {
		if slices.Contains(names, c.name) {
			out = append(out, c)
		}
	}
	return out
}

// sorting is the order of the forwarder list, the largest number first unless reversed.
type sorting struct {
	column  string
	reverse bool
}

// parse reads an address's sort; an unknown column leaves the order as it is.
func (o *sorting) parse(text string) {
	name, reverse := strings.CutPrefix(text, "-")
	if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
		o.column, o.reverse = name, reverse
	}
}

func (o sorting) String() string {
	if o.reverse {
		return "-" + o.column
	}
	return o.column
}

// step moves the order to a neighbouring column among those shown.
func (o *sorting) step(shown []column, by int) {
	i := slices.IndexFunc(shown, func(c column) bool { return c.name == o.column })
	o.column = shown[(max(i, 0)+by+len(shown))%len(shown)].name
}

// rows are the forwarders of the list: filtered and in order. Unknown values come last either way.
func (s *State) rows() []*ForwarderRow {
	rows := make([]*ForwarderRow, 0, len(s.Shown.Forwarders))
	for i := range s.Shown.Forwarders {
		if r := &s.Shown.Forwarders[i]; s.matches(r) {
			rows = append(rows, r)
		}
	}
	i := slices.IndexFunc(columns, func(c column) bool { return c.name == s.sort.column })
	if i < 0 {
		return rows
	}
	by := columns[i]
	slices.SortStableFunc(rows, func(a, b *ForwarderRow) int {
		order := 0
		if by.number == nil {
			order = strings.Compare(by.text(s, a), by.text(s, b))
		} else {
			x, y := by.number(a), by.number(b)
			if x == nil || y == nil {
				return cmp.Compare(boolInt(x == nil), boolInt(y == nil))
			}
			order = cmp.Compare(*y, *x)
		}
		if s.sort.reverse {
			return -order
		}
		return order
	})
	return rows
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *State) matches(r *ForwarderRow) bool {
	if s.filter == "" {
		return true
	}
	f := strings.ToLower(s.filter)
	for _, t := range []string{string(r.ID), string(r.State), string(r.TopJob), r.Rack} {
		if strings.Contains(strings.ToLower(t), f) {
			return true
		}
	}
	return false
}

// heading is the list's column titles, the sorted one marked v or ^.
func (s *State) heading(cols []column) string {
	line := " "
	for i, c := range cols {
		title := c.title
		if c.name == s.sort.column {
			if s.sort.reverse {
				title = "^" + title
			} else {
				title = "v" + title
			}
		}
		line += cell(title, c, i == len(cols)-1)
	}
	return line
}

// row is one forwarder as a line of the list.
func (s *State) row(r *ForwarderRow, cols []column) string {
	line := string(mark(s.standing(r), r.Plan != ""))
	for i, c := range cols {
		line += cell(c.text(s, r), c, i == len(cols)-1)
	}
	return line
}

// cell aligns text to the left and numbers to the right.
func cell(text string, c column, last bool) string {
	switch {
	case c.number != nil:
		return " " + right(text, c.width-1)
	case last:
		return "  " + clip(text, c.width-2)
	}
	return left(clip(text, c.width-1), c.width)
}

// window is the first line shown so that the selected one of n is among h.
func window(selected, n, h int) int {
	if h <= 0 || n <= h || selected < h {
		return 0
	}
	return min(selected-h+1, n-h)
}

// listLines draws at most h lines of the list; selected is the forwarder under the cursor, "" for
// none. What does not fit is counted in the last line.
func (s *State) listLines(cols []column, w, h int, selected topology.ForwarderID) []string {
	rows := s.rows()
	shown := h
	if len(rows) > h {
		shown = h - 1
	}
	at := slices.IndexFunc(rows, func(r *ForwarderRow) bool { return r.ID == selected })
	first := window(max(at, 0), len(rows), shown)
	var out []string
	for i := first; i < min(len(rows), first+shown); i++ {
		line := clip(s.row(rows[i], cols), w)
		if i == at {
			line = s.selected(line, w)
		}
		out = append(out, line)
	}
	if len(rows) > shown && h > 0 {
		out = append(out, clip(" : "+number(float64(len(rows)-shown))+" more of "+number(float64(len(rows)))+"; move down, or filter with /", w))
	}
	if len(rows) == 0 && h > 0 {
		text := " No forwarder is known yet: does an agent run on each of them?"
		if s.filter != "" {
			text = " No forwarder matches \"" + s.filter + "\"; press / to change the filter."
		}
		out = append(out, clip(text, w))
	}
	return out
}

// selected marks the line under the cursor: reverse video, and a sign where there is none.
func (s *State) selected(line string, w int) string {
	if s.Palette.reverse == "" {
		return ">" + clip(line, w-1)[min(1, len(line)):]
	}
	return s.Palette.paint(s.Palette.reverse, left(line, w))
}
