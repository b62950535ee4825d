package tsdb

import (
	"context"
	"fmt"
	"math"
	"slices"

	"fairway/collector"
	"fairway/collector/topology"
)

// span is 120 seconds for which the store has rows, and where they are; later pieces win.
type span struct {
	start int64
	open  []*openBlock
}

// spans lists the spans of a view that overlap [from, to), Unix seconds, in order of time.
func (v *view) spans(from, to int64) []span {
	var out []span
	for _, b := range v.open {
		if b.start >= to || b.start+BlockSeconds <= from {
			continue
		}
		if k := len(out) - 1; k >= 0 && out[k].start == b.start {
			out[k].open = append(out[k].open, b)
			continue
		}
		out = append(out, span{b.start, []*openBlock{b}})
	}
	return out
}

// column reads a node's 120 values, absentBits where there is none; ok is false without any.
func (s *span) column(node int, m collector.Metric, dst *[BlockSeconds]uint64) (ok bool) {
	for _, b := range s.open {
		n := b.node(node)
		if n == nil {
			continue
		}
		slot := n.layout.slotOf(m)
		if slot < 0 {
			continue
		}
		if !ok {
			n.column(slot, dst)
			ok = true
			continue
		}
		var over [BlockSeconds]uint64
		n.column(slot, &over)
		for i, v := range over {
			if v != absentBits {
				dst[i] = v
			}
		}
	}
	return ok
}

// window returns which of a span's seconds lie in [from, to).
func (s *span) window(from, to int64) (lo, hi int) {
	return int(max(from-s.start, 0)), int(min(to-s.start, BlockSeconds))
}

// secondRange turns [from, to) in milliseconds into seconds.
func secondRange(fromMillis, toMillis int64) (from, to int64) {
	return -floorDiv(-fromMillis, 1000), -floorDiv(-toMillis, 1000)
}

// stepSeconds rounds a step up to whole seconds.
func stepSeconds(millis int64) int64 { return -floorDiv(-millis, 1000) }

// Select implements Store. It takes no lock.
func (db *DB) Select(ctx context.Context, q Query) ([]Series, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	agg := q.Agg
	if agg == "" {
		agg = AggMean
	}
	if !slices.Contains([]Agg{AggMean, AggSum, AggMin, AggMax, AggCount}, agg) {
		return nil, fmt.Errorf("select: unknown aggregation %q; use mean, sum, min, max or count", agg)
	}
	from, to := secondRange(q.FromMillis, q.ToMillis)
	spans := db.view.Load().spans(from, to)
	var out []Series
	for _, name := range q.Nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		node := db.number(name)
		if node < 0 {
			continue
		}
		var points []Point
		if q.StepMillis <= 1000 {
			points = rawPoints(spans, node, q.Metric, from, to)
		} else {
			points = bucketPoints(spans, node, q.Metric, from, to, stepSeconds(q.StepMillis), agg)
		}
		if len(points) > 0 {
			out = append(out, Series{Node: name, Points: points})
		}
	}
	return out, nil
}

func rawPoints(spans []span, node int, m collector.Metric, from, to int64) []Point {
	var points []Point
	var col [BlockSeconds]uint64
	for i := range spans {
		s := &spans[i]
		if !s.column(node, m, &col) {
			continue
		}
		lo, hi := s.window(from, to)
		for k := lo; k < hi; k++ {
			if col[k] != absentBits {
				points = append(points, Point{(s.start + int64(k)) * 1000, math.Float64frombits(col[k])})
			}
		}
	}
	return points
}

// stats are the figures that survive any down-sampling.
type stats struct {
	count         int64
	sum, min, max float64
}

func (a *stats) add(v float64) {
	if a.count == 0 || v < a.min {
		a.min = v
	}
	if a.count == 0 || v > a.max {
		a.max = v
	}
	a.count++
	a.sum += v
}

func (a *stats) value(agg Agg) float64 {
	switch agg {
	case AggSum:
		return a.sum
	case AggMin:
		return a.min
	case AggMax:
		return a.max
	case AggCount:
		return float64(a.count)
	}
	return a.sum / float64(a.count)
}

func bucketPoints(spans []span, node int, m collector.Metric, from, to, step int64, agg Agg) []Point {
	var points []Point
	var col [BlockSeconds]uint64
	var acc stats
	bucket := int64(math.MinInt64)
	flush := func() {
		if acc.count > 0 {
			points = append(points, Point{bucket * 1000, acc.value(agg)})
		}
		acc = stats{}
	}
	for i := range spans {
		s := &spans[i]
		if !s.column(node, m, &col) {
			continue
		}
		lo, hi := s.window(from, to)
		for k := lo; k < hi; k++ {
			if col[k] == absentBits {
				continue
			}
			if sec := s.start + int64(k); sec >= bucket+step || acc.count == 0 {
				flush()
				bucket = floorDiv(sec, step) * step
			}
			acc.add(math.Float64frombits(col[k]))
		}
	}
	flush()
	return points
}

// Occupancy implements Store. It takes no lock.
func (db *DB) Occupancy(ctx context.Context, q OccupancyQuery) ([]NodeOccupancy, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	if q.Threshold == 0 {
		q.Threshold = DefaultThreshold
	}
	from, to := secondRange(q.FromMillis, q.ToMillis)
	spans := db.view.Load().spans(from, to)
	var out []NodeOccupancy
	for _, name := range q.Nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		node, peak := db.number(name), q.PeakBytesPerSec[name]
		if node < 0 || peak <= 0 {
			continue
		}
		o := occupancyOf{from: from, to: to, step: stepSeconds(q.BucketMillis), limit: q.Threshold * peak}
		for i := range spans {
			o.add(&spans[i], node)
		}
		if len(o.buckets) > 0 {
			out = append(out, NodeOccupancy{Node: topology.NodeID(name), Buckets: o.buckets})
		}
	}
	return out, nil
}

// occupancyOf counts one node's occupied seconds.
type occupancyOf struct {
	from, to, step int64
	limit          float64 // bytes/s from which a second is occupied
	buckets        []OccupancyBucket
}

func (o *occupancyOf) add(s *span, node int) {
	var read, write [BlockSeconds]uint64
	haveRead, haveWrite := s.column(node, collector.ReadBytes, &read), s.column(node, collector.WriteBytes, &write)
	lo, hi := s.window(o.from, o.to)
	for k := lo; k < hi && (haveRead || haveWrite); k++ {
		moved, known := 0.0, false
		if haveRead && read[k] != absentBits {
			moved, known = math.Float64frombits(read[k]), true
		}
		if haveWrite && write[k] != absentBits {
			moved, known = moved+math.Float64frombits(write[k]), true
		}
		if known {
			o.count(s.start+int64(k), 1, moved >= o.limit)
		}
	}
}

// count adds seconds that begin at sec, all in one bucket.
func (o *occupancyOf) count(sec, seconds int64, occupied bool) {
	start := o.from
	if o.step > 0 {
		start = floorDiv(sec, o.step) * o.step
	}
	if k := len(o.buckets); k == 0 || o.buckets[k-1].TimeMillis != start*1000 {
		o.buckets = append(o.buckets, OccupancyBucket{TimeMillis: start * 1000})
	}
	b := &o.buckets[len(o.buckets)-1]
	b.Seconds += seconds
	if occupied {
		b.Occupied += seconds
	}
}
