package engine

import (
	"cmp"
	"slices"

	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/column"
)

// tierPart is a stretch of time that one tier answers, in whole buckets.
type tierPart struct {
	tier     *tier
	from, to int64 // seconds
	spans    [figures][]span
}

// parts cuts [from, to) into what the tiers answer, oldest first. A tier answers only steps that
// are multiples of its buckets; step 0 is one bucket for all.
func (ts *tierSet) parts(from, to, step int64) (out []tierPart, err error) {
	to = min(to, ts.head.blocks.rawFrom())
	for _, t := range ts.levels {
		files := t.views[figSum].Load().files
		if len(files) == 0 || from >= to {
			continue
		}
		first := max(from, files[0].hour*t.seconds)
		if first < to && step%t.seconds == 0 {
			p := tierPart{tier: t, from: -tsdb.FloorDiv(-first, t.seconds), to: tsdb.FloorDiv(to, t.seconds)}
			for f := range figures {
				if p.spans[f], err = t.views[f].Load().spans(p.from, p.to); err != nil {
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

// addTier takes a tier's part of one node.
func (s *selection) addTier(p *tierPart, n *nodeSelection) {
	var cols [figures]column.Column
	want := figuresOf(s.agg)
	for i := range p.spans[want[0]] {
		sp := &p.spans[want[0]][i]
		has := func(f figure) bool {
			at := spanAt(p.spans[f], sp.start)
			return at != nil && s.column(at, n.node, &cols[f])
		}
		if slices.ContainsFunc(want, func(f figure) bool { return !has(f) }) {
			continue
		}
		last := s.agg == tsdb.AggLast && has(figLast)
		each(cols[want[0]].Present, func(k int) {
			bucket := sp.start + int64(k)
			if bucket < p.from || bucket >= p.to {
				return
			}
			f := tsdb.Figures{
				Count: p.tier.seconds - int64(cols[figAbsent].V[k]), Sum: cols[figSum].V[k], Min: cols[figMin].V[k],
				Max: cols[figMax].V[k], Last: cols[figLast].V[k],
			}
			if !last {
				f.Last = f.Sum / float64(f.Count)
			}
			s.put(n, bucket*p.tier.seconds, f)
		})
	}
}

// spanAt is the span that begins at start; nil: it is missing.
func spanAt(spans []span, start int64) *span {
	i, found := slices.BinarySearchFunc(spans, start, func(s span, start int64) int {
		return cmp.Compare(s.start, start)
	})
	if !found {
		return nil
	}
	return &spans[i]
}

// addTier counts a tier's part, where it was counted by the same limit.
func (o *occupancyOf) addTier(r *reader, p *tierPart) {
	var cols [figures]column.Column
	for i := range p.spans[figLimit] {
		sp := &p.spans[figLimit][i]
		if !tierColumns(r, &p.spans, &cols, sp.start, o.node, collector.ReadBytes, figLimit, figOccupied,
			figUnreported) {
			continue
		}
		each(cols[figLimit].Present, func(k int) {
			bucket := sp.start + int64(k)
			if bucket >= p.from && bucket < p.to && cols[figLimit].V[k] == o.limit {
				o.count(bucket*p.tier.seconds, p.tier.seconds-int64(cols[figUnreported].V[k]),
					int64(cols[figOccupied].V[k]))
			}
		})
	}
}
