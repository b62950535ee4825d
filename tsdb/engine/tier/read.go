package tier

import (
	"cmp"
	"slices"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
)

// Part is a stretch of time that one tier answers, in whole buckets.
type Part struct {
	Seconds  int64 // of a bucket
	from, to int64 // buckets
	spans    [figures][]block.Span
}

// Tier returns the stretch.
func (p *Part) Tier() tsdb.Tier {
	millis := p.Seconds * 1000
	return tsdb.Tier{BucketMillis: millis, FromMillis: p.from * millis, ToMillis: p.to * millis}
}

// Parts cuts [from, to) into what the tiers answer, oldest first. A tier answers only steps that
// are multiples of its buckets; step 0 is one bucket for all.
func (s *Set) Parts(from, to, step int64) (out []Part, err error) {
	to = min(to, s.Seconds.First())
	for _, t := range s.tiers {
		files := t.figures[figSum].Files()
		if len(files) == 0 || from >= to {
			continue
		}
		first := max(from, files[0].Start*t.seconds)
		if first < to && step%t.seconds == 0 {
			p := Part{Seconds: t.seconds, from: -tsdb.FloorDiv(-first, t.seconds), to: tsdb.FloorDiv(to, t.seconds)}
			for f := range figures {
				if p.spans[f], err = t.figures[f].Spans(p.from, p.to); err != nil {
					return nil, err
				}
			}
			out = append(out, p)
		}
		to = min(to, first)
	}
	slices.Reverse(out)
	return out, nil
}

// figuresOf are the figures that an aggregation needs.
func figuresOf(agg tsdb.Agg) []figure {
	switch agg {
	case tsdb.AggMin:
		return []figure{figMin}
	case tsdb.AggMax:
		return []figure{figMax}
	case tsdb.AggCount:
		return []figure{figAbsent}
	case tsdb.AggSum:
		return []figure{figSum}
	}
	return []figure{figSum, figAbsent}
}

// Buckets calls put with the second and the figures of each bucket of a node that agg needs. read reads the node's
// column of a span.
func (p *Part) Buckets(agg tsdb.Agg, read func(*block.Span, *column.Column) bool, put func(int64, tsdb.Figures)) {
	var cols [figures]column.Column
	want := figuresOf(agg)
	for i := range p.spans[want[0]] {
		sp := &p.spans[want[0]][i]
		has := func(f figure) bool {
			at := spanAt(p.spans[f], sp.Start)
			return at != nil && read(at, &cols[f])
		}
		if slices.ContainsFunc(want, func(f figure) bool { return !has(f) }) {
			continue
		}
		last := agg == tsdb.AggLast && has(figLast)
		cols[want[0]].Present.Each(func(k int) {
			bucket := sp.Start + int64(k)
			if bucket < p.from || bucket >= p.to {
				return
			}
			put(bucket*p.Seconds, figuresAt(&cols, k, p.Seconds, last))
		})
	}
}

// spanAt is the span that begins at start; nil: it is missing.
func spanAt(spans []block.Span, start int64) *block.Span {
	i, found := slices.BinarySearchFunc(spans, start, func(s block.Span, start int64) int {
		return cmp.Compare(s.Start, start)
	})
	if !found {
		return nil
	}
	return &spans[i]
}

// Occupied calls count with the second, the seconds and the occupied ones of each bucket of a node that was counted by
// a limit.
func (p *Part) Occupied(r *block.Reader, node int, limit float64, count func(sec, seconds, occupied int64)) {
	var cols [figures]column.Column
	for i := range p.spans[figLimit] {
		sp := &p.spans[figLimit][i]
		if !readColumns(r, &p.spans, &cols, sp.Start, node, collector.ReadBytes, figLimit, figOccupied,
			figUnreported) {
			continue
		}
		cols[figLimit].Present.Each(func(k int) {
			bucket := sp.Start + int64(k)
			if bucket >= p.from && bucket < p.to && cols[figLimit].V[k] == limit {
				count(bucket*p.Seconds, p.Seconds-int64(cols[figUnreported].V[k]), int64(cols[figOccupied].V[k]))
			}
		})
	}
}
