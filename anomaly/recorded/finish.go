package recorded

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// finish writes what is still open.
func (r *run) finish() error {
	left := slices.SortedFunc(maps.Values(r.open), func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Node, b.Node))
	})
	for _, e := range left {
		r.write(e)
	}
	return r.failed
}

// plain makes a sentence fit for one field of a CSV line without quotes.
func plain(s string) string {
	return strings.NewReplacer(",", ";", "\n", " ", `"`, "'").Replace(s)
}
