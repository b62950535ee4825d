package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// column is one column of a list of rows R. Width holds the space before it.
type column[R any] struct {
	name  string
	title string
	width int
	text  func(s *State, r *R) string
	// number is what the column sorts by; nil sorts by text.
	number func(r *R) *float64
}

const columnOccupancy = "occ"

func (s *State) job(r *api.ForwarderRow) string {
	if r.TopJob == "" || s.stale() || r.State == remap.ForwarderStale {
		return missing
	}
	if r.TopJobShare == nil {
		return clean(string(r.TopJob))
	}
	return clean(string(r.TopJob)) + " (" + ratio(r.TopJobShare) + "%)"
}

// columns in the order in which a wide list shows them; a narrow one keeps those of `keep`.
var columns = []column[api.ForwarderRow]{
	{name: "node", title: "NODE", width: 10,
		text: func(_ *State, r *api.ForwarderRow) string { return clean(string(r.ID)) }},
	{name: "state", title: "STATE", width: 10,
		text: func(s *State, r *api.ForwarderRow) string { return string(s.standing(r)) }},
	{name: columnOccupancy, title: "OCC", width: 5,
		text:   func(s *State, r *api.ForwarderRow) string { return ratio(s.value(r, r.Occupancy)) },
		number: func(r *api.ForwarderRow) *float64 { return r.Occupancy }},
	{name: "read", title: "READ", width: 7,
		text:   func(s *State, r *api.ForwarderRow) string { return mega(s.value(r, r.ReadBytesPerSec)) },
		number: func(r *api.ForwarderRow) *float64 { return r.ReadBytesPerSec }},
	{name: "write", title: "WRITE", width: 7,
		text:   func(s *State, r *api.ForwarderRow) string { return mega(s.value(r, r.WriteBytesPerSec)) },
		number: func(r *api.ForwarderRow) *float64 { return r.WriteBytesPerSec }},
	{name: "queue", title: "QUEUE", width: 7,
		text:   func(s *State, r *api.ForwarderRow) string { return count(s.value(r, r.QueueLen)) },
		number: func(r *api.ForwarderRow) *float64 { return r.QueueLen }},
	{name: "mdwait", title: "MDms", width: 7,
		text:   func(s *State, r *api.ForwarderRow) string { return millis(s.value(r, r.MetaWaitSeconds)) },
		number: func(r *api.ForwarderRow) *float64 { return r.MetaWaitSeconds }},
	{name: "md", title: "MD/s", width: 7,
		text:   func(s *State, r *api.ForwarderRow) string { return count(s.value(r, r.MetaOpsPerSec)) },
		number: func(r *api.ForwarderRow) *float64 { return r.MetaOpsPerSec }},
	{name: "server", title: "SRVms", width: 7,
		text:   func(s *State, r *api.ForwarderRow) string { return millis(s.value(r, r.ServerTime)) },
		number: func(r *api.ForwarderRow) *float64 { return r.ServerTime }},
	{name: "err", title: "ERR/s", width: 7,
		text:   func(s *State, r *api.ForwarderRow) string { return count(s.value(r, r.ErrorsPerSec)) },
		number: func(r *api.ForwarderRow) *float64 { return r.ErrorsPerSec }},
	{name: "clients", title: "CN", width: 6,
		text:   func(_ *State, r *api.ForwarderRow) string { return strconv.Itoa(r.Clients) },
		number: func(r *api.ForwarderRow) *float64 { c := float64(r.Clients); return &c }},
	{name: "job", title: "TOP JOB (share)", width: 20,
		text: func(s *State, r *api.ForwarderRow) string { return s.job(r) }},
}

// The columns of the overview's list beside the grid, and of one too narrow for all.
var (
	hottestColumns = []string{"node", "occ", "read", "write", "queue", "mdwait", "job"}
	narrowColumns  = []string{"node", "state", "occ", "read", "write", "queue", "mdwait", "clients", "job"}
	tinyColumns    = []string{"node", "state", "occ", "read", "write", "queue"}
)

func pick(names []string) []column[api.ForwarderRow] { return pickOf(columns, names) }

