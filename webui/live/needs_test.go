package live

import (
	"testing"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// A forwarder that several plans touch has the one that is needed first, also where two needs have one plan; a plan
// that nothing needs comes last.
func TestARowHasThePlanThatIsNeededFirst(t *testing.T) {
	to := func(id string) remap.Plan {
		return remap.Plan{ID: id, State: remap.Proposed, Moves: []remap.Move{{Node: "cn1", From: "fwd1", To: "fwd7"}}}
	}
	p := &Picture{plans: []remap.Plan{to("P-4"), to("P-3"), to("P-2"), to("P-1")}}
	o := &api.Overview{}
	o.Needs = []advise.Card{
		{Plan: "P-1", Finding: "F-1"}, {Plan: "P-2"}, {Plan: "P-1", Finding: "F-2"}, {Finding: "F-3"}}
	row := &api.ForwarderRow{ID: "fwd7"}
	p.addPlans(o, map[topology.NodeID]*api.ForwarderRow{"fwd7": row})
	if row.Plan != "P-1" {
		t.Errorf("it has %s, which is not needed first", row.Plan)
	}
}
