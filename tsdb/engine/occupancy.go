package engine

import (
	"context"
	"fmt"
	"math/bits"

	"fairway/collector"
	"fairway/tsdb"
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
	spans, err := db.head.blocks.view.Load().spans(from, to)
	if err != nil {
		return nil, fmt.Errorf("occupancy: %w", err)
	}
	nodes := make([]occupancyOf, len(q.Nodes))
	for i, name := range q.Nodes {
		nodes[i] = occupancyOf{node: db.head.nodes.number(name), from: from, to: to,
			step:  tsdb.CeilSecond(q.BucketMillis),
			limit: q.Threshold * q.PeakBytesPerSec[name]}
	}
	parts, err := db.tiers.parts(from, to, tsdb.CeilSecond(q.BucketMillis))
	if err != nil {
		return nil, fmt.Errorf("occupancy: %w", err)
	}
	r := db.head.reader()
	for i := range parts {
		for k := range nodes {
			if o := &nodes[k]; o.node >= 0 && o.limit > 0 {
				o.addTier(r, &parts[i])
			}
		}
	}
	for i := range spans {
		if err := ctx.Err(); err != nil {
			r.release()
			return nil, err
		}
		for k := range nodes {
			if o := &nodes[k]; o.node >= 0 && o.limit > 0 {
				o.add(r, &spans[i])
			}
		}
	}
	if err := r.release(); err != nil {
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
func (o *occupancyOf) add(r *reader, s *span) {
	lo, hi := s.window(o.from, o.to)
	first, last := s.start+int64(lo), s.start+int64(hi)-1
	if hi-lo == BlockSeconds && (o.step == 0 || tsdb.FloorDiv(first, o.step) == tsdb.FloorDiv(last, o.step)) {
		read, isRead := r.only(s, o.node, collector.ReadBytes)
		if isRead == foundEntry && read.stats.Count == BlockSeconds && read.limit == o.limit && read.occupied >= 0 &&
			len(s.frames)+len(s.open) == 1 {
			o.count(first, BlockSeconds, int64(read.occupied)) // it counts the bytes written too
			return
		}
		write, isWrite := r.only(s, o.node, collector.WriteBytes)
		if isRead != foundValues && isWrite != foundValues {
			if isRead == foundNothing { // then the count, if any, is with the bytes written
				read.occupied, read.limit = write.occupied, write.limit
			}
			if occupied, seconds, ok := o.fromIndex(&read, &write); ok {
				if seconds > 0 {
					o.count(first, seconds, occupied)
				}
				return
			}
		}
	}
	var read, write column.Column
	haveRead, haveWrite := r.column(s, o.node, collector.ReadBytes, &read),
		r.column(s, o.node, collector.WriteBytes, &write)
	if !haveRead {
		read = column.Column{}
	}
	if haveWrite {
		for w, word := range write.Present {
			for ; word != 0; word &= word - 1 {
				k := w<<6 + bits.TrailingZeros64(word)
				if !read.Present.Has(k) {
					read.V[k] = 0
				}
				read.V[k] += write.V[k]
			}
		}
		read.Present = read.Present.Or(write.Present)
	}
	for k := lo; k < hi; k++ {
		if read.Present.Has(k) {
			occupied := int64(0)
			if read.V[k] >= o.limit {
				occupied = 1
			}
			o.count(s.start+int64(k), 1, occupied)
		}
	}
}

// fromIndex counts a whole span's seconds by its lines in the index; ok is false where it cannot.
func (o *occupancyOf) fromIndex(read, write *entry) (occupied, seconds int64, ok bool) {
	if read.stats.Count != write.stats.Count && read.stats.Count*write.stats.Count != 0 ||
		read.stats.Count == write.stats.Count && read.stats.Count < BlockSeconds {
		return 0, 0, false // they may not be the same seconds
	}
	seconds = int64(max(read.stats.Count, write.stats.Count))
	switch {
	case read.occupied >= 0 && read.limit == o.limit:
		return int64(read.occupied), seconds, true
	case read.stats.Max+write.stats.Max < o.limit:
		return 0, seconds, true
	case read.stats.Min+write.stats.Min >= o.limit:
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
