package watch

import (
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// A job is as slow as its slowest nodes: those behind the slow forwarder wait, and the forwarder is why.
func TestAJobWaitsForItsSlowestForwarder(t *testing.T) {
	e := newDiods(t, time.Unix(1_800_000_000, 0))
	e.m.Jobs = []Job{{ID: "7", Nodes: []topology.NodeID{"cn1", "cn2"}}, {ID: "8", Nodes: []topology.NodeID{"cn5"}}}
	e.job = map[topology.NodeID]topology.JobID{"cn1": "7", "cn2": "7", "cn5": "8"}
	e.live(200, 4e-3)
	for range 40 {
		e.live(1, 40e-3)
	}
	past, _ := PastOf(e.Detectors, "7", jobSteps)
	steps, end := past.Steps, past.End
	if len(steps) != jobSteps || end.Unix() <= e.now.Unix()-TrendStep {
		t.Fatalf("%d steps to %s", len(steps), end)
	}
	now, known := MeanOf(steps[len(steps)-4:])
	cause, wait := now.Worst()
	if known != 4 || cause != ByForwarder || wait < 0.5 || wait > 1 || now.Moved < 1.9e7 || now.Moved > 2.1e7 {
		t.Errorf("job 7 in %d steps: %+v", known, now)
	}
	before, _ := MeanOf(steps[len(steps)-40 : len(steps)-30])
	if _, wait := before.Worst(); wait > 0.05 {
		t.Errorf("it waited before: %+v", before)
	}
	beside, _ := PastOf(e.Detectors, "8", jobSteps/3)
	other, _ := MeanOf(beside.Steps)
	if _, wait := other.Worst(); wait > 0.05 || other.Moved < 0.9e7 {
		t.Errorf("job 8 has no node there: %+v", other)
	}
	if all := past.Waits[ByForwarder]; !past.Known || all < 0.1 || all > float32(wait)/2 {
		t.Errorf("of all its time it waited %g, of the last 20 s %g", all, wait)
	}
	if _, known := MeanOf(steps[:10]); known != 0 {
		t.Errorf("%d steps are known of before the first second", known)
	}
}

// Of a job whose nodes count nothing, or whose seconds are late, nothing is known; one that does nothing moves 0.
func TestNothingReportedIsNotNothing(t *testing.T) {
	for name, c := range map[string]struct {
		frame []collector.Sample
		old   time.Duration
		known int
	}{
		"idle":             {samples(collector.WriteBytes, 0.0, collector.ReadBytes, 0.0), 0, 1},
		"a source of none": {samples(collector.CPUWait, 0.5), 0, 0},
		"late":             {samples(collector.WriteBytes, 1e6), 10 * time.Second, 0},
	} {
		now := time.Unix(1795000000, 0)
		d := NewDetectors(window.NewBoard(0), failslow.DefaultSettings())
		d.board.Take([]collector.Frame{{Node: "cn1", Role: topology.Compute,
			TimeMillis: now.Add(-c.old - time.Second).UnixMilli(), Samples: c.frame}}, now)
		d.Verdicts(now, &Machine{Mapping: topology.Mapping{"cn1": "f1"},
			Jobs: []Job{{ID: "7", Nodes: []topology.NodeID{"cn1"}}}})
		past, _ := PastOf(d, "7", jobSteps)
		steps := past.Steps
		if m, known := MeanOf(steps); known != c.known || m.Moved != 0 {
			t.Errorf("%s: %d steps are known, want %d: %+v", name, known, c.known, m)
		}
	}
}

// Who is why a job waits: by the verdicts of the other detectors.
func TestWhyAJobWaits(t *testing.T) {
	storm := anomaly.Verdict{Node: "f1", Kind: anomaly.MetaStorm, Level: anomaly.Alarm,
		Culprits: []topology.JobID{"9"}}
	slow := anomaly.Verdict{Node: "f1", Kind: anomaly.FailSlow, Level: anomaly.Alarm}
	storage := anomaly.Verdict{Node: anomaly.Everywhere, Kind: anomaly.BrownoutAll, Level: anomaly.Alarm}
	for name, c := range map[string]struct {
		verdicts []anomaly.Verdict
		job      topology.JobID
		want     Cause
	}{
		"no verdict":                 {nil, "7", ByForwarder},
		"a neighbour":                {[]anomaly.Verdict{storm}, "7", ByNeighbour},
		"itself":                     {[]anomaly.Verdict{storage, storm}, "9", ByItself},
		"the storage":                {[]anomaly.Verdict{storage}, "7", ByBackEnd},
		"a slow node beside a storm": {[]anomaly.Verdict{storm, slow}, "7", ByForwarder},
	} {
		if got := causeOf(c.verdicts, "f1", c.job); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
