package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// Raw reads the seconds of one metric in [fromMillis, toMillis). It calls put for every sample, the
// samples of one node and second in the order in which they were written, so that the last counts.
type Raw func(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis, toMillis int64,
	put func(node topology.NodeID, second int64, v float64)) error

// Span finds, to the hour, the first and the last sample of a metric of some nodes in [fromMillis, toMillis); ok is
// false where it has none.
type Span func(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis,
	toMillis int64) (firstMillis, lastMillis int64, ok bool, err error)

// Reader answers a store's queries by two kinds of question to its server.
type Reader struct {
	Raw  Raw
	Span Span
}

// Bounds of one question to the server: a question grows with the names in it, and an answer with
// the time it spans.
const (
	namesPerAsk   = 200
	bytesPerAsk   = 8 << 10
	secondsPerAsk = 3600
	// Longer ranges are first cut to where the server has anything.
	longRange = 48 * 3600
)

// seconds are one node's values by second.
type seconds map[int64]float64

// fetch reads one hour of some nodes.
func (r *Reader) fetch(ctx context.Context, nodes []topology.NodeID, m collector.Metric, from,
	to int64) (map[topology.NodeID]seconds, error) {
	out := make(map[topology.NodeID]seconds, len(nodes))
	err := r.Raw(ctx, nodes, m, from*1000, to*1000, func(node topology.NodeID, second int64, v float64) {
		if second < from || second >= to {
			return
		}
		s := out[node]
		if s == nil {
			s = make(seconds, min(to-from, secondsPerAsk))
			out[node] = s
		}
		s[second] = v
	})
	return out, err
}

// asks cuts a list of names into what one question may hold.
func asks(nodes []topology.NodeID) (out [][]topology.NodeID) {
	from, size := 0, 0
	for i, n := range nodes {
		if size += len(n) + 8; i > from && (size > bytesPerAsk || i-from >= namesPerAsk) {
			out = append(out, nodes[from:i])
			from, size = i, len(n)+8
		}
	}
	if from < len(nodes) {
		out = append(out, nodes[from:])
	}
	return out
}

// bounded cuts a range to the times that a server can have: 1970 to 2262.
func bounded(fromMillis, toMillis int64) (from, to int64) {
	const latest = 9_223_372_036
	return min(max(tsdb.CeilSecond(fromMillis), 0), latest), min(max(tsdb.CeilSecond(toMillis), 0), latest)
}

// bucket is what the seconds of one step come to.
type bucket struct {
	start int64
	tsdb.Figures
}

// Select answers tsdb.Store's Select from raw seconds, hour by hour.
func (r *Reader) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if err := q.Check(); err != nil || q.Metric.String() == "" {
		return nil, err
	}
	step := max(tsdb.CeilSecond(q.StepMillis), 1)
	buckets := map[topology.NodeID][]bucket{}
	for _, nodes := range asks(q.Nodes) {
		from, to, err := r.clip(ctx, nodes, q.FromMillis, q.ToMillis, q.Metric)
		if err != nil {
			return nil, fmt.Errorf("select: %w", err)
		}
		for at := from; at < to; at += secondsPerAsk {
			found, err := r.fetch(ctx, nodes, q.Metric, at, min(at+secondsPerAsk, to))
			if err != nil {
				return nil, fmt.Errorf("select: %w", err)
			}
			for node, s := range found {
				buckets[node] = fold(buckets[node], s, step)
			}
		}
	}
	var out []tsdb.Series
	for _, node := range q.Nodes {
		list := buckets[node]
		if len(list) == 0 {
			continue
		}
		s := tsdb.Series{Node: node, Points: make([]tsdb.Point, len(list))}
		for i := range list {
			s.Points[i] = tsdb.Point{TimeMillis: list[i].start * 1000, Value: list[i].Value(q.Agg)}
		}
		out = append(out, s)
	}
	return out, nil
}

// clip gives the whole seconds of a range in which the server has any of the metrics.
func (r *Reader) clip(ctx context.Context, nodes []topology.NodeID, fromMillis, toMillis int64,
	metrics ...collector.Metric) (from, to int64, err error) {
	from, to = bounded(fromMillis, toMillis)
	if to-from <= longRange {
		return from, to, nil
	}
	start, end := to, from
	for _, m := range metrics {
		first, last, ok, err := r.Span(ctx, nodes, m, from*1000, to*1000)
		if err != nil {
			return 0, 0, err
		}
		if ok {
			start, end = min(start, tsdb.FloorDiv(first, 1000)), max(end, tsdb.FloorDiv(last, 1000)+1)
		}
	}
	return max(from, start), min(to, end), nil
}

