package screen

import (
	"time"

	"fairway/console/chart"
	"fairway/console/table"
)

// Kept is how a list was left: its order, its filter and the columns that it is without.
type Kept struct {
	Sort   string   `json:"sort,omitempty"`
	Filter string   `json:"filter,omitempty"`
	Hidden []string `json:"hidden,omitempty"`
}

// Keeper is a list that opens as it was left, but for what its address names.
type Keeper interface {
	Left() Kept
	Restore(k Kept)
}

// LeftOf is how a list with columns is left.
func LeftOf(o table.Sorting, filter string) Kept {
	return Kept{Sort: o.String(), Filter: filter, Hidden: o.Hidden}
}

// Restore gives a list the order and columns that it was left with.
func Restore[R any](o *table.Sorting, all []table.Column[R], k Kept) {
	table.ParseSort(o, all, k.Sort)
	o.Hidden = k.Hidden
}

// Arrange changes a list's order or columns; false: the key means something else.
func Arrange[R any](o *table.Sorting, all []table.Column[R], a Action) bool {
	shown := table.Shown(all, *o)
	switch a {
	case ActSortPrev:
		table.StepSort(o, shown, -1)
	case ActSortNext:
		table.StepSort(o, shown, 1)
	case ActReverse:
		o.Reverse = !o.Reverse
	case ActHide:
		if hidden := o.Column; len(shown) > 1 {
			table.StepSort(o, shown, 1)
			o.Hidden = append(o.Hidden[:len(o.Hidden):len(o.Hidden)], hidden)
		}
	case ActShowAll:
		o.Hidden = nil
	default:
		return false
	}
	return true
}

// Sorted is a page's list that its columns put in order; it opens as it was left.
type Sorted[R any] struct {
	Sort   table.Sorting
	Cursor int
	all    func(now time.Time) []table.Column[R]
}

// NewSorted is a list in an order, unless an address names another one.
func NewSorted[R any](all func(now time.Time) []table.Column[R], first table.Sorting, sort string) Sorted[R] {
	table.ParseSort(&first, all(time.Time{}), sort)
	return Sorted[R]{Sort: first, all: all}
}

// Left is how the list is left.
func (l *Sorted[R]) Left() Kept { return LeftOf(l.Sort, "") }

// Restore is how it was left.
func (l *Sorted[R]) Restore(k Kept) { Restore(&l.Sort, l.all(time.Time{}), k) }

// Rows are the values in their order.
func (l *Sorted[R]) Rows(s *State, values []R) []*R {
	rows := make([]*R, len(values))
	for i := range rows {
		rows[i] = &values[i]
	}
	table.Sort(rows, l.all(s.Now), l.Sort)
	return rows
}

// Export is what an export holds.
func (l *Sorted[R]) Export(s *State, values []R) [][]string {
	return table.Texts(l.all(s.Now), l.Rows(s, values))
}

// Chosen is the row under the cursor; nil without rows.
func (l *Sorted[R]) Chosen(s *State, values []R) *R {
	if rows := l.Rows(s, values); l.Cursor < len(rows) {
		return rows[l.Cursor]
	}
	return nil
}

// Arrange takes a key that orders the list or moves in it; cols are those that can be shown.
func (l *Sorted[R]) Arrange(a Action, cols []table.Column[R], n int) {
	if !Arrange(&l.Sort, cols, a) {
		l.Cursor = a.Moved(l.Cursor, n)
	}
}

// Lines draws the list under its heading, but for the columns that are hidden.
func (l *Sorted[R]) Lines(s *State, values []R, cols []table.Column[R], w, h int) []string {
	rows, cols := l.Rows(s, values), table.Shown(cols, l.Sort)
	l.Cursor = max(0, min(l.Cursor, len(rows)-1))
	return append([]string{s.Bold(chart.Clip(table.Heading(cols, l.Sort), w))}, table.Lines(s.Palette, len(rows),
		l.Cursor, w, h-1, "", func(i int) string { return " " + table.Cells(rows[i], cols) })...)
}
