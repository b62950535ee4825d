package layout

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

// Forwarders that are clients of the same targets: the slow one is distinguished from a slow target, and a target that
// is slow for all accuses nobody, whoever asks it for most.
func TestARowIsToldFromAColumn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	run := func(g *Group, from, seconds int, slow func(f, o int) float64) (accused map[topology.NodeID]int) {
		accused = map[topology.NodeID]int{}
		for s := range seconds {
			var pairs []Pair
			for f := range 4 {
				for o := range 6 {
					ops := 20.0
					if f == 1 && o == 3 { // most of what this target does
						ops = 200
					}
					pairs = append(pairs, Pair{Forwarder: topology.NodeID(fmt.Sprintf("f%d", f)),
						Target: topology.TargetID(fmt.Sprintf("OST%04d", o)), Class: failslow.Write, Ops: ops,
						Bytes: ops * (1 << 20),
						Took:  4e-3 * slow(f, o) * math.Exp(0.25*rng.NormFloat64())})
				}
			}
			for _, v := range g.Second(time.Unix(int64(from+s), 0), Rows(pairs)) {
				if v.Level == anomaly.Alarm && accused[v.Node] == 0 {
					accused[v.Node] = s + 1
				}
			}
		}
		return accused
	}
	g := NewForwarders(500 * 24 * time.Hour)
	if got := run(g, 1e9, 600, func(int, int) float64 { return 1 }); len(got) > 0 {
		t.Fatalf("healthy: %v", got)
	}
	if got := run(g, 1e9+600, 600, func(_, o int) float64 { return map[bool]float64{true: 10, false: 1}[o == 3] }); len(
		got) > 0 {
		t.Errorf("a slow target: %v are accused", got)
	}
	if got := run(g, 1e9+1200, 120, func(f, _ int) float64 { return map[bool]float64{true: 2, false: 1}[f == 2] }); len(
		got) != 1 ||
		got["f2"] == 0 || got["f2"] > 45 {
		t.Errorf("a slow forwarder: %v are accused", got)
	}
}
