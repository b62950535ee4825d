package clientslow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// layer is eight forwarders whose clients see lognormal latencies; each works in bursts of its own.
type layer struct {
	*Detector
	rng   *rand.Rand
	now   time.Time
	slow  func(node, class int) float64 // factor on what clients see
	loses func(node int) float64        // share of packets that a link loses besides the usual
	full  func(node int) bool           // at its peak; nil: nobody
	alarm map[topology.NodeID]time.Time
	last  map[topology.NodeID]anomaly.Verdict
}

func newLayer(seed uint64) *layer {
	return &layer{Detector: New(500 * 24 * time.Hour), rng: rand.New(rand.NewPCG(seed, 8)), now: time.Unix(1.8e9, 0),
		slow: func(int, int) float64 { return 1 }, loses: func(int) float64 { return 0 },
		alarm: map[topology.NodeID]time.Time{}, last: map[topology.NodeID]anomaly.Verdict{}}
}

func (l *layer) live(seconds int) {
	for range seconds {
		l.now = l.now.Add(time.Second)
		common := math.Exp(0.2 * l.rng.NormFloat64())
		var obs []failslow.Observation
		for i := range 8 {
			o := failslow.Observation{Node: topology.NodeID(fmt.Sprint("fwd", i))}
			busy := (l.now.Unix()+int64(3*i))%20 < 12
			for c, usual := range []float64{3e-3, 4e-3, 1e-3} {
				if !busy || c == 0 && i%2 == 0 { // half of them never read
					continue
				}
				k := &o.Class[c]
				k.Ops, k.Exec = 40, usual*common*l.slow(i, c)*math.Exp(0.35*l.rng.NormFloat64())
				if c < 2 {
					k.Bytes = 40 * 256e3
				}
			}
			o.Full = l.full != nil && l.full(i)
			if busy {
				o.Packets = 8000
				o.Lost = 8000 * (0.001*l.rng.ExpFloat64() + l.loses(i)*(0.5+l.rng.Float64()))
			}
			obs = append(obs, o)
		}
		for _, v := range l.Second(l.now, obs) {
			l.last[v.Node] = v
			if _, ok := l.alarm[v.Node]; v.Level == anomaly.Alarm && !ok {
				l.alarm[v.Node] = l.now
			}
		}
	}
}

func TestHealthyLayerIsNotAccused(t *testing.T) {
	for seed := range uint64(5) {
		l := newLayer(seed)
		l.live(4 * 3600)
		l.slow = func(int, int) float64 { return 8 } // the back end: everybody
		l.live(600)
		if len(l.alarm) > 0 {
			t.Errorf("seed %d: accused %v", seed, l.alarm)
		}
	}
}

func TestOnlyTheSlowOneIsAccused(t *testing.T) {
	for _, c := range []struct {
		name   string
		class  int // -1: all
		factor float64
		within time.Duration
		words  string
	}{
		{"a tenth of its speed", -1, 10, 60 * time.Second, "fwd2"},
		{"writes alone", 1, 8, 60 * time.Second, "slow at writing"},
		{"metadata alone", 2, 10, 60 * time.Second, "slow at metadata"},
		{"half its speed", -1, 2, 120 * time.Second, "fwd2"},
	} {
		for seed := range uint64(5) {
			l := newLayer(seed)
			l.live(600)
			begun := l.now
			l.slow = func(n, k int) float64 {
				if n == 2 && (c.class < 0 || k == c.class) {
					return c.factor
				}
				return 1
			}
			l.live(600)
			at, ok := l.alarm["fwd2"]
			if !ok || at.Sub(begun) > c.within || len(l.alarm) != 1 {
				t.Errorf("%s, seed %d: accused %v, %s after it began", c.name, seed, l.alarm, at.Sub(begun))
			}
			if v := l.last["fwd2"]; !strings.Contains(v.Sentence, c.words) || v.Confidence < 0.5 {
				t.Errorf("%s: %+v", c.name, v)
			}
			if c.class >= 0 { // what a plan expects is by the class's own times
				took := l.last["fwd2"].Evidence[failslow.Class(c.class).String()+"_seconds"]
				if took == 0 || took != l.last["fwd2"].Evidence["took_seconds"] {
					t.Errorf("%s: %v", c.name, l.last["fwd2"].Evidence)
				}
			}
			l.slow = func(int, int) float64 { return 1 }
			l.live(300)
			if v := l.last["fwd2"]; v.Level != anomaly.Clean {
				t.Errorf("%s, seed %d: still %d after it ended", c.name, seed, v.Level)
			}
		}
	}
}

