package watch

import (
	"fmt"
	"testing"

	"fairway/anomaly"
	"fairway/anomaly/clientslow"
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
		"waited longest for":  {[]node{{"f1", "7", 10, .009, 80}, {"f2", "7", 10, .001, 80}}, 1.5, 9, false},
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
			behind[n.at].add(f, [3]bool{}, false)
			behind[n.at].addJobs(f, f.Jobs, 1)
		}
		verdicts := []anomaly.Verdict{{Node: "f1", Kind: anomaly.FailSlow, Level: anomaly.Alarm,
			Slowness: anomaly.Slowness{Ratio: c.shown}}}
		of := &clients{of: behind}
		verdicts = of.noteWaits(map[topology.NodeID]bool{"f1": true}, verdicts)
		if got := verdicts[0].Ratio; got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%s: %.3g, want %.3g", name, got, c.want)
		}
		if spared := verdicts[0].Level == anomaly.Doubt; spared != c.spare {
			t.Errorf("%s: spared %v, want %v", name, spared, c.spare)
		}
	}
}

// TestTheSentenceIsTheClients: who has no clock of its own is as slow as its clients' mates show, of the class that is
// slowest; other words that say more stay.
func TestTheSentenceIsTheClients(t *testing.T) {
	m := &mateTimes{{.9, .1, 10, 10}, {.02, .01, 10, 10}, {.01, .01, 10, 10}}
	const layers = "f1 is 5x slow at writing: 11 ms, peers 2"
	for before, want := range map[string]string{
		layers:                         "f1 is 9x slow at reading: 90 ms, peers 10",
		layers + "; another is normal": "f1 is 9x slow at reading: 90 ms, peers 10; another is normal",
		"f1 loses 3% of the packets between it and its clients":            "",
		"f1 is 2x slow at metadata: a stat takes 4 ms, peers 2, though so": "",
	} {
		v := anomaly.Verdict{Node: "f1", Model: clientslow.Model, Sentence: before, Evidence: map[string]float64{}}
		m.say(&v)
		if want == "" {
			want = before
		}
		if v.Sentence != want {
			t.Errorf("%q became %q, want %q", before, v.Sentence, want)
		}
	}
	ofWrites := anomaly.Verdict{Node: "f1", Model: clientslow.Model, Class: "write", Sentence: layers,
		Evidence: map[string]float64{}}
	m.say(&ofWrites)
	if want := "f1 is 2x slow at writing: 2 ms, peers 1"; ofWrites.Sentence != want {
		t.Errorf("of writes: %q, want %q", ofWrites.Sentence, want)
	}
}
