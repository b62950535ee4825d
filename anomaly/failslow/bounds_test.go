package failslow

import (
	"math"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// TestAnAbsurdCounterIsLeftOut: rows of two nodes whose counters were reset say more than a forwarder can do; they
// teach nothing, above all not the peak.
func TestAnAbsurdCounterIsLeftOut(t *testing.T) {
	l, d := newLayer(6), New(DefaultSettings())
	for range 300 {
		d.Second(time.Unix(l.now, 0), l.next(nil))
	}
	peak, sigma := d.PeakBytesPerSec(), d.model.sigma(Read, 100)
	for range 3 {
		d.Second(time.Unix(l.now, 0), l.next(func(n int, o *Observation) {
			if n < 2 {
				o.Class[Write].Ops, o.Class[Write].Bytes = 4294967295, 4e11
			}
		}))
	}
	if got := d.PeakBytesPerSec(); got > 1.5*peak {
		t.Errorf("peak %.3g after absurd rows, %.3g before", got, peak)
	}
	if got := d.model.sigma(Read, 100); math.Abs(got-sigma) > 0.05 {
		t.Errorf("noise %.2f after absurd rows, %.2f before", got, sigma)
	}
}

// TestAHabitIsAtMostAQuarter: more than that is a fault.
func TestAHabitIsAtMostAQuarter(t *testing.T) {
	for _, r := range []float64{0.9, -0.9} {
		var o compare.Mean
		for range 100000 {
			teachOffset(&o, r)
		}
		if math.Abs(o.Mean) != offsetMost {
			t.Errorf("a habit of %g is learnt as %g, want %g", r, o.Mean, offsetMost)
		}
	}
}

// TestAnAccusationLosesBelowHalfOfWellDelta: an accused node whose slowness is hardly one loses its accusation, though
// the same slowness might have suspected it; one that is still slow keeps it.
func TestAnAccusationLosesBelowHalfOfWellDelta(t *testing.T) {
	for mean, want := range map[float64]bool{0.12: true, 0.25: false} {
		d, n := quiet()
		n.Alarm, n.Tests[mild].Log = true, d.limit
		for range 5 {
			d.now += longSeconds
			n.long[Read][small], n.long[Write][small] = long(mean), long(mean)
			d.closeLong(n)
		}
		if lost := n.Tests[mild].Log < d.limit-1; lost != want {
			t.Errorf("%g slower: the wealth is %.1f of %.1f, lost %v", mean, n.Tests[mild].Log, d.limit, lost)
		}
	}
}

// TestCanariesOfACrowdAccuseNobody: while more than a quarter of the layer is under suspicion, it is not they, unless
// canaries through others were as fast as ever just now.
func TestCanariesOfACrowdAccuseNobody(t *testing.T) {
	const nodes = 16
	for _, c := range []struct {
		suspects int
		others   float64 // how many times as long as usual canaries through others took just now; 0: none was sent
		accuses  bool
	}{{0, 0, true}, {nodes / 4, 0, true}, {nodes/4 + 1, 0, false}, {nodes/4 + 1, 4, false}, {nodes/4 + 1, 1, true}} {
		l, d := newLayer(nodes), New(DefaultSettings())
		probe := func(n topology.NodeID, times float64) {
			d.Probe(time.Unix(l.now, 0), Probe{n, [3]float64{4e-3 * times, 5e-3 * times, 1e-3 * times}})
		}
		for s := range 200 {
			d.Second(time.Unix(l.now, 0), l.next(nil))
			probe(l.rows[s%nodes].Node, 1)
		}
		for range int(besideFor) + 1 {
			d.Second(time.Unix(l.now, 0), l.next(nil))
		}
		for i := range c.suspects {
			d.node(l.rows[i].Node).level = anomaly.Doubt
			if c.others > 0 {
				probe(l.rows[i].Node, c.others)
			}
		}
		d.Due(time.Unix(l.now, 0))
		probe(l.rows[nodes-1].Node, 4)
		if got := d.node(l.rows[nodes-1].Node).Tests[canary].Log > 0; got != c.accuses {
			t.Errorf("%+v: a slow canary counts: %v", c, got)
		}
	}
}

// TestACrowdIsCleared: however many are under suspicion, a forwarder whose canaries are fast is cleared by them.
func TestACrowdIsCleared(t *testing.T) {
	const nodes = 16
	l, d := newLayer(nodes), New(DefaultSettings())
	fast := [3]float64{4e-3, 5e-3, 1e-3}
	for s := range 900 {
		d.Second(time.Unix(l.now, 0), l.next(nil))
		d.Probe(time.Unix(l.now, 0), Probe{l.rows[s%nodes].Node, fast})
	}
	for i := range nodes / 2 {
		n := d.node(l.rows[i].Node)
		n.Tests[canary].Log, n.Alarm, n.level = d.limit+overThreshold, true, anomaly.Alarm
	}
	well := d.node(l.rows[0].Node)
	seconds := 0
	for ; well.Alarm && seconds < 900; seconds++ {
		d.Second(time.Unix(l.now, 0), nil) // without load
		d.Due(time.Unix(l.now, 0))
		if l.now++; seconds%10 == 0 {
			d.Probe(time.Unix(l.now, 0), Probe{well.ID, fast})
		}
	}
	if seconds > 600 {
		t.Errorf("accused for %d s more, want at most 600", seconds)
	}
}

// TestUnjudgedSecondsAreCounted: nobody knows yet what requests of that size need.
func TestUnjudgedSecondsAreCounted(t *testing.T) {
	l, d := newLayer(8), New(DefaultSettings())
	for range 100 {
		d.Second(time.Unix(l.now, 0), l.next(nil))
	}
	before := d.unknown
	d.Second(time.Unix(l.now, 0), l.next(func(n int, o *Observation) {
		if n == 0 {
			o.Class[Read].Bytes = 4e6 * o.Class[Read].Ops
		}
	}))
	served, _ := d.Served()
	if d.unknown != before+1 || served <= 0 {
		t.Errorf("%d seconds more of %d are not judged, want 1", d.unknown-before, served)
	}
}

// TestACappedNodeIsSaidByItsCap: not by what it happens to move when somebody reads of it.
func TestACappedNodeIsSaidByItsCap(t *testing.T) {
	d, n := quiet()
	n.Alarm, n.Cause, n.Habit.CapAt, n.Load = true, capped, 0.12, 0
	var v anomaly.Verdict
	d.explain(n, capped, &v)
	if !strings.Contains(v.Sentence, "moves only 12% of a forwarder's peak") {
		t.Error(v.Sentence)
	}
}

// TestCanariesWhileThePoolsAreSlow: no past says what a canary takes then. A node is accused by those that went through
// others meanwhile, if these met storage as slow as it is now.
func TestCanariesWhileThePoolsAreSlow(t *testing.T) {
	const nodes, slow = 16, 3
	for _, c := range []struct {
		times   float64
		before  bool // the others' canaries went before the pools were slow
		accuses bool
	}{{slow, false, false}, {2 * slow, false, true}, {slow, true, false}} {
		l, d := newLayer(nodes), New(DefaultSettings())
		second := func() { d.Second(time.Unix(l.now, 0), l.next(nil)) }
		probe := func(n int, times float64) {
			d.Probe(time.Unix(l.now, 0), Probe{l.rows[n].Node, [3]float64{4e-3 * times, 5e-3 * times, 1e-3}})
		}
		for s := range 200 {
			second()
			probe(s%nodes, 1)
		}
		if !c.before {
			d.Backend(slow, slow)
			for n := range nodes - 1 {
				second()
				probe(n, slow)
			}
		}
		d.Backend(slow, slow)
		for range 3 {
			second()
			probe(nodes-1, c.times)
		}
		if got := d.nodes.Known(l.rows[nodes-1].Node).Tests[canary].Log > 0; got != c.accuses {
			t.Errorf("%+v: accused: %v", c, got)
		}
	}
}

// TestOthersOfAJobServeNoMore: a forwarder with many more requests in service has another job's among them, and makes
// nobody sure what the job needs. One with more completions alone is what a slow node's peers look like.
func TestOthersOfAJobServeNoMore(t *testing.T) {
	for _, c := range []struct {
		ops, took float64 // of the peers
		sure      bool
	}{{100, 1e-3, true}, {1000, 1e-4, true}, {1000, 1e-3, false}} {
		d := New(DefaultSettings())
		d.now = 1000
		d.Jobs([]Job{{ID: "j", Nodes: []topology.NodeID{"a", "b", "c"}}})
		for _, id := range []topology.NodeID{"b", "c"} {
			d.node(id).shown[Read][large] = shown{at: d.now, mean: math.Log(c.took), size: 1e6, ops: c.ops}
		}
		n := d.node("a")
		n.now.regime[Read], n.now.size[Read], n.now.ops[Read], n.now.log[Read] = large, 1e6, 100, math.Log(1e-3)
		if _, sure, _ := d.jobLevel(n, Read); sure != c.sure {
			t.Errorf("%+v: sure %v", c, sure)
		}
	}
}

// TestBackgroundThatMayBeAJobs: small requests of a node that was never seen without its job, which no other forwarder
// serves, make it a suspect and accuse it of nothing; a node that had them without a job is accused.
func TestBackgroundThatMayBeAJobs(t *testing.T) {
	for _, bare := range []bool{true, false} {
		d, n := quiet()
		n.Bare[Write], n.unlike[Write] = bare, !bare
		for range 60 {
			d.now += longSeconds
			n.long[Read][background], n.long[Write][background] = long(0), long(0.5)
			d.closeLong(n)
		}
		if accused := n.Tests[writeSlow].Log >= d.limit; accused != bare {
			t.Errorf("seen without jobs %v: accused %v", bare, accused)
		}
	}
}

// TestRatesAreOfTheSecondsThatTheyCover: where rates are by the second, a second that was not seen makes no forwarder
// look a third as busy; counters that cover what passed do.
func TestRatesAreOfTheSecondsThatTheyCover(t *testing.T) {
	for spans, want := range map[float64]float64{1: 0.6, 0: 0.2} {
		set := DefaultSettings()
		set.PeakBytesPerSec = 100e6
		d := New(set)
		for _, s := range []int64{0, 1, 4} {
			o := Observation{Node: "fwd1", Spans: spans}
			o.Class[Read] = ClassSecond{Ops: 90, Bytes: 60e6, Exec: 0.01}
			d.Second(time.Unix(1795000000+s, 0), []Observation{o})
		}
		if got := d.nodes.Known("fwd1").Load; math.Abs(got-want) > 1e-9 {
			t.Errorf("counters of %g s: %.2f busy, want %.2f", spans, got, want)
		}
	}
}
