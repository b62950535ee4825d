package live

import (
	"testing"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// TestWhomAJobWaitsFor: of the forwarders that are accused the one that holds it up most now, else the one that cost it
// most, and none that people have called well.
func TestWhomAJobWaitsFor(t *testing.T) {
	found := func(node string, kind anomaly.Kind, state anomaly.State, hurt ...anomaly.Impact) anomaly.Finding {
		return anomaly.Finding{Node: topology.NodeID(node), Kind: kind, State: state, Impact: hurt}
	}
	much := anomaly.Impact{Job: "7", Share: 1, CostSeconds: 99}
	sit := &remap.Situation{Findings: []anomaly.Finding{
		found("fwd1", anomaly.FailSlow, anomaly.Suspect, anomaly.Impact{Job: "7", Share: 0.5, CostSeconds: 5}),
		found("fwd2", anomaly.FailSlow, anomaly.Probation, anomaly.Impact{Job: "7", CostSeconds: 90},
			anomaly.Impact{Job: "9", CostSeconds: 2}),
		found("fwd3", anomaly.FailSlow, anomaly.Dismissed, much),
		found("ost4", anomaly.TargetSlow, anomaly.Confirmed, much)}}
	for _, c := range []struct{ job, cause, want string }{
		{"7", "forwarder", "fwd1"}, {"9", "forwarder", "fwd2"}, {"7", "neighbour", ""}, {"8", "forwarder", ""},
	} {
		now := api.JobNow{Cause: c.cause}
		if nameSlow(&now, topology.JobID(c.job), sit); now.Slow != c.want {
			t.Errorf("job %s, which waits for %s: %q, want %q", c.job, c.cause, now.Slow, c.want)
		}
	}
}
