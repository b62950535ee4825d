package screen

import (
	"slices"
	"strconv"

	"github.com/charmbracelet/x/ansi"

	"fairway/collector"
	"fairway/console/chart"
	"fairway/console/table"
	"fairway/remap"
	"fairway/webui/api"
)

// BySlowness is the column by which forwarders are listed first.
const BySlowness = "slow"

// Graph is the column with the last minutes, which is drawn and not exported.
const Graph = "graph"

// The columns of a list of forwarders that is too narrow for all.
var (
	narrowForwarders = []string{"node", "slow", "graph", "took", "moves", "queue", "occ", "job"}
	TinyForwarders   = []string{"node", "slow", "took", "moves", "queue", "occ"}
)

// ForwarderColumns are the columns of a list of forwarders, in the order in which a wide list shows them.
func ForwarderColumns(s *State) []table.Column[api.ForwarderRow] {
	number := func(name, title string, width int, text func(*float64) string,
		of func(*api.ForwarderRow) *float64) table.Column[api.ForwarderRow] {
		return table.Column[api.ForwarderRow]{Name: name, Title: title, Width: width, Number: of,
			Text: func(r *api.ForwarderRow) string { return text(s.Value(r, of(r))) }}
	}
	columns := []table.Column[api.ForwarderRow]{
		{Name: "node", Title: "NODE", Width: 10,
			Text: func(r *api.ForwarderRow) string {
				return SignNote(chart.Clean(string(r.ID)), hasNote(s, r.ID), 10)
			}},
		{Name: "state", Title: "STATE", Width: 10,
			Text: func(r *api.ForwarderRow) string { return s.StandingText(r) }},
		{Name: BySlowness, Title: "SLOW 10s", Width: slowColumn,
			Number: func(r *api.ForwarderRow) *float64 { return slowness(s, r) },
			Text:   func(r *api.ForwarderRow) string { return slowText(s, r) }},
		{Name: Graph, Title: " 5 MIN, PEERS " + lowest(s), Width: slowWidth + 3,
			Text: func(r *api.ForwarderRow) string {
				return "  " + s.Palette.SlowGraph(SlowMinutes(s, r), slowWidth, s.SignLook(s.Sign(r)))
			}},
		number("took", "LATms", 6, chart.Millis, func(r *api.ForwarderRow) *float64 { return r.Latency }),
		number("moves", "MB/s", 6, chart.Mega, func(r *api.ForwarderRow) *float64 { return moved(r) }),
		number("occ", "OCC", 5, chart.Ratio, func(r *api.ForwarderRow) *float64 { return r.Occupancy }),
	}
	for _, m := range api.ListedMetrics {
		row := m.Info()
		if row.Forwarder&collector.Rare != 0 && !slices.ContainsFunc(s.Shown.Forwarders,
			func(r api.ForwarderRow) bool { return r.Value(m) != nil }) {
			continue
		}
		columns = append(columns, number(row.Column.Name, row.Column.Title, 7,
			func(v *float64) string { return chart.Metric(m, v) },
			func(r *api.ForwarderRow) *float64 { return r.Value(m) }))
	}
	return append(columns, table.Column[api.ForwarderRow]{Name: "clients", Title: "CN", Width: 6,
		Text:   func(r *api.ForwarderRow) string { return strconv.Itoa(r.Clients) },
		Number: func(r *api.ForwarderRow) *float64 { c := float64(r.Clients); return &c }},
		table.Column[api.ForwarderRow]{Name: "job", Title: "TOP JOB (%)", Width: 20,
			Text: func(r *api.ForwarderRow) string { return s.TopJob(r) }})
}

// TopJob is the job that does most there.
func (s *State) TopJob(r *api.ForwarderRow) string {
	switch {
	case r.TopJob == "" || s.Standing(r) == remap.ForwarderStale:
		return chart.Missing
	case r.TopJobShare == nil:
		return chart.Clean(string(r.TopJob))
	}
	return chart.Clean(string(r.TopJob)) + " (" + chart.Ratio(r.TopJobShare) + "%)"
}

// ForwarderColumnsIn are the columns that fit a width.
func ForwarderColumnsIn(s *State, w int) []table.Column[api.ForwarderRow] {
	switch {
	case w >= 110:
		return ForwarderColumns(s)
	case w >= 78:
		return table.Pick(ForwarderColumns(s), narrowForwarders...)
	}
	return table.Pick(ForwarderColumns(s), TinyForwarders...)
}

// slowColumn is how wide the column is that says how slow a forwarder is: "over 100x", and a space.
const slowColumn = 10

// signed is how much of a line of a forwarder has the colour of its state: its sign, its name and how slow it is.
const signed = 3 + 10 + slowColumn

// ForwarderLine is one forwarder as a line of a list.
func ForwarderLine(s *State, r *api.ForwarderRow, cols []table.Column[api.ForwarderRow]) string {
	sign := s.Sign(r)
	line := " " + sign + table.Cells(r, cols)
	look := s.SignLook(sign)
	if look == "" {
		return line
	}
	// The state's colour ends where the graph begins.
	return s.Palette.Paint(look, ansi.Strip(ansi.Truncate(line, signed, ""))) + ansi.TruncateLeft(line, signed, "")
}

// slowText is how slow a forwarder is, or why that is not known.
func slowText(s *State, r *api.ForwarderRow) string {
	if v := s.Value(r, r.Slow); v != nil {
		return chart.Times(v)
	}
	if s.Stale() {
		return chart.Missing
	}
	switch r.State {
	case remap.ForwarderStale:
		return "silent"
	case remap.ForwarderExcluded:
		return "drained"
	case remap.ForwarderIdle:
		return "idle"
	}
	return chart.Missing // it works, and nothing can be compared
}

// slowWidth is how wide the graph of how slow a forwarder is.
const slowWidth = 15

// lowest is the step of that graph on which a forwarder is among its peers.
func lowest(s *State) string {
	if s.Palette == nil {
		return ""
	}
	return s.Palette.SlowGraph([]*float64{new(1.0)}, 1, "")
}

// SlowMinutes is what that graph shows; nothing of a replay, whose minutes are others.
func SlowMinutes(s *State, r *api.ForwarderRow) []*float64 {
	if s.Replays() {
		return nil
	}
	return s.Trend.Slow(r.ID)
}

// moved is what a forwarder moves, bytes/s.
func moved(r *api.ForwarderRow) *float64 {
	return Sum(r.Value(collector.ReadBytes), r.Value(collector.WriteBytes), r.Value(collector.RoutedBytes))
}

// SortForwarders puts them in an order; those alike in it by what they move.
func SortForwarders(s *State, rows []*api.ForwarderRow, o table.Sorting) {
	by := table.Column[api.ForwarderRow]{Name: "moved", Number: moved}
	table.Sort(rows, []table.Column[api.ForwarderRow]{by}, table.Sorting{Column: by.Name})
	table.Sort(rows, ForwarderColumns(s), o)
}

// Sum adds what is known; nil when nothing is.
func Sum(values ...*float64) *float64 {
	var total *float64
	for _, v := range values {
		if v == nil {
			continue
		}
		if total == nil {
			total = new(float64)
		}
		*total += *v
	}
	return total
}

// Part is a value in parts of another.
func Part(v *float64, of float64) *float64 {
	if v == nil || of <= 0 {
		return nil
	}
	return new(*v / of)
}
