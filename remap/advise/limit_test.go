package advise_test

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
)

// The card of a job that others wait for offers its limit, and follows it as it does a move, in words of a limit.
func TestTheCardOfALimit(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	f := anomaly.Finding{ID: "F-2", Node: "fwd1", Kind: anomaly.HighBandwidth, State: anomaly.Confirmed,
		Jobs: []topology.JobID{"5"}, Since: now.Add(-5 * time.Minute), Sentence: "fwd1 is filled by 5",
		Impact: []anomaly.Impact{{Job: "6", Share: .7}}}
	m := &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder}}}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m, Findings: []anomaly.Finding{f},
		Jobs: []remap.Job{{ID: "5", Nodes: []topology.NodeID{"cn1"}}, {ID: "6", Nodes: []topology.NodeID{"cn2"}}}})
	for name, c := range map[string]struct {
		state  remap.PlanState
		job    topology.JobID
		effect *remap.Effect
		stage  advise.Stage
		says   string
		action remap.Action
		text   string
	}{
		"it waits": {remap.Proposed, "5", nil, advise.Neighbour, "", remap.ActApprove, "limit job 5 to 5 % of fwd1"},
		"of another job": {remap.Proposed, "6", nil, advise.Neighbour, "", advise.ActPropose,
			"move the nodes that wait elsewhere"},
		"it is set": {remap.Applying, "5", nil, advise.Moving, "Setting: limit job 5 to 5 % of fwd1",
			remap.ActStop, ""},
		"it is measured": {remap.Verified, "5", nil, advise.Measuring, "Limited 30 s ago. Does it help?",
			remap.ActRollBack, "undo lifts the limit"},
		"it helped": {remap.Verified, "5", &remap.Effect{Verdict: remap.Helped, Class: "write",
			Latency: &remap.Change{Before: .036, After: .004}}, advise.Helped, "It helped: 9x as fast",
			advise.ActOpen, ""},
		"it did not": {remap.Verified, "5", &remap.Effect{Verdict: remap.NoEffect,
			Latency: &remap.Change{Before: .036, After: .036, Of: "the other jobs' nodes"}}, advise.InVain,
			"It did not help: 36 -> 36 ms. the other jobs' nodes wait as before", remap.ActRollBack,
			"undo lifts the limit"},
		"it is taken back": {remap.RollingBack, "5", nil, advise.Moving, "Lifting: limit job 5 to 5 % of fwd1",
			remap.ActStop, ""},
	} {
		p := remap.Plan{ID: "P-9", State: c.state, Job: c.job, Effect: c.effect, Created: now.Add(-time.Minute),
			Changed: now.Add(-30 * time.Second), Moves: []remap.Move{{Node: "fwd1", Limit: .05}}}
		got := advise.Of(&f, advise.Input{Situation: sit, Plans: []remap.Plan{p}, Now: now})
		if got.Stage != c.stage || !strings.Contains(got.Sentence+". "+got.Second, c.says) || got.Action == nil ||
			got.Action.Name != c.action || got.Action.Text != c.text {
			t.Errorf("%s: stage %s, %q, %q, action %+v", name, got.Stage, got.Sentence, got.Second, got.Action)
		}
	}
}
