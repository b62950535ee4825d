package collector_test

import (
	"math"
	"testing"

	"fairway/collector"
)

// TestWaitingIsWhatIsUnderWay: requests under way times the time, whether they are counted or only those that ended are
// timed; a source that cannot know it says nothing.
func TestWaitingIsWhatIsUnderWay(t *testing.T) {
	s := func(m collector.Metric, v float64) collector.Sample { return collector.Sample{Metric: m, Value: v} }
	tenfold := [3]float64{1, 10, 1}
	for name, c := range map[string]struct {
		samples        []collector.Sample
		underWay, lost float64
		known, isHung  bool
		reads, writes  float64
	}{
		"nothing":             {},
		"bytes alone":         {samples: []collector.Sample{s(collector.ReadBytes, 1e6)}},
		"nothing to wait for": {samples: []collector.Sample{s(collector.ReadOps, 0)}, known: true},
		"timed": {samples: []collector.Sample{s(collector.WriteOps, 100), s(collector.ClientWrite, 0.005),
			s(collector.ReadOps, 10), s(collector.ClientRead, 0.01)}, known: true, underWay: 0.6, lost: 0.45,
			reads: 0.1, writes: 0.5},
		"not all is timed": {samples: []collector.Sample{s(collector.WriteOps, 100), s(collector.ClientWrite, 0.005),
			s(collector.ReadOps, 10)}, underWay: 0.5, lost: 0.45, writes: 0.5},
		"hung": {samples: []collector.Sample{s(collector.WriteOps, 0), s(collector.InFlight, 4),
			s(collector.RequestAge, 77)}, known: true, underWay: 4, lost: 1, isHung: true},
		"the second in which it ends": {samples: []collector.Sample{s(collector.WriteOps, 4),
			s(collector.ClientWrite, 78), s(collector.InFlight, 2), s(collector.RequestAge, 0)}, known: true,
			underWay: 2, lost: 1.8, writes: 2},
		"counted, not timed": {samples: []collector.Sample{s(collector.WriteOps, 30), s(collector.ReadOps, 10),
			s(collector.InFlight, 2), s(collector.RequestAge, 0.1)}, known: true, underWay: 2, lost: 1.35,
			reads: 0.5, writes: 1.5},
		"no numbers a counter makes": {samples: []collector.Sample{s(collector.WriteOps, -1),
			s(collector.ClientWrite, 5), s(collector.InFlight, -1)}, known: true},
	} {
		w, known := collector.WaitingOf(c.samples)
		by, stuck := w.ByClass(), 0.0
		if w.Stuck() {
			stuck = 1
		}
		lost := collector.LostSeconds(by, tenfold, stuck)
		if known != c.known || w.UnderWay != c.underWay || w.Stuck() != c.isHung || math.Abs(lost-c.lost) > 1e-9 ||
			math.Abs(by[0]-c.reads) > 1e-9 || math.Abs(by[1]-c.writes) > 1e-9 {
			t.Errorf("%s: %+v, known %v, by class %v, lost %v; want %+v", name, w, known, by, lost, c)
		}
	}
}
