package live

import (
	"testing"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// TestWhomAJobWaitsFor: of the forwarders that are accused of it the one that costs it most, and none that people have
// called well.
func TestWhomAJobWaitsFor(t *testing.T) {
	found := func(node string, kind anomaly.Kind, state anomaly.State, cost float64) anomaly.Finding {
		return anomaly.Finding{Node: topology.NodeID(node), Kind: kind, State: state,
			Impact: []anomaly.Impact{{Job: "7", CostSeconds: cost}}}
	}
	sit := &remap.Situation{Findings: []anomaly.Finding{
		found("fwd1", anomaly.FailSlow, anomaly.Confirmed, 5), found("fwd2", anomaly.FailSlow, anomaly.Suspect, 9),
		found("fwd3", anomaly.FailSlow, anomaly.Dismissed, 99), found("ost4", anomaly.TargetSlow, anomaly.Confirmed, 99)}}
	for _, c := range []struct{ job, cause, want string }{
		{"7", "forwarder", "fwd2"}, {"7", "neighbour", ""}, {"8", "forwarder", ""},
	} {
		now := api.JobNow{Cause: c.cause}
		if nameSlow(&now, topology.JobID(c.job), sit); now.Slow != c.want {
			t.Errorf("job %s, which waits for %s: %q, want %q", c.job, c.cause, now.Slow, c.want)
		}
	}
}
