package failslow

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
)

// waitingLayer plays six forwarders for 2,400 s. From 900 s on requests wait at the second for wait seconds in the mean
// and a canary does, which without that takes timesSlow as long. It returns the seconds in which it was accused.
func waitingLayer(t *testing.T, wait, timesSlow float64) (accused int) {
	l, d := newLayer(6), New(DefaultSettings())
	random := rand.New(rand.NewPCG(1, 2))
	for s := range 2400 {
		late := s >= 900
		rows := l.next(func(n int, o *Observation) {
			if n != 1 || !late {
				return
			}
			for c := range o.Class {
				o.Class[c].Wait = wait * math.Exp(0.2*random.NormFloat64())
			}
			o.QueueLen = wait * (o.Class[Read].Ops + o.Class[Write].Ops)
		})
		now := time.Unix(l.now, 0)
		for _, v := range d.Second(now, rows) {
			switch {
			case v.Level != anomaly.Alarm:
			case v.Node == rows[1].Node:
				accused++
			default:
				t.Errorf("%g s of waiting, %g times as slow: %s was accused", wait, timesSlow, v.Node)
			}
		}
		suspects, idle := d.Due(now)
		for _, id := range append(suspects, idle...) {
			d.Asked(now, id)
			p := Probe{id, [classes]float64{4e-3, 5e-3, 1e-3}}
			for c := range p.Took {
				if p.Took[c] *= math.Exp(0.1 * random.NormFloat64()); id == rows[1].Node && late {
					p.Took[c] = timesSlow*p.Took[c] + wait*math.Exp(0.2*random.NormFloat64())
				}
			}
			d.Probe(now, p)
		}
	}
	return accused
}

// TestACanaryIsJudgedWithoutItsWait: what a canary waits for a thread accuses nobody, however long; what it takes
// beyond does, where its wait is not many times as long.
func TestACanaryIsJudgedWithoutItsWait(t *testing.T) {
	for _, c := range []struct {
		wait, times float64
		found       bool
	}{{2e-3, 1, false}, {20e-3, 1, false}, {200e-3, 1, false}, {2e-3, 3, true}, {20e-3, 8, true}, {2, 3, false}} {
		if accused := waitingLayer(t, c.wait, c.times); (accused > 0) != c.found {
			t.Errorf("%g s of waiting, %g times as slow: accused for %d s", c.wait, c.times, accused)
		}
	}
}

// TestUnsureWaitsWinNothing: however badly a wait is known, the mean of what a canary multiplies the wealth of a
// healthy forwarder by is 1 at most.
func TestUnsureWaitsWinNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, off := range []float64{0.2, 0.5, 1, 3, 10} {
		sum, count := 0.0, 200_000
		for range count {
			x := longer(1+off*random.NormFloat64(), 0, off)
			sum += math.Exp(against(x, off*off+0.01, canarySlow))
		}
		if mean := sum / float64(count); mean > 1.01 {
			t.Errorf("a wait that may be wrong by %g of a canary: the wealth grows by %.3f", off, mean)
		}
		if slow := against(longer(1+3*off, 0, off), off*off+0.01, canarySlow); slow < 0.5 {
			t.Errorf("three times what its wait may be wrong by wins %.2f", slow)
		}
	}
}

// TestAWaitThatTheQueueDenies: a queue that would take longer than the server says that requests waited leaves both
// in doubt.
func TestAWaitThatTheQueueDenies(t *testing.T) {
	n := &node{}
	for _, c := range []struct{ queue, off float64 }{{2, 0.25 * 10e-3}, {20, math.Hypot(0.25*10e-3, 90e-3)}} {
		o := Observation{QueueLen: c.queue}
		o.Class[Read] = ClassSecond{Ops: 100, Wait: 10e-3}
		o.Class[Write] = ClassSecond{Ops: 100, Wait: 10e-3}
		n.Waited, n.loads[0] = 7, recent{at: 7, wait: [classes]float64{10e-3, 10e-3}, queued: queued(&o)}
		w, ok := n.waits(7)
		if !ok || math.Abs(w.off[Read]-c.off) > 1e-6 || w.took[Read] != 10e-3 || w.off[Meta] != w.took[Meta] {
			t.Errorf("%g wait: %+v, %v, want %g", c.queue, w, ok, c.off)
		}
	}
	n.loads[0] = recent{at: 7}
	if _, ok := n.waits(7); ok {
		t.Error("requests wait and nobody times it: judged")
	}
}

