package failslow

import (
	"math"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
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
		var o offset
		for range 100000 {
			o.teach(r)
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

// TestCanariesOfACrowdAccuseNobody: while more than a quarter of the layer is under suspicion, it is not they.
func TestCanariesOfACrowdAccuseNobody(t *testing.T) {
	const nodes = 16
	for _, c := range []struct {
		suspects int
		accuses  bool
	}{{0, true}, {nodes / 4, true}, {nodes/4 + 1, false}} {
		l, d := newLayer(nodes), New(DefaultSettings())
		probe := func(n topology.NodeID, times float64) {
			d.Probe(time.Unix(l.now, 0), Probe{n, [3]float64{4e-3 * times, 5e-3 * times, 1e-3 * times}})
		}
		for s := range 200 {
			d.Second(time.Unix(l.now, 0), l.next(nil))
			probe(l.rows[s%nodes].Node, 1)
		}
		for i := range c.suspects {
			d.node(l.rows[i].Node).level = anomaly.Doubt
		}
		d.Due(time.Unix(l.now, 0))
		probe(l.rows[nodes-1].Node, 4)
		if got := d.node(l.rows[nodes-1].Node).Tests[canary].Log > 0; got != c.accuses {
			t.Errorf("%d suspects: a slow canary counts: %v", c.suspects, got)
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
