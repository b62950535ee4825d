package tables

import (
	"math"
	"testing"

	"fairway/collector/topology"
	"fairway/remap/policy/share"
	"fairway/remap/queue"
)

// What a job got counts while it runs: one that has ended takes nothing off the others' parts.
func TestAnEndedJobHasNoPart(t *testing.T) {
	g := newGatherer(&Config{Settings: Settings{Policy: "size-fair"}})
	table := func(names ...string) map[topology.ForwarderID]queue.Table {
		rt := queue.Table{Policy: "size-fair"}
		size := 1.0
		for _, n := range names {
			rt.Jobs = append(rt.Jobs, queue.Job{Row: share.Row{Job: n, Size: &size}})
		}
		return map[topology.ForwarderID]queue.Table{"fwd1": rt}
	}
	second, cost := 0.0, map[string]int64{}
	round := func(tables map[topology.ForwarderID]queue.Table, names ...string) {
		second++
		r := queue.Report{UpSeconds: second, By: queue.ByLocal, Jobs: map[string]queue.Served{}}
		for _, n := range names {
			cost[n] += 1000
			r.Jobs[n] = queue.Served{Cost: cost[n]}
		}
		g.reports(tables, map[topology.ForwarderID]answer{"fwd1": {report: r}})
	}
	for range 20 {
		round(table("a", "b"), "a", "b")
	}
	round(table("a"), "a")
	served := g.members["fwd1"].served
	if _, still := served["b"]; still || math.Abs(served["a"]-1000) > 50 {
		t.Errorf("served, per second: %v; want 1000 for a and nothing of b, which has ended", served)
	}
}

// A forwarder that has hung since the daemon began does nothing; it is not taken for one that was never asked for much.
// Job a has work at both, b at the one that serves: they have half of that each.
func TestAForwarderThatHangsFromTheStart(t *testing.T) {
	g := newGatherer(&Config{Settings: Settings{Policy: "job-fair", Idle: share.Inside}})
	table := func(names ...string) (rt queue.Table) {
		for _, n := range names {
			rt.Jobs = append(rt.Jobs, queue.Job{Row: share.Row{Job: n}})
		}
		return rt
	}
	tables := map[topology.ForwarderID]queue.Table{"hangs": table("a"), "serves": table("a", "b")}
	var reports []share.Report
	for second := range 3 {
		at, cost := float64(second+1), int64(second)*1000
		report := func(jobs map[string]queue.Served) answer {
			return answer{report: queue.Report{UpSeconds: at, WaitedSeconds: at, Jobs: jobs}}
		}
		_, reports = g.reports(tables, map[topology.ForwarderID]answer{
			"hangs": report(map[string]queue.Served{"a": {WaitedSeconds: at}}),
			"serves": report(map[string]queue.Served{"a": {Cost: cost, WaitedSeconds: at},
				"b": {Cost: cost, WaitedSeconds: at}}),
		})
	}
	round := share.Gather(g.policy, g.idle, reports)
	if of := round.Server[1]; math.Abs(of[0]-of[1]) > 0.02 {
		t.Errorf("of the forwarder that serves a has %.3f and b %.3f; want as much", of[0], of[1])
	}
}

// Of what a forwarder did before it hung, nothing is left after a while: not even numbers too small to reckon with.
func TestAForwarderThatHangsForLong(t *testing.T) {
	g := newGatherer(&Config{Settings: Settings{Policy: "job-fair", Idle: share.Inside}})
	tables := map[topology.ForwarderID]queue.Table{"hangs": {Jobs: []queue.Job{{Row: share.Row{Job: "a"}}}}}
	for second := range 4000 {
		at := float64(second + 1)
		g.reports(tables, map[topology.ForwarderID]answer{"hangs": {report: queue.Report{UpSeconds: at,
			WaitedSeconds: at,
			Jobs:          map[string]queue.Served{"a": {Cost: min(int64(second), 5) * 1e9, WaitedSeconds: at}}}}})
		if c := g.members["hangs"].capacity; second == 5 && c != 1e9 || second == 200 && c != 0 {
			t.Errorf("after %d s it is taken to do %g a second", second, c)
		}
	}
}
