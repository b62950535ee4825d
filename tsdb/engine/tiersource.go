package engine

import (
	"math/bits"

	"fairway/collector"
	"fairway/tsdb/engine/column"
)

// tierSource gives what a tier's block is made from, node by node.
type tierSource interface {
	// read fills n with a node's buckets; false where it has none. limit is its bytes/s for
	// occupancy, where that is not kept with the source.
	read(node int, metrics *collector.MetricSet, limit float64, n *nodeBuckets) bool
	failed() error
	release()
}

// secondsSource makes buckets from the seconds.
type secondsSource struct {
	r       *reader
	spans   []span
	start   int64
	seconds int64
	col     column.Column
	write   column.Column
}

func newSecondsSource(h *head, start int64, t *tier) (*secondsSource, error) {
	spans, err := h.blocks.view.Load().spans(start, start+t.blockSpan())
	if err != nil {
		return nil, err
	}
	return &secondsSource{r: h.reader(), spans: spans, start: start, seconds: t.seconds}, nil
}

func (s *secondsSource) failed() error { return s.r.err }
func (s *secondsSource) release()      { s.r.release() }

func (s *secondsSource) read(node int, metrics *collector.MetricSet, limit float64, n *nodeBuckets) bool {
	n.reset()
	for m := range metrics.All() {
		any := false
		for i := range s.spans {
			sp := &s.spans[i]
			if !s.r.column(sp, node, m, &s.col) {
				continue
			}
			any = true
			each(s.col.Present, func(k int) {
				v := s.col.V[k]
				n.by[m].add(int((sp.start+int64(k)-s.start)/s.seconds), 1, v, v, v, v)
			})
		}
		if any {
			n.metrics = append(n.metrics, m)
		}
	}
	if limit > 0 {
		s.occupancy(node, limit, n)
	}
	return len(n.metrics) > 0
}

// occupancy counts the seconds in which the node moved at least limit bytes.
func (s *secondsSource) occupancy(node int, limit float64, n *nodeBuckets) {
	n.limit = limit
	for i := range s.spans {
		sp := &s.spans[i]
		read, write := s.r.column(sp, node, collector.ReadBytes, &s.col),
			s.r.column(sp, node, collector.WriteBytes, &s.write)
		if !read {
			s.col.Present = column.Mask{}
		}
		if !write {
			s.write.Present = column.Mask{}
		}
		each(s.col.Present.Or(s.write.Present), func(k int) {
			sum := 0.0
			if s.col.Present.Has(k) {
				sum = s.col.V[k]
			}
			if s.write.Present.Has(k) {
				sum += s.write.V[k]
			}
			at := int((sp.start + int64(k) - s.start) / s.seconds)
			n.reported[at]++
			if sum >= limit {
				n.occupied[at]++
			}
		})
	}
}

// each calls f for every second of a mask.
func each(m column.Mask, f func(k int)) {
	for w, word := range m {
		for ; word != 0; word &= word - 1 {
			f(w<<6 + bits.TrailingZeros64(word))
		}
	}
}

// coarserSource makes buckets from those of a finer tier.
type coarserSource struct {
	r      *reader
	fine   *tier
	spans  [figures][]span
	start  int64 // in the finer tier's buckets
	factor int64 // of its buckets in one of ours
	cols   [figures]column.Column
}

func newTierSource(h *head, fine *tier, start int64, t *tier) (*coarserSource, error) {
	s := &coarserSource{fine: fine, start: start / fine.seconds, factor: t.seconds / fine.seconds}
	for f := range figures {
		var err error
		if s.spans[f], err = fine.views[f].Load().spans(s.start, s.start+s.factor*BlockSeconds); err != nil {
			return nil, err
		}
	}
	s.r = h.reader()
	return s, nil
}

func (s *coarserSource) failed() error { return s.r.err }
func (s *coarserSource) release()      { s.r.release() }

func (s *coarserSource) read(node int, metrics *collector.MetricSet, _ float64, n *nodeBuckets) bool {
	n.reset()
	for m := range metrics.All() {
		any := false
		for i := range s.spans[figSum] {
			start := s.spans[figSum][i].start
			if !s.columns(start, node, m, figSum, figAbsent, figMin, figMax) {
				continue
			}
			any = true
			lasts := s.columns(start, node, m, figLast)
			each(s.cols[figSum].Present, func(k int) {
				count := int(s.fine.seconds) - int(s.cols[figAbsent].V[k])
				last := s.cols[figLast].V[k]
				if !lasts {
					last = s.cols[figSum].V[k] / float64(count)
				}
				n.by[m].add(s.bucket(start, k), count, s.cols[figSum].V[k], s.cols[figMin].V[k], s.cols[figMax].V[k],
					last)
			})
		}
		if any {
			n.metrics = append(n.metrics, m)
		}
	}
	s.occupancy(node, n)
	return len(n.metrics) > 0
}

// occupancy adds up counted seconds; where the limit changed within the block, those by the newest.
func (s *coarserSource) occupancy(node int, n *nodeBuckets) {
	for i := range s.spans[figLimit] {
		start := s.spans[figLimit][i].start
		if !s.columns(start, node, collector.ReadBytes, figLimit, figOccupied, figUnreported) {
			continue
		}
		each(s.cols[figLimit].Present, func(k int) {
			if limit := s.cols[figLimit].V[k]; limit != n.limit {
				n.limit, n.occupied, n.reported = limit, [BlockSeconds]int{}, [BlockSeconds]int{}
			}
			at := s.bucket(start, k)
			n.occupied[at] += int(s.cols[figOccupied].V[k])
			n.reported[at] += int(s.fine.seconds) - int(s.cols[figUnreported].V[k])
		})
	}
}

func (s *coarserSource) bucket(start int64, k int) int {
	return int((start + int64(k) - s.start) / s.factor)
}

// columns reads figures of the span at start; false where one of them is missing.
func (s *coarserSource) columns(start int64, node int, m collector.Metric, want ...figure) bool {
	return tierColumns(s.r, &s.spans, &s.cols, start, node, m, want...)
}

func tierColumns(r *reader, spans *[figures][]span, cols *[figures]column.Column, start int64, node int,
	m collector.Metric, want ...figure) bool {
	for _, f := range want {
		if at := spanAt(spans[f], start); at == nil || !r.column(at, node, m, &cols[f]) {
			return false
		}
	}
	return true
}
