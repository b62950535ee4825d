package tables

import (
	"math"
	"testing"

	"fairway/collector/topology"
	"fairway/remap/relay"
	"fairway/remap/share"
)

// What a job got counts while it runs: one that has ended takes nothing off the others' parts.
func TestAnEndedJobHasNoPart(t *testing.T) {
	g := newGatherer(&Config{Settings: Settings{Policy: "size-fair"}})
	table := func(names ...string) map[topology.ForwarderID]relay.Table {
		rt := relay.Table{Policy: "size-fair"}
		size := 1.0
		for _, n := range names {
			rt.Jobs = append(rt.Jobs, relay.Job{Row: share.Row{Job: n, Size: &size}})
		}
		return map[topology.ForwarderID]relay.Table{"fwd1": rt}
	}
	second, cost := 0.0, map[string]int64{}
	round := func(tables map[topology.ForwarderID]relay.Table, names ...string) {
		second++
		r := relay.Report{UpSeconds: second, By: relay.ByLocal, Jobs: map[string]relay.Served{}}
		for _, n := range names {
			cost[n] += 1000
			r.Jobs[n] = relay.Served{Cost: cost[n]}
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