func pickOf[R any](all []column[R], names []string) []column[R] {
	out := make([]column[R], 0, len(names))
	for _, c := range all {
		if slices.Contains(names, c.name) {
			out = append(out, c)
		}
	}
	return out
}

// sorting is the order of a list, the largest number first unless reversed.
type sorting struct {
	column  string
	reverse bool
}

// parseSort reads an address's sort; an unknown column leaves the order as it is.
func parseSort[R any](o *sorting, all []column[R], text string) {
	name, reverse := strings.CutPrefix(text, "-")
	if slices.ContainsFunc(all, func(c column[R]) bool { return c.name == name }) {
		o.column, o.reverse = name, reverse
	}
}

func (o sorting) String() string {
	if o.reverse {
		return "-" + o.column
	}
	return o.column
}

// stepSort moves the order to a neighbouring column among those shown.
func stepSort[R any](o *sorting, shown []column[R], by int) {
	i := slices.IndexFunc(shown, func(c column[R]) bool { return c.name == o.column })
	o.column = shown[(max(i, 0)+by+len(shown))%len(shown)].name
}

// rows are the forwarders of the list: filtered and in order; those alike in it by what they move.
func (s *State) rows() []*api.ForwarderRow {
	rows := make([]*api.ForwarderRow, 0, len(s.Shown.Forwarders))
	for i := range s.Shown.Forwarders {
		if r := &s.Shown.Forwarders[i]; s.matches(r) {
			rows = append(rows, r)
		}
	}
	moved := func(r *api.ForwarderRow) float64 {
		all := 0.0
		for _, v := range [...]*float64{r.ReadBytesPerSec, r.WriteBytesPerSec} {
			if v != nil {
				all += *v
			}
		}
		return all
	}
	slices.SortStableFunc(rows, func(a, b *api.ForwarderRow) int { return cmp.Compare(moved(b), moved(a)) })
	sortRows(s, rows, columns, s.sort)
	return rows
}

// sortRows puts rows in an order, the unknown last either way.
func sortRows[R any](s *State, rows []*R, all []column[R], o sorting) {
	i := slices.IndexFunc(all, func(c column[R]) bool { return c.name == o.column })
	if i < 0 {
		return
	}
	by := all[i]
	slices.SortStableFunc(rows, func(a, b *R) int {
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
		if o.reverse {
			return -order
		}
		return order
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *State) matches(r *api.ForwarderRow) bool {
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

// heading is a list's column titles, the sorted one marked v or ^.
func heading[R any](cols []column[R], o sorting) string {
	line := " "
	for i, c := range cols {
		title := c.title
		if c.name == o.column {
			if o.reverse {
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
func (s *State) row(r *api.ForwarderRow, cols []column[api.ForwarderRow]) string {
	return string(mark(s.standing(r), r.Plan != "")) + cells(s, r, cols)
}

func cells[R any](s *State, r *R, cols []column[R]) string {
	line := ""
	for i, c := range cols {
		line += cell(c.text(s, r), c, i == len(cols)-1)
	}
	return line
}

// cell aligns text to the left and numbers to the right.
func cell[R any](text string, c column[R], last bool) string {
	switch {
	case c.number != nil:
		return " " + right(text, c.width-1)
	case last:
		return "  " + clip(text, c.width-2)
	}
	return left(clip(text, c.width-1), c.width)
}

// listLines draws at most h lines of the list; selected is the forwarder under the cursor, "" for
// none. What does not fit is counted in the last line.
func (s *State) listLines(cols []column[api.ForwarderRow], w, h int, selected topology.ForwarderID) []string {
	rows := s.rows()
	if len(rows) == 0 && h > 0 {
		text := " No forwarder is known yet: does an agent run on each of them?"
		if s.filter != "" {
			text = " No forwarder matches \"" + s.filter + "\"; press " + s.key(actFilter) + " to change the filter."
		}
		return []string{clip(text, w)}
	}
	at := slices.IndexFunc(rows, func(r *api.ForwarderRow) bool { return r.ID == selected })
	return s.scrolled(len(rows), at, w, h, ", or filter with /", func(i int) string { return s.row(rows[i], cols) })
}
