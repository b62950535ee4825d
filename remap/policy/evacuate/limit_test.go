package evacuate

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// A job that fills a forwarder while another waits for it is to be limited, once, where a queue can: nobody is moved.
func TestTheJobOthersWaitForIsLimited(t *testing.T) {
	full := func() *remap.Situation {
		s := site(anomaly.Slow, 0, "fwd1")
		s.Findings = []anomaly.Finding{{ID: "F-0002", Node: "fwd1", Nodes: []topology.NodeID{"fwd1", "fwd2"},
			Kind: anomaly.HighBandwidth, Jobs: []topology.JobID{"2"}, State: anomaly.Confirmed,
			Impact: []anomaly.Impact{{Job: "1", Share: .6}}, Steps: []anomaly.Step{{State: anomaly.Confirmed,
				At: noon.Add(-10 * time.Second)}}}}
		return s
	}
	for name, c := range map[string]struct {
		change func(*Case)
		want   string
	}{
		"it is proposed": {func(*Case) {}, "fwd1 fwd2"},
		"of two nodes one has a queue": {func(c *Case) {
			c.CanLimit = func(n topology.NodeID) string { return map[topology.NodeID]string{"fwd2": "no queue"}[n] }
		}, "fwd1"},
		"no queue":            {func(c *Case) { c.CanLimit = func(topology.NodeID) string { return "none" } }, ""},
		"no queues at all":    {func(c *Case) { c.CanLimit = nil }, ""},
		"it is limited there": {func(c *Case) { c.Limited[remap.Subject{Node: "fwd1", Job: "2"}] = true }, "fwd2"},
		"nobody waits":        {func(c *Case) { c.Situation.Findings[0].Impact[0].Share = 0 }, ""},
		"the job has ended":   {func(c *Case) { c.Situation.Findings[0].Jobs[0] = "9" }, ""},
		"a suspicion only":    {func(c *Case) { c.Situation.Findings[0].State = anomaly.Suspect }, ""},
		"a person refused": {func(c *Case) {
			c.Refused = func(*anomaly.Finding, topology.JobID) string { return "P-000001 was ended by sam" }
		}, ""},
	} {
		in := &Case{Situation: full(), Limited: map[remap.Subject]bool{},
			CanLimit: func(topology.NodeID) string { return "" },
			Refused:  func(*anomaly.Finding, topology.JobID) string { return "" }}
		c.change(in)
		plans, held := Decide(in)
		got := []string{}
		for _, p := range plans {
			for _, m := range p.Moves {
				got = append(got, string(m.Node))
				const why = "fwd1: one job fills it (F-0002) and job 1 waits for it: job 2 gets at most 5 %"
				if m.Limit != usualLimit || p.Job.ID != "2" || p.Act || !strings.Contains(p.Reason, why) {
					t.Errorf("%s: %+v", name, p)
				}
			}
		}
		if strings.Join(got, " ") != c.want || len(held) > 0 {
			t.Errorf("%s: limits at %v, want %q; held %v", name, got, c.want, held)
		}
	}
}
