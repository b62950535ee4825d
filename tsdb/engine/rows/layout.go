package rows

import (
	"slices"

	"fairway/collector"
)

// Layout is the order in which a node's frames name their metrics. Nodes of one kind share one.
type Layout struct {
	Metrics []collector.Metric
	slot    [collector.MetricCount]int8 // position in Metrics, -1 where missing
}

func newLayout(metrics []collector.Metric) *Layout {
	l := &Layout{Metrics: metrics}
	for i := range l.slot {
		l.slot[i] = -1
	}
	for i, m := range metrics {
		l.slot[m] = int8(i)
	}
	return l
}

// Slot returns a metric's position, -1 where the layout lacks it.
func (l *Layout) Slot(m collector.Metric) int {
	if int(m) >= len(l.slot) {
		return -1
	}
	return int(l.slot[m])
}

// Take fills slots with samples that name metrics of the layout in its order, though not all of them. It returns
// false for any others.
func (l *Layout) Take(slots []uint64, samples []collector.Sample) bool {
	metrics := l.Metrics[:len(slots)]
	if len(samples) == len(slots) {
		for i := range slots {
			s := &samples[i]
			if s.Metric != metrics[i] {
				return false
			}
			slots[i] = Bits(s.Value)
		}
		return true
	}
	taken := 0
	for slot, m := range metrics {
		v := Absent
		if taken < len(samples) && samples[taken].Metric == m {
			v = Bits(samples[taken].Value)
			taken++
		}
		slots[slot] = v
	}
	return taken == len(samples)
}

// Layouts has every order of metrics in use. The head's lock guards it.
type Layouts struct {
	all    map[string]*Layout
	newest *Layout // that Of returned last
}

// Of returns the layout of a node's columns once it also has metrics.
func (s *Layouts) Of(n *Node, metrics []collector.Metric) *Layout {
	var all []collector.Metric
	if n != nil {
		all = slices.Clone(n.Layout.Metrics)
	} else if s.newest != nil && slices.Equal(s.newest.Metrics, metrics) {
		return s.newest
	}
	for _, m := range metrics {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	key := string(asBytes(all))
	l := s.all[key]
	if l == nil {
		if s.all == nil {
			s.all = map[string]*Layout{}
		}
		l = newLayout(all)
		s.all[key] = l
	}
	s.newest = l
	return l
}

func asBytes(metrics []collector.Metric) []byte {
	out := make([]byte, len(metrics))
	for i, m := range metrics {
		out[i] = byte(m)
	}
	return out
}
