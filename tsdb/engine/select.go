package engine

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/tier"
)

// nodeSelection is one node's part of a Select.
type nodeSelection struct {
	node   int
	points []tsdb.Point
	acc    tsdb.Figures // of the bucket that is being filled
	bucket int64        // its start, Unix seconds
}

// selection answers a Select span by span.
type selection struct {
	r              *block.Reader
	metric         collector.Metric
	from, to, step int64 // seconds
	agg            tsdb.Agg
	col, before    column.Column
}

// Select implements Store. It takes no lock that a writer holds.
func (db *DB) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	from, to := secondRange(q.FromMillis, q.ToMillis)
	spans, err := db.head.blocks.Spans(from, to)
	if err != nil {
		return nil, fmt.Errorf("select: %w", err)
	}
	nodes := make([]nodeSelection, len(q.Nodes))
	for i, name := range q.Nodes {
		nodes[i].node = db.head.nodes.number(name)
	}
	const few = 8 // nodes
	r := db.head.readers.Get(len(q.Nodes) <= few)
	sel := selection{r: r, metric: q.Metric, from: from, to: to, step: max(tsdb.CeilSecond(q.StepMillis), 1),
		agg: q.Agg}
	parts, err := db.tiers.Parts(from, to, sel.step)
	if err != nil {
		sel.r.Release()
		return nil, fmt.Errorf("select: %w", err)
	}
	for i := range parts {
		for k := range nodes {
			if nodes[k].node >= 0 {
				sel.addTier(&parts[i], &nodes[k])
			}
		}
	}
	for i := range spans { // span by span, so that the nodes of a chunk are read together
		if err := ctx.Err(); err != nil {
			sel.r.Release()
			return nil, err
		}
		for k := range nodes {
			if nodes[k].node >= 0 {
				sel.add(&spans[i], &nodes[k])
			}
		}
	}
	if err := sel.r.Release(); err != nil {
		return nil, fmt.Errorf("select: %w", err)
	}
	var out []tsdb.Series
	for k := range nodes {
		sel.finish(&nodes[k])
		if len(nodes[k].points) > 0 {
			out = append(out, tsdb.Series{Node: q.Nodes[k], Points: nodes[k].points})
		}
	}
	return out, nil
}

// add takes a span's part of one node. A span that is all of its bucket's part is answered from
// the index.
func (s *selection) add(sp *block.Span, n *nodeSelection) {
	lo, hi := sp.Window(s.from, s.to)
	first, last := sp.Start+int64(lo), sp.Start+int64(hi)-1
	if s.step > 1 && s.agg != tsdb.AggLast && hi-lo == column.Seconds &&
		tsdb.FloorDiv(first, s.step) == tsdb.FloorDiv(last, s.step) {
		switch e, is := s.only(sp, n.node); is {
		case block.Nothing:
			return
		case block.Line:
			s.put(n, first, tsdb.Figures{Count: int64(e.Stats.Count), Sum: e.Stats.Sum, Min: e.Stats.Min,
				Max: e.Stats.Max})
			return
		}
	}
	if !s.column(sp, n.node, &s.col) {
		return
	}
	if s.step == 1 && n.points == nil {
		n.points = make([]tsdb.Point, 0, min(s.to-s.from, 3600))
	}
	if s.step == 1 && hi-lo == column.Seconds && s.col.Present == column.Full {
		n.points = appendPoints(n.points, sp.Start, &s.col)
		return
	}
	for w, word := range s.col.Present {
		for ; word != 0; word &= word - 1 {
			k := w<<6 + bits.TrailingZeros64(word)
			if k < lo || k >= hi {
				continue
			}
			sec, v := sp.Start+int64(k), s.col.V[k]
			if s.step == 1 {
				n.points = append(n.points, tsdb.Point{TimeMillis: sec * 1000, Value: v})
				continue
			}
			s.put(n, sec, tsdb.Figures{Count: 1, Sum: v, Min: v, Max: v, Last: v})
		}
	}
}

// appendPoints adds a column that has every second.
func appendPoints(points []tsdb.Point, start int64, c *column.Column) []tsdb.Point {
	at := len(points)
	points = slices.Grow(points, column.Seconds)[:at+column.Seconds]
	for k, to := 0, points[at:]; k < len(to); k++ {
		to[k] = tsdb.Point{TimeMillis: (start + int64(k)) * 1000, Value: c.V[k]}
	}
	return points
}

// put adds figures to the bucket of a second.
func (s *selection) put(n *nodeSelection, sec int64, figures tsdb.Figures) {
	if n.acc.Count == 0 || sec >= n.bucket+s.step {
		s.finish(n)
		n.bucket = tsdb.FloorDiv(sec, s.step) * s.step
	}
	n.acc.Merge(figures)
}

// finish ends the bucket that is being filled.
func (s *selection) finish(n *nodeSelection) {
	if n.acc.Count > 0 {
		v := n.acc.Value(s.agg)
		n.points = append(n.points, tsdb.Point{TimeMillis: n.bucket * 1000, Value: v})
		n.acc = tsdb.Figures{}
	}
}

// addTier takes a tier's part of one node.
func (s *selection) addTier(p *tier.Part, n *nodeSelection) {
	p.Buckets(s.agg, func(sp *block.Span, c *column.Column) bool { return s.column(sp, n.node, c) },
		func(sec int64, f tsdb.Figures) { s.put(n, sec, f) })
}

// Seconds of nodes with collector.RetiredBacklogLen are from before collector.InFlight: what is stored there as
// queue_len was all that is in flight, and the retired metric what waits. Queries get both under today's names.

// isRenamed says whether what is stored under another number may be meant by m.
func isRenamed(m collector.Metric) bool { return m == collector.QueueLen || m == collector.InFlight }

// column reads the values of the selection's metric.
func (s *selection) column(sp *block.Span, node int, c *column.Column) bool {
	found := s.r.Column(sp, node, s.metric, c)
	if !isRenamed(s.metric) || !s.r.Column(sp, node, collector.RetiredBacklogLen, &s.before) {
		return found
	}
	if s.metric == collector.InFlight {
		waiting := s.before.Present
		if !s.r.Column(sp, node, collector.QueueLen, &s.before) {
			return found
		}
		s.before.Present = s.before.Present.And(waiting)
	}
	if !found {
		c.Present = column.Mask{}
	}
	c.Overlay(&s.before)
	return c.Present != column.Mask{}
}

// only is Reader.Only of the selection's metric.
func (s *selection) only(sp *block.Span, node int) (e block.Entry, is block.Extent) {
	if isRenamed(s.metric) {
		if _, is := s.r.Only(sp, node, collector.RetiredBacklogLen); is != block.Nothing {
			return e, block.Values
		}
	}
	return s.r.Only(sp, node, s.metric)
}

// secondRange turns [from, to) in milliseconds into seconds.
func secondRange(fromMillis, toMillis int64) (from, to int64) {
	return tsdb.CeilSecond(fromMillis), tsdb.CeilSecond(toMillis)
}

var _ tsdb.Store = (*DB)(nil)
