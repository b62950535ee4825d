package remap

import (
	"testing"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// A hung, dead or silent forwarder serves nobody, from the first suspicion on: it may carry no new work. A slow one
// under suspicion may.
func TestOutOfService(t *testing.T) {
	for _, c := range []struct {
		condition anomaly.Condition
		state     anomaly.State
		out, may  bool
	}{
		{anomaly.Slow, anomaly.Suspect, false, true}, {anomaly.Slow, anomaly.Confirmed, false, false},
		{anomaly.Unreadable, anomaly.Suspect, false, true}, {anomaly.Silent, anomaly.Suspect, true, false},
		{anomaly.Hung, anomaly.Suspect, true, false}, {anomaly.Dead, anomaly.Confirmed, true, false},
		{anomaly.Dead, anomaly.Returned, false, true},
	} {
		s := &Situation{Findings: []anomaly.Finding{{Node: "f1", Kind: anomaly.FailSlow, State: c.state,
			Condition: c.condition}}}
		out, may := s.OutOfService("f1") != "", s.MayCarry(topology.ForwarderID("f1"))
		if out != c.out || may != c.may {
			t.Errorf("%s, %s: out of service %v, may carry %v", c.condition, c.state, out, may)
		}
	}
}

// TestFindingWords: a node that answers nothing is not called slow.
func TestFindingWords(t *testing.T) {
	for condition, want := range map[anomaly.Condition]string{anomaly.Slow: "slow for its load", anomaly.Hung: "hung",
		anomaly.Dead: "dead", "": "slow for its load"} {
		f := anomaly.Finding{ID: "F-1", Node: "f1", Kind: anomaly.FailSlow, State: anomaly.Confirmed,
			Condition: condition}
		if got := FindingWords(&f); got != want ||
			Accusation(&f) != "f1 is confirmed: "+want+" (F-1)" {
			t.Errorf("%q: %q, %q; want %q", condition, got, Accusation(&f), want)
		}
	}
}
