package scenariotest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"fairway/anomaly/failslow"
	"fairway/anomaly/recorded"
	"fairway/collector/topology"
)

// number reads an environment variable; usual where it is not set.
func number(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// TestScoreOfSizes plays layers of FAIRWAY_NODES forwarders (8), FAIRWAY_SEEDS (6) of each mix from seed FAIRWAY_FIRST
// (2001) on; FAIRWAY_MIX chooses one of them. At a site of eight most forwarders are hidden behind streaming jobs, now
// and then all of them.
func TestScoreOfSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of simulated forwarders")
	}
	nodes, count, first := number("FAIRWAY_NODES", 8), number("FAIRWAY_SEEDS", 6), number("FAIRWAY_FIRST", 2001)
	var all Score
	for _, mix := range []Mix{Usual, Shared, Storms, Dear, Rack} {
		if only := os.Getenv("FAIRWAY_MIX"); only != "" && only != string(mix) || mix == Rack && nodes < 40 {
			continue // most of the layer
		}
		var one Score
		for seed := first; seed < first+count; seed++ {
			s := DrawSized(uint64(seed), nodes, mix)
			events, labels := Play(s, asDaemon())
			name := fmt.Sprintf("%s, seed %d", mix, seed)
			one.Add(name, slices.Clone(labels), slices.Clone(events), nodes, epoch, epoch+int64(s.Seconds))
			all.Add(name, labels, events, nodes, epoch, epoch+int64(s.Seconds))
		}
		t.Logf("%d forwarders, %s: %s", nodes, mix, one.String())
	}
	t.Logf("%d forwarders: %s", nodes, all.String())
	for _, f := range all.FalseAlarms {
		t.Log("false: ", f)
	}
	for _, f := range all.NotFound {
		t.Log("missed:", f)
	}
	if all.Precision() < 0.9 || all.Recall() < 0.8 {
		t.Errorf("precision %.2f, recall %.2f", all.Precision(), all.Recall())
	}
}

// smallSite is what a daemon of eight forwarders records in forty minutes: as many small requests on each, one job
// that is known, on two of them; the second of these is a fifth as quick for the last ten minutes. Of one forwarder
// nothing is read, and a minute is missing of all. Operations scatter by so much, log; canaries are as quick through
// all, or absent.
func smallSite(seed uint64, scatter float64, canaries bool) *Recording {
	const nodes, seconds, sick, unread, ill = 8, 2400, 3, 7, 1800
	r := &Recording{Scenario: &Scenario{Seed: seed, Nodes: nodes, Seconds: seconds}}
	random := rand.New(rand.NewPCG(seed, 0x5a11))
	for n := range nodes {
		r.names = append(r.names, topology.NodeID(fmt.Sprint("fwd", n)))
	}
	r.Jobs = []recorded.Job{{ID: "77", Start: epoch, End: epoch + seconds, Nodes: r.names[2:4]}}
	r.labels = []Label{{Fault: true, Node: string(r.names[sick]), Start: epoch + ill, End: epoch + seconds,
		Kind: "small site", Info: 5000, Seconds: seconds - ill, First: epoch + ill}}
	for now := range seconds {
		second := recorded.Second{RX: epoch + int64(now)}
		for n, id := range r.names {
			canary := failslow.Probe{Node: id, Took: [3]float64{20e-6, 20e-6, math.NaN()}}
			if !canaries {
				canary.Took[0], canary.Took[1] = math.NaN(), math.NaN()
			}
			r.canaries = append(r.canaries, canary)
			if now/60%30 == 7 || n == unread {
				continue
			}
			o := failslow.Observation{Node: id, QueueLen: 20e-6}
			for c := range 2 {
				ops := math.Round(60 * math.Exp(scatter*random.NormFloat64()))
				took := 500e-6 * math.Exp(0.1*random.NormFloat64())
				if n == sick && now >= ill {
					took *= 5
				}
				o.Class[c] = failslow.ClassSecond{Ops: ops, Bytes: ops * 16e3, Wait: 20e-6, Exec: took}
			}
			second.Rows = append(second.Rows, o)
		}
		r.Seconds = append(r.Seconds, second)
	}
	return r
}

// TestScoreOfASmallSite: a forwarder that has been five times as slow for ten minutes is found on a site of eight,
// however steady its work is and whether canaries go through it or not; nobody else is accused. FAIRWAY_SEEDS of each.
func TestScoreOfASmallSite(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of simulated forwarders")
	}
	var all Score
	for seed := range uint64(number("FAIRWAY_SEEDS", 3)) {
		for _, scatter := range []float64{0, 0.1, 0.3} {
			for _, canaries := range []bool{false, true} {
				for _, set := range []recorded.Settings{asDaemon(), recorded.DefaultSettings()} {
					r := smallSite(seed, scatter, canaries)
					name := fmt.Sprintf("seed %d, operations scatter by %g, canaries %v", seed, scatter, canaries)
					all.Add(name, r.Labels(), r.Play(set), r.Scenario.Nodes, epoch, epoch+int64(r.Scenario.Seconds))
				}
			}
		}
	}
	t.Log(all.String())
	if len(all.FalseAlarms) > 0 || len(all.NotFound) > 0 || all.Delay(.95) > 120 {
		t.Error(all.FalseAlarms, all.NotFound)
	}
}