// TestAStatIsKnownFromLessLoad: at a level that too few canaries have shown a stat is compared with those through
// less loaded forwarders, and may be twice as slow.
func TestAStatIsKnownFromLessLoad(t *testing.T) {
	for _, c := range []struct {
		took  float64
		grows bool
	}{{2e-3, false}, {8e-3, true}} {
		d, n := quiet()
		d.canaries.Level[0].Usual[Meta] = compare.Mean{Mean: math.Log(1e-3), N: judgeAfter}
		n.loads[0] = recent{at: d.now, load: 1}
		d.Probe(time.Unix(d.now, 0), Probe{n.ID, [classes]float64{math.NaN(), math.NaN(), c.took}})
		if got := n.Tests[metaSlow].Log > 0; got != c.grows {
			t.Errorf("a stat of %g s: wealth %g", c.took, n.Tests[metaSlow].Log)
		}
	}
}

// TestAStatThroughAFullForwarder: its answer waits in the network, so that it accuses only as far as the operations of
// jobs are slow in the server, too.
func TestAStatThroughAFullForwarder(t *testing.T) {
	for _, over := range []float64{0, 1.5} {
		d, n := quiet()
		d.canaries.Level[3].Usual[Meta] = compare.Mean{Mean: math.Log(1e-3), N: judgeAfter}
		n.loads[0] = recent{at: d.now, load: 1, streamed: 1}
		n.stormOver, n.stormed = over, d.now
		d.Probe(time.Unix(d.now, 0), Probe{n.ID, [classes]float64{math.NaN(), math.NaN(), 8e-3}})
		if got := n.Tests[metaSlow].Log > 0; got != (over > 0) {
			t.Errorf("operations of jobs slower by %g: wealth %g", over, n.Tests[metaSlow].Log)
		}
	}
}

// TestCanariesClearWhomALoadAccused: a forwarder that has no load any more is cleared by canaries alone, also of what
// only its load had shown.
func TestCanariesClearWhomALoadAccused(t *testing.T) {
	for _, accused := range []bool{true, false} {
		d, n := quiet()
		n.Alarm, n.Tests[sudden].Log = accused, d.limit
		for range 100 {
			d.now += 10
			d.betCanary(n, &d.canaries.Level[0], [classes]float64{}, &waiting{}, false)
		}
		if got := n.Tests[sudden].Log; (got == 0) != accused {
			t.Errorf("accused %v: wealth %g after 100 canaries", accused, got)
		}
	}
}

// TestWhatSlowPoolsExplainOfACanary: of what a canary takes through full forwarders the back end is a smaller part than
// through an idle one. That is accused by what slow pools do not explain.
func TestWhatSlowPoolsExplainOfACanary(t *testing.T) {
	for _, c := range []struct {
		times float64
		grows bool
	}{{1.8, false}, {6, true}} {
		d, n := quiet()
		d.Backend(4.5, 2.8)
		idle := &d.canaries.Level[0]
		for i, usual := range []float64{2e-3, 2e-3, 0.3e-3} {
			idle.Usual[i], idle.Noise[i] = compare.Mean{Mean: math.Log(usual), N: 100}, compare.Mean{Mean: 0.06, N: 100}
		}
		for other := range 4 {
			through := &node{Kept: Kept{Index: n.Index + 1 + other}}
			d.canaries.newest.note(through, d.now, &d.reference, [classes]float64{0.1, 0.1})
		}
		d.Probe(time.Unix(d.now, 0), Probe{n.ID, [classes]float64{2e-3 * c.times, 2e-3 * c.times, 0.3e-3}})
		if got := n.Tests[canary].Log > 0; got != c.grows {
			t.Errorf("%g times as long: wealth %g", c.times, n.Tests[canary].Log)
		}
	}
}
