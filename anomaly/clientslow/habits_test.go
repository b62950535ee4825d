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

// work is how the jobs of one forwarder of eight, fwd2, work: how long its writes take beside the usual, of how
// many operations the second is, and how many metadata operations another job makes beside them.
type work struct{ times, ops, storm float64 }

// accusedFor plays two hours, in which all forwarders write and fwd2 as at says, and returns who is accused, when and
// why.
func accusedFor(seed uint64, scatter func(r *rand.Rand, node int) float64, at func(s int, r *rand.Rand) work) string {
	d, r := New(500*24*time.Hour), rand.New(rand.NewPCG(seed, 3))
	for s := range 2 * 3600 {
		var obs []failslow.Observation
		for i := range 8 {
			o := failslow.Observation{Node: topology.NodeID(fmt.Sprint("fwd", i))}
			now := work{times: 1, ops: 120}
			if i == 2 {
				now = at(s, r)
			}
			if now.ops > 0 {
				o.Class[failslow.Write] = failslow.ClassSecond{Ops: now.ops, Bytes: now.ops * 64e3,
					Exec: 5e-3 * now.times * math.Exp(scatter(r, i))}
			}
			if now.storm > 0 {
				o.Class[failslow.Meta] = failslow.ClassSecond{Ops: now.storm, Exec: 5e-4}
			}
			obs = append(obs, o)
		}
		for _, v := range d.Second(time.Unix(1.8e9+int64(s), 0), obs) {
			if v.Level == anomaly.Alarm {
				return fmt.Sprintf("after %d s: %s", s, v.Sentence)
			}
		}
	}
	return ""
}

// TestHabitsOfWorkAccuseNobody: each case is one thing that jobs do or a busy machine makes of them, and needs one
// thing that the detector knows of it; without that fwd2 is accused.
func TestHabitsOfWorkAccuseNobody(t *testing.T) {
	quiet := func(r *rand.Rand, _ int) float64 { return 0.2 * r.NormFloat64() }
	slowly := func() func(r *rand.Rand, node int) float64 { // what slows a second slows those after it
		var x [8]float64
		return func(r *rand.Rand, node int) float64 {
			x[node] += -x[node]/2 + 0.78*r.NormFloat64() // 0.9 in all
			return x[node]
		}
	}
	for _, c := range []struct {
		name    string
		scatter func() func(r *rand.Rand, node int) float64
		at      func(s int, r *rand.Rand) work
	}{
		{"a storm beside which writes took three times as long before: habits by level", nil,
			func(s int, _ *rand.Rand) work {
				if s < 600 || s >= 5400 {
					return work{3, 120, 1200}
				}
				return work{1, 120, 0}
			}},
		{"the first storm, twice as long: what is strange must be slower", nil, func(s int, _ *rand.Rand) work {
			if s >= 3600 {
				return work{1.9, 120, 1200}
			}
			return work{1, 120, 0}
		}},
		{"bursts whose few last operations take ten times as long: a mean of few counts for less", nil,
			func(s int, _ *rand.Rand) work {
				switch s % 10 {
				case 0:
					return work{1, 120, 0}
				case 1:
					return work{10, 12, 0}
				}
				return work{}
			}},
		{"two seconds in five that take two and a half times as long: a margin that is learnt", nil,
			func(_ int, r *rand.Rand) work {
				if r.IntN(5) < 2 {
					return work{2.5, 120, 0}
				}
				return work{1, 120, 0}
			}},
		{"a busy machine: a scatter that is learnt", slowly, func(int, *rand.Rand) work { return work{1, 120, 0} }},
	} {
		for seed := range uint64(3) {
			scatter := quiet
			if c.scatter != nil {
				scatter = c.scatter()
			}
			if sentence := accusedFor(seed, scatter, c.at); sentence != "" {
				t.Errorf("%s: seed %d: %s", c.name, seed, sentence)
			}
		}
	}
}

// TestWhatSlowsAllIsNobodysHabit: for four minutes everything behind the forwarders was slow; one of them that is as
// slow alone a minute later is accused within half a minute, also where its first second was among those.
func TestWhatSlowsAllIsNobodysHabit(t *testing.T) {
	const slowFrom, slowTo, aloneFrom = 120, 360, 420
	for _, first := range []int{0, slowFrom + 10} {
		layer := 1.0
		accused := accusedFor(7, func(r *rand.Rand, node int) float64 {
			return math.Log(layer) + 0.3*r.NormFloat64()
		}, func(s int, _ *rand.Rand) work {
			if layer = 1; s >= slowFrom && s < slowTo {
				layer = 10
			}
			switch {
			case s < first:
				return work{}
			case s >= aloneFrom:
				return work{10, 120, 0}
			}
			return work{1, 120, 0}
		})
		var after int
		if _, err := fmt.Sscanf(accused, "after %d s: fwd2", &after); err != nil || after < aloneFrom ||
			after > aloneFrom+30 {
			t.Errorf("first seen after %d s: %q", first, accused)
		}
	}
}

// TestWhoIsSparedKeepsItsHabit: one that always took three times as long is not slowed while the seven others are, and
// is not accused when they are well again.
func TestWhoIsSparedKeepsItsHabit(t *testing.T) {
	for seed := range uint64(3) {
		layer := 1.0
		if got := accusedFor(seed, func(r *rand.Rand, node int) float64 {
			x := 0.3 * r.NormFloat64()
			if node != 2 {
				x += math.Log(layer)
			}
			return x
		}, func(s int, _ *rand.Rand) work {
			if layer = 1; s >= 1200 && s < 1500 {
				layer = 10
			}
			return work{3, 120, 0}
		}); got != "" {
			t.Errorf("seed %d: %s", seed, got)
		}
	}
}
