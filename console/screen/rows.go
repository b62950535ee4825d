package screen

import (
	"cmp"
	"slices"
	"strconv"

	"fairway/collector"
	"fairway/console/chart"
	"fairway/console/table"
	"fairway/remap"
	"fairway/webui/api"
)

// ByOccupancy is the column by which forwarders are listed first.
const ByOccupancy = "occ"

// The columns of a list of forwarders that is too narrow for all.
var (
	narrowForwarders = []string{"node", "state", "occ", "read", "write", "queue", "mdwait", "clients", "job"}
	TinyForwarders   = []string{"node", "state", "occ", "read", "write", "queue"}
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
			Text: func(r *api.ForwarderRow) string { return chart.Clean(string(r.ID)) }},
		{Name: "state", Title: "STATE", Width: 10,
			Text: func(r *api.ForwarderRow) string { return s.StandingText(r) }},
		number(ByOccupancy, "OCC", 5, chart.Ratio, func(r *api.ForwarderRow) *float64 { return r.Occupancy }),
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
		table.Column[api.ForwarderRow]{Name: "job", Title: "TOP JOB (share)", Width: 20,
			Text: func(r *api.ForwarderRow) string { return s.topJob(r) }})
}

func (s *State) topJob(r *api.ForwarderRow) string {
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

// ForwarderLine is one forwarder as a line of a list.
func ForwarderLine(s *State, r *api.ForwarderRow, cols []table.Column[api.ForwarderRow]) string {
	return string(Mark(s.Standing(r), r.Plan != "")) + table.Cells(r, cols)
}

// SortForwarders puts them in an order; those alike in it by what they move.
func SortForwarders(s *State, rows []*api.ForwarderRow, o table.Sorting) {
	moved := func(r *api.ForwarderRow) float64 {
		all := 0.0
		for _, v := range [...]*float64{r.Value(collector.ReadBytes), r.Value(collector.WriteBytes),
			r.Value(collector.RoutedBytes)} {
			if v != nil {
				all += *v
			}
		}
		return all
	}
	slices.SortStableFunc(rows, func(a, b *api.ForwarderRow) int { return cmp.Compare(moved(b), moved(a)) })
	table.Sort(rows, ForwarderColumns(s), o)
}

// Mark is the sign of a forwarder's standing in its cell; planned says that a waiting plan touches it.
func Mark(st remap.ForwarderState, planned bool) byte {
	switch st {
	case remap.ForwarderStale:
		return '?'
	case remap.ForwarderExcluded:
		return 'x'
	case remap.ForwarderSuspect:
		return '!'
	}
	if planned {
		return '>'
	}
	if st == remap.ForwarderDedicated {
		return 'd'
	}
	return ' '
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
	p := *v / of
	return &p
}
