package layout

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// Pair is what a forwarder asked of one storage target in a second: operations of one class, answered, their bytes,
// and the mean seconds of an answer.
type Pair struct {
	Forwarder topology.NodeID
	Target    topology.TargetID
	Class     failslow.Class
	Ops       float64
	Bytes     float64
	Took      float64
}

const (
	// fewForwarders are needed at a target: fewer do not show whether it or the forwarder is slow.
	fewForwarders = 3
	// fewAnswers a second say nothing of a pair.
	fewAnswers = 1
)

// Rows takes from the forwarders' times what their storage targets need: of each target the median over the forwarders
// that asked it for the same, about as large. What is left is the forwarder's own, as the second of a router: the
// number of requests under way if all targets were alike. A slow target moves its whole column, and nobody's row.
func Rows(pairs []Pair) []Router {
	columns := map[column][]float64{}
	all := []float64{}
	use := pairs[:0:0]
	for _, p := range pairs {
		if p.Ops >= fewAnswers && p.Took > 0 && !math.IsInf(p.Took, 1) {
			use = append(use, p)
			columns[p.column()] = append(columns[p.column()], math.Log(p.Took))
		}
	}
	sums := map[topology.NodeID]*rowSum{}
	for _, p := range use {
		times := columns[p.column()]
		if len(times) < fewForwarders {
			continue
		}
		b := anomaly.Median(times)
		all = append(all, b)
		s := sums[p.Forwarder]
		if s == nil {
			s = &rowSum{}
			sums[p.Forwarder] = s
		}
		s.ops, s.bytes, s.apart = s.ops+p.Ops, s.bytes+p.Bytes, s.apart+p.Ops*(math.Log(p.Took)-b)
	}
	if len(all) == 0 {
		return nil
	}
	usual := anomaly.Median(all)
	var rows []Router
	for id, s := range maps.All(sums) {
		rows = append(rows, Router{Node: id, Group: "storage", Messages: s.ops, Bytes: s.bytes, BuffersFree: math.NaN(),
			Inside: s.ops * math.Exp(s.apart/s.ops+usual)})
	}
	slices.SortFunc(rows, func(a, b Router) int { return cmp.Compare(a.Node, b.Node) })
	return rows
}

type rowSum struct{ ops, bytes, apart float64 }

// column is a target, a class and an octave of request size.
type column struct {
	target topology.TargetID
	class  failslow.Class
	size   int
}

func (p *Pair) column() column {
	return column{p.Target, p.Class, int(math.Round(math.Log2(max(p.Bytes/p.Ops, 1))))}
}
