package tsdb

import (
	"fmt"
	"slices"

	"fairway/collector/topology"
)

// Figures are what the seconds of a bucket come to.
type Figures struct {
	Count         int64
	Sum, Min, Max float64
	Last          float64 // of the newest second
}

// Merge adds other seconds of the same bucket, later ones.
func (a *Figures) Merge(b Figures) {
	if a.Count == 0 {
		*a = b
		return
	}
	a.Count += b.Count
	a.Sum += b.Sum
	a.Min, a.Max, a.Last = min(a.Min, b.Min), max(a.Max, b.Max), b.Last
}

// Value is the bucket's point.
func (a *Figures) Value(agg Agg) float64 {
	switch agg {
	case AggSum:
		return a.Sum
	case AggMin:
		return a.Min
	case AggMax:
		return a.Max
	case AggCount:
		return float64(a.Count)
	case AggLast:
		return a.Last
	}
	return a.Sum / float64(a.Count)
}

// Check gives a query its default aggregation and refuses one that no store has.
func (q *Query) Check() error {
	if q.Agg == "" {
		q.Agg = AggMean
	}
	if !slices.Contains([]Agg{AggMean, AggSum, AggMin, AggMax, AggCount, AggLast}, q.Agg) {
		return fmt.Errorf("select: unknown aggregation %q; use mean, sum, min, max, count or last", q.Agg)
	}
	return nil
}

// AddOccupied adds seconds to the bucket that begins at a second, the last one of a list or a new one.
func AddOccupied(list []OccupancyBucket, start, seconds, occupied int64) []OccupancyBucket {
	if n := len(list); n == 0 || list[n-1].TimeMillis != start*1000 {
		list = append(list, OccupancyBucket{TimeMillis: start * 1000})
	}
	b := &list[len(list)-1]
	b.Seconds += seconds
	b.Occupied += occupied
	return list
}

// FloorDiv divides and rounds down, for times before 1970 as well.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// CeilSecond rounds milliseconds up to seconds, as ranges and steps of whole seconds do.
func CeilSecond(millis int64) int64 { return -FloorDiv(-millis, 1000) }

// MeanOver is the mean of values over the numbers of what they are of, such as what requests took over how many there
// were, of the nodes of each group together, by time.
func MeanOver[K comparable](values, numbers []Series, of func(topology.NodeID) K) map[K]map[int64]float64 {
	weights := map[topology.NodeID]map[int64]float64{}
	for _, one := range numbers {
		weights[one.Node] = map[int64]float64{}
		for _, p := range one.Points {
			weights[one.Node][p.TimeMillis] = p.Value
		}
	}
	type sum struct{ weight, value float64 }
	sums := map[K]map[int64]sum{}
	for _, one := range values {
		k := of(one.Node)
		for _, p := range one.Points {
			if w := weights[one.Node][p.TimeMillis]; w > 0 {
				if sums[k] == nil {
					sums[k] = map[int64]sum{}
				}
				s := sums[k][p.TimeMillis]
				sums[k][p.TimeMillis] = sum{s.weight + w, s.value + w*p.Value}
			}
		}
	}
	out := map[K]map[int64]float64{}
	for k, times := range sums {
		out[k] = map[int64]float64{}
		for t, s := range times {
			out[k][t] = s.value / s.weight
		}
	}
	return out
}
