package clientslow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// writes is one second of a forwarder's writes, as its clients saw them.
func writes(o *failslow.Observation, ops, size, seconds float64) {
	o.Class[failslow.Write] = failslow.ClassSecond{Ops: ops, Bytes: ops * size, Exec: seconds}
}

// firstAccused plays seconds of nodes forwarders and returns when the first one was accused, -1 for never.
func firstAccused(seed uint64, nodes, seconds int, row func(s, i int, scatter float64, o *failslow.Observation)) int {
	d, r := New(500*24*time.Hour), rand.New(rand.NewPCG(seed, 12))
	for s := range seconds {
		obs := make([]failslow.Observation, nodes)
		for i := range obs {
			obs[i].Node = topology.NodeID(fmt.Sprint("fwd", i))
			row(s, i, math.Exp(0.2*r.NormFloat64()), &obs[i])
		}
		for _, v := range d.Second(time.Unix(1.8e9+int64(s), 0), obs) {
			if v.Level == anomaly.Alarm {
				return s
			}
		}
	}
	return -1
}

// TestWhatCannotBeComparedAccusesNobody: the same slowness of fwd1 from second 600 on accuses it beside peers that do
// the same work now, and not where something else may explain it.
func TestWhatCannotBeComparedAccusesNobody(t *testing.T) {
	slow := func(s, i int, times float64) float64 {
		if i == 1 && s >= 600 {
			return times
		}
		return 1
	}
	for _, c := range []struct {
		name  string
		nodes int
		row   func(s, i int, scatter float64, o *failslow.Observation)
		found bool
	}{
		{"peers at the same work", 4, func(s, i int, scatter float64, o *failslow.Observation) {
			writes(o, 100, 64e3, 5e-3*scatter*slow(s, i, 4))
		}, true},
		{"one peer alone", 2, func(s, i int, scatter float64, o *failslow.Observation) {
			writes(o, 100, 64e3, 5e-3*scatter*slow(s, i, 4))
		}, false},
		{"peers that stopped a minute ago", 4, func(s, i int, scatter float64, o *failslow.Observation) {
			if i == 1 || s < 540 {
				writes(o, 100, 64e3, 5e-3*scatter*slow(s, i, 4))
			}
		}, false},
		{"requests four times as large as any peer's", 4, func(s, i int, scatter float64, o *failslow.Observation) {
			size := 64e3
			if slow(s, i, 4) > 1 {
				size = 256e3
			}
			writes(o, 100, size, 5e-3*scatter*slow(s, i, 4))
		}, false},
		{"a forwarder that always was three times as slow, and a slow back end", 4,
			func(s, i int, scatter float64, o *failslow.Observation) {
				took := 5e-3 * scatter
				if i == 1 {
					took *= 3
				}
				if s >= 600 {
					took *= 4
				}
				writes(o, 100, 64e3, took)
			}, false},
		{"differences of less than two milliseconds", 4, func(s, i int, scatter float64, o *failslow.Observation) {
			writes(o, 100, 64e3, 3e-4*scatter*slow(s, i, 4))
		}, false},
		{"a packet or two", 4, func(s, i int, scatter float64, o *failslow.Observation) {
			o.Packets = 20
			if slow(s, i, 4) > 1 {
				o.Lost = 2
			}
		}, false},
	} {
		for seed := range uint64(3) {
			if at := firstAccused(seed, c.nodes, 1500, c.row); (at >= 600) != c.found || at >= 0 && at < 600 {
				t.Errorf("%s, seed %d: accused after %d s", c.name, seed, at)
			}
		}
	}
}

// TestAlarmHolds: an alarm does not end with a few good seconds, nor with seconds in which the slow class is silent,
// and ends soon when that class is at work and well, however much the seconds of the layer scatter.
func TestAlarmHolds(t *testing.T) {
	d, r := New(500*24*time.Hour), rand.New(rand.NewPCG(3, 3))
	now := int64(1.8e9)
	play := func(seconds int, times float64, reads bool) (last *anomaly.Verdict, alarms int) {
		for range seconds {
			now++
			var obs []failslow.Observation
			for i := range 6 {
				o := failslow.Observation{Node: topology.NodeID(fmt.Sprint("fwd", i))}
				took := 5e-3 * math.Exp(0.8*r.NormFloat64())
				switch {
				case i == 1 && reads:
					o.Class[failslow.Read] = failslow.ClassSecond{Ops: 100, Bytes: 6.4e6, Exec: took}
				case i == 1:
					writes(&o, 100, 64e3, took*times)
				default:
					o.Class[failslow.Read] = failslow.ClassSecond{Ops: 100, Bytes: 6.4e6, Exec: took}
					writes(&o, 100, 64e3, took)
				}
				obs = append(obs, o)
			}
			last = nil
			for _, v := range d.Second(time.Unix(now, 0), obs) {
				if v.Node == "fwd1" {
					if v.Level == anomaly.Alarm {
						alarms++
					}
					last = &v
				} else if v.Level == anomaly.Alarm {
					t.Fatalf("%s is accused: %s", v.Node, v.Sentence)
				}
			}
		}
		return last, alarms
	}
	play(900, 1, false)
	play(300, 10, false)
	if v, n := play(10, 10, false); n != 10 {
		t.Fatalf("after five minutes at a tenth of its speed: %+v", v)
	}
	if v, n := play(8, 1, false); n != 8 {
		t.Errorf("eight good seconds ended the alarm: %+v", v)
	}
	if v, _ := play(120, 1, true); v != nil {
		t.Errorf("while it only reads, which asks for no judgement, it is judged: %+v", v)
	}
	if v, _ := play(40, 1, false); v == nil || v.Level != anomaly.Clean {
		t.Errorf("after forty seconds as quick as its peers: %+v", v)
	}
}

// TestARatioIsToWholeBursts: a slow forwarder's bursts go on after the others', whose last second is quick. What is
// shown is the ratio to what operations of whole bursts take.
func TestARatioIsToWholeBursts(t *testing.T) {
	const took, last, slow = 5e-3, 1e-3, 30e-3
	d := New(500 * 24 * time.Hour)
	var shown []float64
	for s := range 900 {
		obs := make([]failslow.Observation, 4)
		for i := range obs {
			at := s % 12
			switch obs[i].Node = topology.NodeID(fmt.Sprint("fwd", i)); {
			case i == 1 && s >= 600 && at < 8:
				writes(&obs[i], 40, 256e3, slow)
			case i == 1 && s >= 600:
			case at < 3:
				writes(&obs[i], 80, 256e3, took*(1+0.1*float64(i)))
			case at == 3:
				writes(&obs[i], 8, 256e3, last)
			}
		}
		for _, v := range d.Second(time.Unix(1.8e9+int64(s), 0), obs) {
			if v.Node == "fwd1" && v.Level == anomaly.Alarm && v.Ratio > 0 {
				shown = append(shown, v.Ratio)
			}
		}
	}
	const want = slow / ((3*80*took*1.2 + 8*last) / (3*80 + 8))
	if got := anomaly.Median(shown); len(shown) < 60 || math.Abs(math.Log(got/want)) > math.Log(1.3) {
		t.Errorf("shown as %.1fx in %d seconds, its clients' ratio is %.1f", got, len(shown), want)
	}
}
