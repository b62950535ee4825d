package tsdb

import (
	"math"
	"testing"
)

func TestOverNodes(t *testing.T) {
	got := OverNodes([]NodeOccupancy{
		{Node: "a", Buckets: []OccupancyBucket{{TimeMillis: 1000, Occupied: 2, Seconds: 10},
			{TimeMillis: 2000, Occupied: 0, Seconds: 10}}},
		{Node: "b", Buckets: []OccupancyBucket{{TimeMillis: 1000, Occupied: 5, Seconds: 5}}},
	})
	if len(got) != 2 || got[1] != (LayerOccupancy{TimeMillis: 2000, Nodes: 1}) {
		t.Fatalf("%+v", got)
	}
	b := got[0]
	if b.TimeMillis != 1000 || b.Nodes != 2 || b.Min != 0.2 || b.Max != 1 || math.Abs(b.Mean-0.6) > 1e-12 ||
		math.Abs(b.Imbalance-0.4/0.6) > 1e-12 {
		t.Errorf("%+v", b)
	}
}