// Hours lists the hours, as their Unix seconds, between the first and the last sample of any node.
func (r *Reader) Hours(ctx context.Context, list []tsdb.NodeInfo) (hours []int64, err error) {
	first, last := int64(latestSecond), int64(-1)
	byMetric := map[collector.Metric][]topology.NodeID{}
	for _, n := range list {
		for _, m := range n.Metrics {
			byMetric[m] = append(byMetric[m], n.Node)
		}
	}
	for m, all := range byMetric {
		for _, nodes := range asks(all) {
			from, to, ok, err := r.Span(ctx, nodes, m, 0, latestSecond*1000)
			if err != nil {
				return nil, err
			}
			if ok {
				first, last = min(first, tsdb.FloorDiv(from, 1000)), max(last, tsdb.FloorDiv(to, 1000))
			}
		}
	}
	for hour := tsdb.FloorDiv(first, secondsPerAsk) * secondsPerAsk; hour <= last; hour += secondsPerAsk {
		hours = append(hours, hour)
	}
	return hours, nil
}

// fold adds seconds, which are later than those in list or in its last bucket.
func fold(list []bucket, s seconds, step int64) []bucket {
	for _, second := range slices.Sorted(maps.Keys(s)) {
		start := tsdb.FloorDiv(second, step) * step
		if n := len(list); n == 0 || list[n-1].start != start {
			list = append(list, bucket{start: start})
		}
		v := s[second]
		list[len(list)-1].Merge(tsdb.Figures{Count: 1, Sum: v, Min: v, Max: v, Last: v})
	}
	return list
}

// Occupancy answers tsdb.Store's Occupancy from raw seconds, hour by hour.
func (r *Reader) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if q.Threshold == 0 {
		q.Threshold = tsdb.DefaultThreshold
	}
	var known []topology.NodeID
	for _, node := range q.Nodes {
		if q.PeakBytesPerSec[node] > 0 {
			known = append(known, node)
		}
	}
	c := counter{first: tsdb.CeilSecond(q.FromMillis), step: tsdb.CeilSecond(q.BucketMillis),
		found: map[topology.NodeID][]tsdb.OccupancyBucket{}}
	for _, nodes := range asks(known) {
		from, to, err := r.clip(ctx, nodes, q.FromMillis, q.ToMillis, collector.ReadBytes, collector.WriteBytes)
		if err != nil {
			return nil, fmt.Errorf("occupancy: %w", err)
		}
		for at := from; at < to; at += secondsPerAsk {
			end := min(at+secondsPerAsk, to)
			read, err := r.fetch(ctx, nodes, collector.ReadBytes, at, end)
			if err != nil {
				return nil, fmt.Errorf("occupancy: %w", err)
			}
			write, err := r.fetch(ctx, nodes, collector.WriteBytes, at, end)
			if err != nil {
				return nil, fmt.Errorf("occupancy: %w", err)
			}
			for _, node := range nodes {
				c.count(node, read[node], write[node], q.Threshold*q.PeakBytesPerSec[node])
			}
		}
	}
	var out []tsdb.NodeOccupancy
	for _, node := range q.Nodes {
		if b := c.found[node]; len(b) > 0 {
			out = append(out, tsdb.NodeOccupancy{Node: node, Buckets: b})
		}
	}
	return out, nil
}

// counter counts occupied seconds by bucket.
type counter struct {
	first, step int64 // seconds; step 0 is one bucket that starts at first
	found       map[topology.NodeID][]tsdb.OccupancyBucket
}

func (c *counter) count(node topology.NodeID, read, write seconds, limit float64) {
	order := slices.AppendSeq(slices.Collect(maps.Keys(read)), maps.Keys(write))
	slices.Sort(order)
	for _, second := range slices.Compact(order) {
		start := c.first
		if c.step > 0 {
			start = tsdb.FloorDiv(second, c.step) * c.step
		}
		occupied := int64(0)
		if read[second]+write[second] >= limit {
			occupied = 1
		}
		c.found[node] = tsdb.AddOccupied(c.found[node], start, 1, occupied)
	}
}
