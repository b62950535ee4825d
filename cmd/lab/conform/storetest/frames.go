package storetest

import (
	"context"

	"fairway/collector"
	"fairway/tsdb"
)

// Frames answers queries from frames in memory, as a store that has taken them would: each second by itself, whatever
// the query's step.
type Frames []collector.Frame

// Select returns a series for each node of the query.
func (all Frames) Select(_ context.Context, q tsdb.Query) (out []tsdb.Series, _ error) {
	for _, n := range q.Nodes {
		s := tsdb.Series{Node: n}
		for i := range all {
			if f := &all[i]; f.Node == n && f.TimeMillis >= q.FromMillis && f.TimeMillis < q.ToMillis {
				if v, ok := f.Value(q.Metric); ok {
					s.Points = append(s.Points, tsdb.Point{TimeMillis: f.TimeMillis, Value: v})
				}
			}
		}
		out = append(out, s)
	}
	return out, nil
}
