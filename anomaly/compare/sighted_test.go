package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// play lets three observers ask four subjects for some seconds; slow times as slow are the first subject's answers from
// the second begin on, until end. It returns the seconds in which each subject was first accused, and was not any more.
func play(rules Rules, seed uint64, slow float64, begin, end, seconds int) (found, over map[topology.NodeID]int) {
	r := rand.New(rand.NewPCG(seed, 1))
	j := New(500*24*time.Hour, rules)
	found, over = map[topology.NodeID]int{}, map[topology.NodeID]int{}
	for s := range seconds {
		for o := range 3 {
			for k := range 4 {
				took, ops := 0.01*float64(1+k)*math.Exp(0.3*r.NormFloat64()), 10.0
				if rules.Alike {
					took = 0.02 * math.Exp(0.3*r.NormFloat64())
				}
				if k == 0 && s >= begin && s < end {
					took, ops = took*slow, ops/slow
				}
				j.Take(Sighting{topology.NodeID(fmt.Sprint("c", o)), topology.NodeID(fmt.Sprint("s", k)), "read", 0,
					ops, took})
			}
		}
		for _, v := range j.Second(time.Unix(int64(1_000_000+s), 0)) {
			switch at := found[v.Node]; {
			case v.Level == anomaly.Alarm && at == 0:
				found[v.Node] = s
			case v.Level == anomaly.Clean && at > 0 && over[v.Node] == 0:
				over[v.Node] = s
			}
		}
	}
	return found, over
}

func allRules() map[string]Rules {
	return map[string]Rules{"routers": Routers(), "targets": Targets(), "gateways": Gateways(),
		"forwarders": Forwarders(), "clients": Clients()}
}

// A subject that is slow for all who ask it is found within a minute, nobody else is accused, and it is over within two
// after it is well.
func TestASlowSubjectIsNamedAndNobodyElse(t *testing.T) {
	for name, rules := range allRules() {
		times := 4.0
		if name == "gateways" {
			times = 6
		}
		for seed := range uint64(20) {
			found, over := play(rules, seed, times, 200, 400, 700)
			if at := found["s0"]; len(found) != 1 || at < 200 || at > 260 {
				t.Errorf("%s, seed %d: %v", name, seed, found)
			}
			if at := over["s0"]; at < 400 || at > 520 {
				t.Errorf("%s, seed %d: over %v", name, seed, over)
			}
		}
	}
}

// Nobody is accused in an hour of chance, nor for a load that others do not have.
func TestChanceAndLoadAccuseNobody(t *testing.T) {
	for name, rules := range allRules() {
		for seed := range uint64(5) {
			if found, _ := play(rules, seed, 1, 0, 0, 3600); len(found) > 0 {
				t.Errorf("%s, seed %d: %v", name, seed, found)
			}
		}
	}
	j := New(500*24*time.Hour, Routers())
	for s := range 600 {
		for k := range 4 {
			ops, took := 20.0, 0.02
			if k == 0 { // it has the queue of what is behind all, and passes more on
				ops, took = 40, 0.1
			}
			j.Take(Sighting{Observer: "c", Subject: topology.NodeID(fmt.Sprint("s", k)), Ops: ops, Took: took})
		}
		for _, v := range j.Second(time.Unix(int64(1_000_000+s), 0)) {
			if v.Level > anomaly.Clean {
				t.Fatalf("%d: %+v", s, v)
			}
		}
	}
}

// One that has nobody beside it is not compared; of two the one that is slower than it was is named.
func TestGatewaysNeedAPeerAndAPast(t *testing.T) {
	for name, c := range map[string]struct {
		took  func(s, k int) float64
		nodes int
		found string
	}{
		"alone":                 {func(s, k int) float64 { return 0.01 * float64(1+s/200*9) }, 1, ""},
		"both slower than ever": {func(s, k int) float64 { return 0.01 * float64(1+s/200*9) }, 2, ""},
		"one always was":        {func(s, k int) float64 { return 0.01 * float64(1+9*k) }, 2, ""},
		"one is slower":         {func(s, k int) float64 { return 0.01 * float64(1+s/200*9*k) }, 2, "s1"},
	} {
		j, found := New(500*24*time.Hour, Gateways()), ""
		for s := range 390 {
			for k := range c.nodes {
				j.Take(Sighting{"be1", topology.NodeID(fmt.Sprint("s", k)), "write", 8, 5, c.took(s, k)})
			}
			for _, v := range j.Second(time.Unix(int64(1_000_000+s), 0)) {
				if v.Level == anomaly.Alarm {
					found = string(v.Node)
				}
			}
		}
		if found != c.found {
			t.Errorf("%s: found %q, want %q", name, found, c.found)
		}
	}
}

// Forwarders that are clients of the same targets: the slow one is distinguished from a slow target, and a target that
// is slow for all accuses nobody, whoever asks it for most.
func TestASlowTargetIsNobodysFault(t *testing.T) {
	rng, now := rand.New(rand.NewPCG(1, 2)), int64(1e9)
	j := New(500*24*time.Hour, Forwarders())
	for _, c := range []struct {
		name    string
		seconds int64
		slow    func(f, o int) bool
		times   float64
		found   map[topology.NodeID]int64 // within which seconds
	}{
		{"healthy", 600, func(f, o int) bool { return false }, 1, nil},
		{"a slow target", 600, func(f, o int) bool { return o == 3 }, 10, nil},
		{"a slow forwarder", 120, func(f, o int) bool { return f == 2 }, 2, map[topology.NodeID]int64{"f2": 45}},
	} {
		begun, found := now, map[topology.NodeID]int64{}
		for ; now < begun+c.seconds; now++ {
			for f := range 4 {
				for o := range 6 {
					ops, took := 20.0, 4e-3*math.Exp(0.25*rng.NormFloat64())
					if f == 1 && o == 3 { // most of what this target does
						ops = 200
					}
					if c.slow(f, o) {
						took *= c.times
					}
					j.Take(Sighting{topology.NodeID(fmt.Sprint("OST", o)), topology.NodeID(fmt.Sprint("f", f)), "write",
						20, ops, took})
				}
			}
			for _, v := range j.Second(time.Unix(now, 0)) {
				if v.Level == anomaly.Alarm && found[v.Node] == 0 {
					found[v.Node] = now - begun
				}
			}
		}
		if len(found) != len(c.found) {
			t.Errorf("%s: %v are accused", c.name, found)
		}
		for id, within := range c.found {
			if at := found[id]; at == 0 || at > within {
				t.Errorf("%s: %s is accused after %d s", c.name, id, at)
			}
		}
	}
}
