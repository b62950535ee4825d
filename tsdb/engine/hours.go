package engine

import (
	"context"
	"slices"
)

// Hours lists the hours, as their Unix seconds, that the store may have samples of, ascending.
func (db *DB) Hours(ctx context.Context) ([]int64, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	v := db.view.Load()
	var out []int64
	for _, f := range v.files {
		out = append(out, f.hour)
	}
	for _, b := range v.open {
		out = append(out, floorDiv(b.start, fileSeconds)*fileSeconds)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
