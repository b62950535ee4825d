package interference

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// verdicts plays seconds of one row for each of three nodes and returns what was open in the last.
func verdicts(d *Detector, seconds int, row func(n int) failslow.Observation, layer Layer) (out []string) {
	d.now = 1_600_000_000
	for range seconds {
		var rows []failslow.Observation
		for n := range 3 {
			o := row(n)
			o.Node = topology.NodeID(fmt.Sprint("f", n))
			rows = append(rows, o)
		}
		out = out[:0]
		for _, v := range d.Second(time.Unix(d.now+1, 0), rows, layer) {
			jobs := ""
			for _, i := range v.Culprits {
				jobs += " " + string(i)
			}
			out = append(out, fmt.Sprint(v.Node, " ", v.Kind, jobs))
		}
	}
	return out
}

func healthy(int) failslow.Observation {
	return failslow.Observation{Class: [3]failslow.ClassSecond{
		{Ops: 40, Bytes: 40 * 16e3, Wait: 3e-5, Exec: 6e-4}, {Ops: 100, Bytes: 100 * 16e3, Wait: 3e-5, Exec: 5e-4},
		{Ops: 2, Exec: 1e-4},
	}}
}

func TestNames(t *testing.T) {
	layer := Layer{PeakBytesPerSec: 2.5e9, Read: 1, Write: 1}
	only := func(class failslow.Class, s failslow.ClassSecond) func(int) failslow.Observation {
		return func(n int) failslow.Observation {
			o := healthy(n)
			if n < 2 {
				o.Class[class] = s
			}
			return o
		}
	}
	for _, tc := range []struct {
		name  string
		row   func(int) failslow.Observation
		layer Layer
		want  string
	}{
		{"healthy", healthy, layer, "[]"},
		{"shared file", only(failslow.Write, failslow.ClassSecond{Ops: 1200, Bytes: 1200 * 58e3, Wait: 0.2,
			Exec: 13e-3}), layer, "[f0 n1_pin j1 f1 n1_pin j1]"},
		{"dear writes that nobody waits for",
			only(failslow.Write, failslow.ClassSecond{Ops: 2500, Bytes: 2500 * 58e3, Wait: 5e-5, Exec: 2e-3}), layer,
			"[]"},
		{"a shared file behind which nothing waits",
			only(failslow.Write, failslow.ClassSecond{Ops: 1200, Bytes: 1200 * 58e3, Wait: 5e-5, Exec: 13e-3}), layer,
			"[]"},
		{"dear writes behind a slow back end",
			only(failslow.Write, failslow.ClassSecond{Ops: 1200, Bytes: 1200 * 58e3, Wait: 0.2, Exec: 7e-3}),
			Layer{Read: 3, Write: 3}, "[* brownout_all]"},
		{"few metadata operations that take long", only(failslow.Meta, failslow.ClassSecond{Ops: 300, Exec: 30e-3}),
			layer, "[]"},
		{"storm", only(failslow.Meta, failslow.ClassSecond{Ops: 20000, Exec: 4e-4}), layer,
			"[f0 meta_storm j1 f1 meta_storm j1]"},
		{"full", only(failslow.Read, failslow.ClassSecond{Ops: 2450, Bytes: 2450e6, Wait: 0.03, Exec: 6e-3}), layer,
			"[f0 highbw j1 f1 highbw j1]"},
		{"as much, of which nothing waits: a peak that was learnt", func(n int) failslow.Observation {
			o := healthy(n)
			o.Class[failslow.Read] = failslow.ClassSecond{Ops: 2450, Bytes: 2450e6, Wait: 3e-5, Exec: 6e-3}
			o.QueueLen, o.Serving = 0.2, 14.7
			return o
		}, layer, "[]"},
		{"slow layer", healthy, Layer{Read: 3, Write: 3}, "[* brownout_all]"},
	} {
		d := New()
		d.Jobs([]failslow.Job{{ID: "j1", Nodes: []topology.NodeID{"f0", "f1"}},
			{ID: "j2", Nodes: []topology.NodeID{"f0", "f1", "f2"}}, {ID: "j3", Nodes: []topology.NodeID{"f0"}}})
		verdicts(d, 40, healthy, layer)
		if got := fmt.Sprint(verdicts(d, 30, tc.row, tc.layer)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestSentenceOutlivesTheStorm: in the seconds in which nothing but its end is awaited, a finding says what
// it was.
func TestSentenceOutlivesTheStorm(t *testing.T) {
	d := New()
	stormy := healthy(0)
	stormy.Node, stormy.Class[failslow.Meta] = "f0", failslow.ClassSecond{Ops: 20000, Exec: 4e-4}
	calm := healthy(0)
	calm.Node, calm.Class[failslow.Meta] = "f0", failslow.ClassSecond{}
	now := time.Unix(1_600_000_000, 0)
	open := 0
	for second, o := range []failslow.Observation{stormy, stormy, stormy, calm, calm, calm, calm, calm} {
		for _, v := range d.Second(now.Add(time.Duration(second)*time.Second), []failslow.Observation{o}, Layer{}) {
			open++
			if !strings.Contains(v.Sentence, "20000 metadata operations") || v.Evidence["meta_ops"] != 20000 {
				t.Errorf("second %d: %s %v", second, v.Sentence, v.Evidence)
			}
		}
	}
	if open != 1+release-1 {
		t.Errorf("it was named in %d seconds, want %d", open, release)
	}
}

func TestPools(t *testing.T) {
	d := New()
	calm := Layer{Pools: []float64{9e-4, 9e-4, 9e-4, 9e-4}}
	verdicts(d, 60, healthy, calm)
	one := Layer{Pools: []float64{9e-4, 40e-4, 9e-4, 9e-4}}
	got := fmt.Sprint(verdicts(d, 20, healthy, one))
	if worst, mean := d.Pools(); got != "[* brownout_pool]" || worst < 3 || mean < 1.6 || mean > 2 {
		t.Error(got, worst, mean)
	}
	verdicts(d, 30, healthy, calm)
	all := Layer{Pools: []float64{27e-4, 27e-4, 27e-4, 27e-4}}
	if got := fmt.Sprint(verdicts(d, 20, healthy, all)); got != fmt.Sprintf("[* %s]", anomaly.BrownoutAll) {
		t.Error(got)
	}
}

// TestCountersOverAGapNameNothing: the first row after ten seconds without any holds the counts of all ten.
func TestCountersOverAGapNameNothing(t *testing.T) {
	d := New()
	now := time.Unix(1_600_000_000, 0)
	step := func(ops float64) int {
		o := healthy(0)
		o.Node, o.Class[failslow.Meta] = "f0", failslow.ClassSecond{Ops: ops, Exec: 3e-4}
		return len(d.Second(now, []failslow.Observation{o}, Layer{}))
	}
	for range 20 {
		now = now.Add(time.Second)
		step(2000) // no storm: 0.04 of the threads
	}
	for range 5 {
		now = now.Add(10 * time.Second)
		if n := step(20000); n != 0 {
			t.Fatalf("%d names for ten seconds of 2,000 operations each", n)
		}
	}
}

// TestBackendRatioIsItsBound: the whole layer, or the median pool, at just below the ratio does not count as a
// brown-out.
func TestBackendRatioIsItsBound(t *testing.T) {
	for _, c := range []struct {
		times float64
		want  int
	}{{1.55, 0}, {1.7, 1}} {
		d := New()
		if got := verdicts(d, 40, healthy, Layer{Read: c.times, Write: c.times}); len(got) != c.want {
			t.Errorf("the layer takes %g times as long: %v", c.times, got)
		}
		d = New()
		verdicts(d, 60, healthy, Layer{Pools: []float64{9e-4, 9e-4, 9e-4}})
		p := 9e-4 * c.times
		if got := verdicts(d, 40, healthy, Layer{Pools: []float64{p, p, p}}); len(got) != c.want {
			t.Errorf("the pools take %g times as long: %v", c.times, got)
		}
		d = New()
		verdicts(d, 60, healthy, Layer{Pools: []float64{9e-4, 9e-4, 9e-4}})
		if got := verdicts(d, 40, healthy, Layer{Pools: []float64{9e-4, p, 9e-4}}); len(got) != c.want {
			t.Errorf("one pool takes %g times as long: %v", c.times, got)
		}
	}
}

// TestWhoFillsAForwarder: at a known peak two jobs wait for each other though nothing waits in the server; the one that
// moves the most is named. A job that has the forwarder for itself is left alone.
func TestWhoFillsAForwarder(t *testing.T) {
	for _, c := range []struct {
		name   string
		moves  map[topology.JobID]float64
		works  []float64 // parts of what job 1 moves, second by second in turn
		queues bool      // while job 1 moves bytes a queue is seen
		want   []topology.JobID
	}{
		{"a neighbour", map[topology.JobID]float64{"1": 20, "2": 75}, []float64{1}, false, []topology.JobID{"2"}},
		{"of one that pauses", map[topology.JobID]float64{"1": 20, "2": 75}, []float64{0, 1, 1, 1, 1}, false,
			[]topology.JobID{"2"}},
		{"of one that is seen to wait and pauses", map[topology.JobID]float64{"1": 20, "2": 75}, []float64{1, 0, 0},
			true, []topology.JobID{"2"}},
		{"both", map[topology.JobID]float64{"1": 45, "2": 50}, []float64{1}, false, []topology.JobID{"1", "2"}},
		{"alone", map[topology.JobID]float64{"1": 95}, []float64{1}, false, nil},
	} {
		d := New()
		d.Jobs([]failslow.Job{{ID: "1", Nodes: []topology.NodeID{"fwd"}}, {ID: "2", Nodes: []topology.NodeID{"fwd"}}})
		var named []topology.JobID
		second := 0
		d.Moves(func(_ topology.NodeID, j topology.JobID) float64 {
			if j == "1" {
				return c.moves[j] * c.works[second%len(c.works)]
			}
			return c.moves[j]
		})
		for s := range 40 {
			second = s
			o := failslow.Observation{Node: "fwd", QueueLen: math.NaN(), Peak: 100}
			if c.queues && c.works[s%len(c.works)] > 0 {
				o.QueueLen = 2 * waiting
			}
			o.Class[failslow.Write] = failslow.ClassSecond{Ops: 10, Bytes: 95, Wait: math.NaN(), Exec: math.NaN()}
			for _, v := range d.Second(time.Unix(int64(1e9+s), 0), []failslow.Observation{o}, Layer{}) {
				if v.Kind == anomaly.HighBandwidth {
					named = v.Culprits
				}
			}
		}
		if !slices.Equal(named, c.want) {
			t.Errorf("%s: %v is named, expected %v", c.name, named, c.want)
		}
	}
}
