package tsdb

import (
	"math"
	"slices"
)

// LayerOccupancy is one bucket over all nodes that reported in it.
type LayerOccupancy struct {
	TimeMillis int64   `json:"t"`
	Nodes      int     `json:"nodes"`
	Min        float64 `json:"min"` // 0..1, as Mean and Max: each node counts once, whatever it reported
	Mean       float64 `json:"mean"`
	Max        float64 `json:"max"`
	// Imbalance is the standard deviation over the nodes divided by their mean: 0 when all are alike
	// or all idle.
	Imbalance float64 `json:"imbalance"`
}

// OverNodes joins the nodes' occupancies bucket by bucket, in order of time. Buckets without a node
// are missing.
func OverNodes(nodes []NodeOccupancy) []LayerOccupancy {
	shares := map[int64][]float64{}
	for _, n := range nodes {
		for _, b := range n.Buckets {
			shares[b.TimeMillis] = append(shares[b.TimeMillis], b.Share())
		}
	}
	out := make([]LayerOccupancy, 0, len(shares))
	for t, all := range shares {
		l := LayerOccupancy{TimeMillis: t, Nodes: len(all), Min: slices.Min(all), Max: slices.Max(all)}
		squares := 0.0
		for _, s := range all {
			l.Mean += s / float64(len(all))
		}
		for _, s := range all {
			squares += (s - l.Mean) * (s - l.Mean)
		}
		if l.Mean > 0 {
			l.Imbalance = math.Sqrt(squares/float64(len(all))) / l.Mean
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b LayerOccupancy) int { return int(min(1, max(-1, a.TimeMillis-b.TimeMillis))) })
	return out
}
