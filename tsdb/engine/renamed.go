package engine

import (
	"fairway/collector"
	"fairway/tsdb/engine/column"
)

// Seconds of nodes with collector.RetiredBacklogLen are from before collector.InFlight: what is stored there as
// queue_len was all that is in flight, and the retired metric what waits. Queries get both under today's names.

// isRenamed says whether what is stored under another number may be meant by m.
func isRenamed(m collector.Metric) bool { return m == collector.QueueLen || m == collector.InFlight }

// column reads the values of the selection's metric.
func (s *selection) column(sp *span, node int, c *column.Column) bool {
	found := s.r.column(sp, node, s.metric, c)
	if !isRenamed(s.metric) || !s.r.column(sp, node, collector.RetiredBacklogLen, &s.before) {
		return found
	}
	if s.metric == collector.InFlight {
		waiting := s.before.Present
		if !s.r.column(sp, node, collector.QueueLen, &s.before) {
			return found
		}
		s.before.Present = s.before.Present.And(waiting)
	}
	if !found {
		c.Present = column.Mask{}
	}
	overlay(c, &s.before)
	return c.Present != column.Mask{}
}

// only is reader.only of the selection's metric.
func (s *selection) only(sp *span, node int) (e entry, is found) {
	if isRenamed(s.metric) {
		if _, is := s.r.only(sp, node, collector.RetiredBacklogLen); is != foundNothing {
			return e, foundValues
		}
	}
	return s.r.only(sp, node, s.metric)
}
