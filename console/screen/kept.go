package screen

import "fairway/console/table"

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
