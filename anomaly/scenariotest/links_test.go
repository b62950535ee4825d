package scenariotest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/clientslow"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// way is a capped link of a forwarder and when it first showed.
type way struct {
	fault          *Fault
	seconds, first int
	found          int
}

// playLinks gives the detector what clients waited on the way to each forwarder, as the daemon does where forwarders
// time their own requests. Every fault of the layer is a capped link.
func playLinks(r *Recording) (ways []*way, wrong []topology.NodeID) {
	const network = 0.4e-3 // s that a message takes
	const shows = 2e-3     // s on the way that are compared at least
	s := r.Scenario
	random := rand.New(rand.NewPCG(s.Seed, 0x11c5))
	by := map[topology.NodeID]*way{}
	for i := range s.Faults {
		w := &way{fault: &s.Faults[i]}
		by[r.names[w.fault.Node]], ways = w, append(ways, w)
	}
	index := map[topology.NodeID]int{}
	for i, id := range r.names {
		index[id] = i
	}
	test, alarm := clientslow.New(failslow.DefaultSettings().FalseAlarmEvery), map[topology.NodeID]bool{}
	for now := range r.Seconds {
		rows := slices.Clone(r.Seconds[now].Rows)
		for k := range rows {
			o := &rows[k]
			perByte, seen := r.ways[now*s.Nodes+index[o.Node]], false
			for c := range o.Class {
				ops, bytes := o.Class[c].Ops, o.Class[c].Bytes
				held := perByte * bytes / max(ops, 1)
				scatter := math.Exp(0.3 * random.NormFloat64())
				o.Class[c] = failslow.ClassSecond{Ops: ops, Bytes: bytes, Exec: network*scatter + held,
					Wait: math.NaN()}
				seen = seen || ops >= 2 && held >= shows
			}
			if w := by[o.Node]; w != nil && seen {
				if w.seconds++; w.first == 0 {
					w.first = now
				}
			}
		}
		for _, v := range test.Second(time.Unix(epoch+int64(now), 0), rows) {
			was := alarm[v.Node]
			if alarm[v.Node] = v.Level == anomaly.Alarm; was || !alarm[v.Node] {
				continue
			}
			w := by[v.Node]
			switch {
			case w == nil || now < w.fault.Start || now > w.fault.End+grace:
				wrong = append(wrong, v.Node)
			case w.found == 0:
				w.found = now
			}
		}
	}
	return ways, wrong
}

// TestScoreOfLinks plays closed loops in which links between clients and forwarders are capped, and judges these by
// what the clients waited on the way. Arguments as of ScoreOfLoops.
func TestScoreOfLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of simulated forwarders")
	}
	nodes, count, first := number("FAIRWAY_NODES", 8), number("FAIRWAY_SEEDS", 12), number("FAIRWAY_FIRST", 101)
	found, observable, missed, delays, days := 0, 0, 0, []int{}, 0.0
	var wrongly []topology.NodeID
	for seed := first; seed < first+count; seed++ {
		s := DrawLoops(uint64(seed), nodes)
		for i := range s.Faults {
			f := &s.Faults[i]
			f.Kind, f.Severity = "client_link", 0.04+0.1*rand.New(rand.NewPCG(uint64(seed), uint64(i))).Float64()
			days -= float64(f.End-f.Start) / 86400
		}
		days += float64(nodes*s.Seconds) / 86400
		ways, wrong := playLinks(Record(s))
		wrongly = append(wrongly, wrong...)
		for _, w := range ways {
			if w.seconds < 30 {
				continue
			}
			observable++
			if w.found == 0 {
				missed++
				t.Logf("missed: seed %d, forwarder %d, %.2f of the peak from %d to %d, in %d s", seed, w.fault.Node,
					w.fault.Severity, w.fault.Start, w.fault.End, w.seconds)
				continue
			}
			found++
			delays = append(delays, max(0, w.found-w.first))
		}
	}
	slices.Sort(delays)
	if observable == 0 || found == 0 {
		t.Fatal("no link showed")
	}
	t.Logf("%d forwarders: %d of %d capped links found, after %d s (p95 %d), false alarms %d in %.1f node-days %v",
		nodes, found, observable, delays[len(delays)/2], delays[len(delays)*19/20], len(wrongly), days, wrongly)
	if missed*5 > observable || len(wrongly) > 0 {
		t.Errorf("%d of %d missed, falsely accused %v", missed, observable, wrongly)
	}
}
