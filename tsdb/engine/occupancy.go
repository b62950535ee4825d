package engine

import (
	"context"
	"fmt"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
)

// occupancyOf counts one node's occupied seconds.
type occupancyOf struct {
	node           int
	from, to, step int64
	limit          float64 // bytes/s from which a second is occupied
	buckets        []tsdb.OccupancyBucket
}

// Occupancy implements Store. It takes no lock that a writer holds, and reads values only where
// the index does not suffice.
func (db *DB) Occupancy(ctx context.Context, q tsdb.OccupancyQuery) ([]tsdb.NodeOccupancy, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	if q.Threshold == 0 {
		q.Threshold = tsdb.DefaultThreshold
	}
	from, to := secondRange(q.FromMillis, q.ToMillis)
	spans, err := db.head.blocks.Spans(from, to)
	if err != nil {
		return nil, fmt.Errorf("occupancy: %w", err)
	}
	nodes := make([]occupancyOf, len(q.Nodes))
	for i, name := range q.Nodes {
		nodes[i] = occupancyOf{node: db.head.nodes.number(name), from: from, to: to,
			step:  tsdb.CeilSecond(q.BucketMillis),
			limit: q.Threshold * q.PeakBytesPerSec[name]}
	}
	parts, err := db.tiers.Parts(from, to, tsdb.CeilSecond(q.BucketMillis))
	if err != nil {
		return nil, fmt.Errorf("occupancy: %w", err)
	}
	r := db.head.readers.Get(false)
	for i := range parts {
		for k := range nodes {
			if o := &nodes[k]; o.node >= 0 && o.limit > 0 {
				parts[i].Occupied(r, o.node, o.limit, o.count)
			}
		}
	}
	for i := range spans {
		if err := ctx.Err(); err != nil {
			r.Release()
			return nil, err
		}
		for k := range nodes {
			if o := &nodes[k]; o.node >= 0 && o.limit > 0 {
				o.add(r, &spans[i])
			}
		}
	}
	if err := r.Release(); err != nil {
		return nil, fmt.Errorf("occupancy: %w", err)
	}
	var out []tsdb.NodeOccupancy
	for k := range nodes {
		if len(nodes[k].buckets) > 0 {
			out = append(out, tsdb.NodeOccupancy{Node: q.Nodes[k], Buckets: nodes[k].buckets})
		}
	}
	return out, nil
}

// add counts a span, from the index where that is enough.
func (o *occupancyOf) add(r *block.Reader, s *block.Span) {
	lo, hi := s.Window(o.from, o.to)
	first, last := s.Start+int64(lo), s.Start+int64(hi)-1
	if hi-lo == column.Seconds && (o.step == 0 || tsdb.FloorDiv(first, o.step) == tsdb.FloorDiv(last, o.step)) {
		read, isRead := r.Only(s, o.node, collector.ReadBytes)
		if isRead == block.Line && read.Stats.Count == column.Seconds && read.Limit == o.limit && read.Occupied >= 0 &&
			s.Pieces() == 1 {
			o.count(first, column.Seconds, int64(read.Occupied)) // it counts the bytes written too
			return
		}
		write, isWrite := r.Only(s, o.node, collector.WriteBytes)
		if isRead != block.Values && isWrite != block.Values {
			if isRead == block.Nothing { // then the count, if any, is with the bytes written
				read.Occupied, read.Limit = write.Occupied, write.Limit
			}
			if occupied, seconds, ok := o.fromIndex(&read, &write); ok {
				if seconds > 0 {
					o.count(first, seconds, occupied)
				}
				return
			}
		}
	}
	var moved column.Column
	r.Moved(s, o.node, &moved)
	for k := lo; k < hi; k++ {
		if moved.Present.Has(k) {
			occupied := int64(0)
			if moved.V[k] >= o.limit {
				occupied = 1
			}
			o.count(s.Start+int64(k), 1, occupied)
		}
	}
}

// fromIndex counts a whole span's seconds by its lines in the index; ok is false where it cannot.
func (o *occupancyOf) fromIndex(read, write *block.Entry) (occupied, seconds int64, ok bool) {
	if read.Stats.Count != write.Stats.Count && read.Stats.Count*write.Stats.Count != 0 ||
		read.Stats.Count == write.Stats.Count && read.Stats.Count < column.Seconds {
		return 0, 0, false // they may not be the same seconds
	}
	seconds = int64(max(read.Stats.Count, write.Stats.Count))
	switch {
	case read.Occupied >= 0 && read.Limit == o.limit:
		return int64(read.Occupied), seconds, true
	case read.Stats.Max+write.Stats.Max < o.limit:
		return 0, seconds, true
	case read.Stats.Min+write.Stats.Min >= o.limit:
		return seconds, seconds, true
	}
	return 0, 0, false
}

// count adds seconds from sec on, all in one bucket.
func (o *occupancyOf) count(sec, seconds, occupied int64) {
	start := o.from
	if o.step > 0 {
		start = tsdb.FloorDiv(sec, o.step) * o.step
	}
	o.buckets = tsdb.AddOccupied(o.buckets, start, seconds, occupied)
}
