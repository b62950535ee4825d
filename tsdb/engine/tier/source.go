package tier

import (
	"fairway/collector"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/column"
)

// source gives what a tier's block is made from, node by node.
type source interface {
	// read fills n with a node's buckets; false where it has none. limit is its bytes/s for
	// occupancy, where that is not kept with the source.
	read(node int, metrics *collector.MetricSet, limit float64, n *nodeBuckets) bool
	failed() error
	release()
}

// secondsSource makes buckets from the seconds.
type secondsSource struct {
	r       *block.Reader
	spans   []block.Span
	start   int64
	seconds int64
	col     column.Column
}

func (s *Set) newSecondsSource(start int64, t *tier) (*secondsSource, error) {
	spans, err := s.Seconds.Spans(start, start+t.blockSpan())
	if err != nil {
		return nil, err
	}
	return &secondsSource{r: s.Readers.Get(false), spans: spans, start: start, seconds: t.seconds}, nil
}

func (s *secondsSource) failed() error { return s.r.Err() }
func (s *secondsSource) release()      { s.r.Release() }

func (s *secondsSource) read(node int, metrics *collector.MetricSet, limit float64, n *nodeBuckets) bool {
	n.reset()
	for m := range metrics.All() {
		any := false
		for i := range s.spans {
			sp := &s.spans[i]
			if !s.r.Column(sp, node, m, &s.col) {
				continue
			}
			any = true
			s.col.Present.Each(func(k int) {
				v := s.col.V[k]
				at := (sp.Start + int64(k) - s.start) / s.seconds
				n.by[m][at].Merge(tsdb.Figures{Count: 1, Sum: v, Min: v, Max: v, Last: v})
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
		s.r.Moved(sp, node, &s.col)
		s.col.Present.Each(func(k int) {
			at := int((sp.Start + int64(k) - s.start) / s.seconds)
			n.reported[at]++
			if s.col.V[k] >= limit {
				n.occupied[at]++
			}
		})
	}
}

// coarserSource makes buckets from those of a finer tier.
type coarserSource struct {
	r      *block.Reader
	fine   *tier
	spans  [figures][]block.Span
	start  int64 // in the finer tier's buckets
	factor int64 // of its buckets in one of ours
	cols   [figures]column.Column
}

func (set *Set) newCoarserSource(fine *tier, start int64, t *tier) (*coarserSource, error) {
	s := &coarserSource{fine: fine, start: start / fine.seconds, factor: t.seconds / fine.seconds}
	for f := range figures {
		var err error
		if s.spans[f], err = fine.figures[f].Spans(s.start, s.start+s.factor*column.Seconds); err != nil {
			return nil, err
		}
	}
	s.r = set.Readers.Get(false)
	return s, nil
}

func (s *coarserSource) failed() error { return s.r.Err() }
func (s *coarserSource) release()      { s.r.Release() }

func (s *coarserSource) read(node int, metrics *collector.MetricSet, _ float64, n *nodeBuckets) bool {
	n.reset()
	for m := range metrics.All() {
		any := false
		for i := range s.spans[figSum] {
			start := s.spans[figSum][i].Start
			if !s.columns(start, node, m, figSum, figAbsent, figMin, figMax) {
				continue
			}
			any = true
			lasts := s.columns(start, node, m, figLast)
			s.cols[figSum].Present.Each(func(k int) {
				n.by[m][s.bucket(start, k)].Merge(figuresAt(&s.cols, k, s.fine.seconds, lasts))
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
		start := s.spans[figLimit][i].Start
		if !s.columns(start, node, collector.ReadBytes, figLimit, figOccupied, figUnreported) {
			continue
		}
		s.cols[figLimit].Present.Each(func(k int) {
			if limit := s.cols[figLimit].V[k]; limit != n.limit {
				n.limit, n.occupied, n.reported = limit, [column.Seconds]int{}, [column.Seconds]int{}
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
	return readColumns(s.r, &s.spans, &s.cols, start, node, m, want...)
}

func readColumns(r *block.Reader, spans *[figures][]block.Span, cols *[figures]column.Column, start int64, node int,
	m collector.Metric, want ...figure) bool {
	for _, f := range want {
		if at := spanAt(spans[f], start); at == nil || !r.Column(at, node, m, &cols[f]) {
			return false
		}
	}
	return true
}