// TestLossyLinkIsFound: one packet in fifty is lost, and what the operations take in the mean is as ever. What
// all links lose is nobody's fault.
func TestLossyLinkIsFound(t *testing.T) {
	for seed := range uint64(5) {
		l := newLayer(seed)
		l.live(600)
		l.loses = func(int) float64 { return 0.02 }
		l.live(300)
		if len(l.alarm) > 0 {
			t.Errorf("seed %d: all links lose, and %v are accused", seed, l.alarm)
		}
		l.loses = func(int) float64 { return 0 }
		l.live(300)
		begun := l.now
		l.loses = func(n int) float64 {
			if n == 2 {
				return 0.02
			}
			return 0
		}
		l.live(300)
		at, ok := l.alarm["fwd2"]
		if !ok || at.Sub(begun) > 90*time.Second || len(l.alarm) != 1 {
			t.Errorf("seed %d: accused %v, %s after it began", seed, l.alarm, at.Sub(begun))
		}
		if v := l.last["fwd2"]; v.Class != "" ||
			!strings.Contains(v.Sentence, "% of the packets between it and its clients") ||
			v.Evidence["lost"] < 0.01 {
			t.Errorf("%+v", v)
		}
		l.loses = func(int) float64 { return 0 }
		l.live(300)
		if v := l.last["fwd2"]; v.Level != anomaly.Clean {
			t.Errorf("seed %d: still %d after it ended", seed, v.Level)
		}
	}
}

func TestOneForwarderIsNeverCompared(t *testing.T) {
	d := New(time.Hour)
	for i := range 1000 {
		o := failslow.Observation{Node: "fwd0"}
		o.Class[1] = failslow.ClassSecond{Ops: 10, Bytes: 1e6, Exec: 1}
		for _, v := range d.Second(time.Unix(int64(i), 0), []failslow.Observation{o}) {
			if v.Level > anomaly.Clean {
				t.Fatalf("a lone forwarder was accused: %+v", v)
			}
		}
	}
}

// TestOwnStatNeedsNoJob: the stat that a forwarder's collector sends through it accuses an idle forwarder
// too, but not one at which requests queue: there it waits for its turn.
func TestOwnStatNeedsNoJob(t *testing.T) {
	for _, queue := range []float64{0, 20} {
		d, r := New(500*24*time.Hour), rand.New(rand.NewPCG(4, 4))
		alarm := 0
		for s := range 900 {
			var obs []failslow.Observation
			for i := range 4 {
				o := failslow.Observation{Node: topology.NodeID(fmt.Sprint("fwd", i))}
				o.Class[failslow.Meta].Wait = 4e-4 * math.Exp(0.5*r.NormFloat64())
				if i == 1 && s >= 600 {
					o.Class[failslow.Meta].Wait += 10e-3
					o.QueueLen = queue
				}
				obs = append(obs, o)
			}
			for _, v := range d.Second(time.Unix(1.8e9+int64(s), 0), obs) {
				if v.Level == anomaly.Alarm && alarm == 0 {
					alarm = s
					if v.Node != "fwd1" || v.Class != "meta" ||
						!strings.Contains(v.Sentence, "a stat takes 1") {
						t.Errorf("%+v", v)
					}
				}
			}
		}
		if found := alarm > 620 && alarm < 660; found != (queue == 0) {
			t.Errorf("%g requests queued: accused after %d s", queue, alarm)
		}
	}
}

func BenchmarkSecond(b *testing.B) {
	for _, nodes := range []int{240, 4096} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			d, r := New(500*24*time.Hour), rand.New(rand.NewPCG(4, 4))
			obs := make([]failslow.Observation, nodes)
			for i := range obs {
				o := &obs[i]
				o.Node = topology.NodeID(fmt.Sprintf("fwd%05d", i))
				for c := range o.Class {
					o.Class[c] = failslow.ClassSecond{Ops: 40, Bytes: 40 * 256e3, Wait: 4e-4,
						Exec: 4e-3 * math.Exp(0.35*r.NormFloat64())}
				}
			}
			for s := range 40 {
				d.Second(time.Unix(1.8e9+int64(s), 0), obs)
			}
			b.ResetTimer()
			for i := range b.N {
				d.Second(time.Unix(1.8e9+40+int64(i), 0), obs)
			}
		})
	}
}

// TestFullInEachBurst: forwarders whose bursts fill their links are compared, and what is usual of them is known: one
// that becomes slow, and no longer reaches its peak, is found; one whose clients wait while it is full is not accused.
func TestFullInEachBurst(t *testing.T) {
	for _, stays := range []bool{false, true} {
		l := newLayer(1)
		slow := false
		l.full = func(n int) bool { return n != 2 || !slow || stays }
		l.live(300)
		begun := l.now
		slow = true
		l.slow = func(n, _ int) float64 {
			if n == 2 {
				return 8
			}
			return 1
		}
		l.live(300)
		at, found := l.alarm["fwd2"]
		if found == stays || found && at.Sub(begun) > time.Minute || len(l.alarm) > 1 {
			t.Errorf("full while it is slow: %v; accused %v, slow since %v", stays, l.alarm, begun)
		}
	}
}
