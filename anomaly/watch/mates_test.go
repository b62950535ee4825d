package watch

import (
	"fmt"
	"testing"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
)

// TestTheRatioIsTheClients: where a forwarder's own clock shows less than its clients wait, theirs is the ratio, beside
// nodes of the same jobs alone: another job's requests are others.
func TestTheRatioIsTheClients(t *testing.T) {
	type node struct {
		at         topology.ForwarderID
		job        topology.JobID
		ops, write float64
		metas      float64
	}
	for name, c := range map[string]struct {
		nodes []node
		shown float64 // by its own clock
		want  float64
		spare bool // from being accused by its own clock alone
	}{
		"nine times":          {[]node{{"f1", "7", 10, .009, 0}, {"f2", "7", 20, .001, 0}}, 1.5, 9, false},
		"less than its clock": {[]node{{"f1", "7", 10, .002, 0}, {"f2", "7", 20, .001, 0}}, 5, 2, false},
		"its own clock's":     {[]node{{"f1", "7", 10, .0011, 0}, {"f2", "7", 20, .001, 0}}, 5, 5, false},
		"as slow elsewhere":   {[]node{{"f1", "7", 60, .03, 0}, {"f2", "7", 60, .031, 0}}, 2, 2, true},
		"others do no such":   {[]node{{"f1", "7", 10, .009, 0}, {"f2", "7", 0, 0, 20}}, 1.5, 1.5, false},
		"another job":         {[]node{{"f1", "7", 10, .009, 0}, {"f2", "8", 20, .001, 0}}, 1.5, 1.5, false},
		"few requests":        {[]node{{"f1", "7", 10, .009, 0}, {"f2", "7", 4, .001, 0}}, 1.5, 1.5, false},
		"by what it asks for": {[]node{{"f1", "7", 10, .009, 90}, {"f2", "7", 10, .001, 90}}, 1.5, .18 / .1, false},
		"of two jobs": {[]node{{"f1", "7", 10, .009, 0}, {"f2", "7", 20, .001, 0}, {"f1", "8", 10, .02, 0},
			{"f3", "8", 10, .01, 0}}, 1.5, .29 / .11, false},
	} {
		behind := map[topology.ForwarderID]*clientSums{}
		for i, n := range c.nodes {
			f := &collector.Frame{Node: topology.NodeID(fmt.Sprint("cn", i)), Role: topology.Compute}
			all := samples(collector.WriteOps, n.ops, collector.ClientWrite, n.write, collector.MetaOps, n.metas,
				collector.ClientMeta, 0.001)
			f.Samples = all
			f.Jobs = []collector.JobSamples{{Job: n.job, Samples: all}}
			if behind[n.at] == nil {
				behind[n.at] = &clientSums{jobs: map[topology.JobID]*jobSums{}}
			}
			behind[n.at].add(f, [3]bool{})
			behind[n.at].addJobs(f, f.Jobs, 1)
		}
		verdicts := []anomaly.Verdict{{Node: "f1", Kind: anomaly.FailSlow, Level: anomaly.Alarm, Ratio: c.shown}}
		of := &clients{of: behind}
		of.noteWaits(map[topology.NodeID]bool{"f1": true}, verdicts)
		if got := verdicts[0].Ratio; got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%s: %.3g, want %.3g", name, got, c.want)
		}
		if spared := verdicts[0].Level == anomaly.Doubt; spared != c.spare {
			t.Errorf("%s: spared %v, want %v", name, spared, c.spare)
		}
	}
}
