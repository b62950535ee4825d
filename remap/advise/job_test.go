package advise_test

import (
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/tsdb/history"
)

// TestAnswerFor: the first line of a job's page, from what is known of its I/O, of those that cost it time, and of its
// move.
func TestAnswerFor(t *testing.T) {
	now := time.Date(2027, 3, 4, 7, 0, 0, 0, time.UTC)
	io, none, waits, normal := 91.0, 0.0, 0.77, 0.01
	of := func(node, job string, cost float64) anomaly.Finding {
		return anomaly.Finding{ID: "F-1", Node: topology.NodeID("fwd" + node), State: anomaly.Confirmed,
			Impact: []anomaly.Impact{{Job: "4", CostSeconds: 900}, {Job: topology.JobID(job), CostSeconds: cost}}}
	}
	moved := func(state remap.PlanState, v remap.Verdict) *remap.Plan {
		p := &remap.Plan{State: state, Results: []remap.Result{{At: now.Add(-20 * time.Minute), OK: true}}}
		if v != "" {
			p.Effect = &remap.Effect{Verdict: v}
		}
		return p
	}
	lately := moved(remap.Verified, "")
	lately.Results[0].At = now.Add(-30 * time.Second)
	soon := moved(remap.RolledBack, "")
	soon.Results[0].At, soon.Ended = now.Add(-30*time.Second), &remap.Ended{By: "olga", At: now.Add(-10 * time.Second)}
	back := moved(remap.RolledBack, remap.NoEffect)
	back.Ended = &remap.Ended{By: "olga", At: now.Add(-8 * time.Minute)}
	restored := moved(remap.Restored, remap.Helped)
	restored.Ended, restored.Results[0].At = &remap.Ended{At: now}, now.Add(-30*time.Hour)
	failed := moved(remap.Failed, "")
	failed.Results[0].OK, failed.Changed = false, now.Add(-10*time.Minute)
	dismissed := of("001", "5", 38)
	dismissed.State = anomaly.Dismissed
	for want, w := range map[string]advise.Work{
		"Job 5 lost 38 s of 91 s of I/O to fwd001; moved at 06:40 UTC; since then normal": {IOSeconds: &io,
			Findings: []anomaly.Finding{of("001", "5", 30), of("001", "5", 8)}, Moved: moved(remap.Verified, ""),
			Wait: &normal},
		"Job 5 lost 38 s of 91 s of I/O to fwd001; moved at 06:59 UTC; whether that helps is being measured": {
			IOSeconds: &io, Findings: []anomaly.Finding{of("001", "5", 38)}, Moved: lately, Wait: &waits},
		"Job 5 lost nothing to a slow node in 91 s of I/O; moved at 06:59 UTC, back at 06:59 UTC; now it waits 77 % " +
			"of its time": {IOSeconds: &io, Moved: soon, Wait: &waits},
		"Job 5 lost 38 s of 91 s of I/O to fwd001, 3 s to fwd002; now it waits 77 % of its time for a slow forwarder": {
			IOSeconds: &io, Findings: []anomaly.Finding{of("002", "5", 3), of("001", "5", 38)}, Wait: &waits,
			Cause: "a slow forwarder"},
		"Job 5 lost 38 s of 91 s of I/O to fwd001; moved at 06:40 UTC, back at 06:52 UTC, which did not help": {
			IOSeconds: &io, Findings: []anomaly.Finding{of("001", "5", 38)}, Moved: back, Ended: true, Wait: &waits},
		"Job 5 lost 1m50 to fwd001; moved at 2027-03-03 01:00 UTC, which helped": {Ended: true, Moved: restored,
			IOSeconds: &io, Findings: []anomaly.Finding{of("001", "5", 110)}},
		"Job 5 lost 38 s of 91 s of I/O to fwd001; its move failed at 06:50 UTC; now normal": {IOSeconds: &io,
			Wait: &normal, Findings: []anomaly.Finding{of("001", "5", 38)}, Moved: failed},
		"Job 5 lost 38 s of 91 s of I/O to fwd001; now normal": {IOSeconds: &io, Wait: &normal,
			Findings: []anomaly.Finding{of("001", "5", 38)}},
		"Job 5 lost nothing to a slow node in 91 s of I/O": {IOSeconds: &io, Wait: &normal,
			Findings: []anomaly.Finding{of("001", "5", 0.2), dismissed}},
		"Job 5 lost nothing to a slow node in 91 s of I/O; now it waits 77 % of its time for what it does itself": {
			IOSeconds: &io,
			Wait:      &waits, Cause: "what it does itself"},
		"Job 5 did no I/O":          {IOSeconds: &none, Ended: true},
		"Job 5 has done no I/O yet": {IOSeconds: &none},
		"Job 5: nothing is known of its I/O, because none of its nodes reported any": {},
	} {
		w.Job = "5"
		if got := advise.AnswerFor(&w, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRunTime: which part of a run was I/O, and what its nodes used.
func TestRunTime(t *testing.T) {
	start := time.Date(2027, 3, 4, 7, 0, 0, 0, time.UTC)
	busy, used := 0.871, 0.34
	profile := func(io, coverage float64) *history.Profile {
		return &history.Profile{IOSeconds: io, Coverage: coverage,
			NodeUse: history.NodeUse{CPUBusy: &busy, MemoryUsed: &used}}
	}
	const nodes = " CPU of its nodes 87 %, highest memory 34 %."
	for _, c := range []struct {
		ran, watched time.Duration // 0: it goes on, since the start
		p            *history.Profile
		want         string
	}{
		{1158 * time.Second, 0, profile(34, 1), "I/O is 3 % of the run time (34 s of 1158 s): do not bother." + nodes},
		{1158 * time.Second, 0, profile(34, 0.9),
			"I/O is 3 % of the run time (34 s of 1158 s): do not bother." + nodes},
		{1158 * time.Second, 0, profile(34, 0.4),
			"I/O is 3 % of the run time (34 s of 19m18), of which 40 % was reported." + nodes},
		{1000 * time.Second, 0, profile(50, 1), "I/O is up to 5 % of the run time (50 s of 16m40)." + nodes},
		{100 * time.Second, 0, profile(101, 1), "I/O is up to 100 % of the run time (1m40 of 1m40)." + nodes},
		{100 * time.Second, 0, profile(0, 1), "I/O is 0 % of the run time (0 s of 100 s): do not bother." + nodes},
		// A record of before, and of an import.
		{1000 * time.Second, 0, &history.Profile{IOSeconds: 500, Coverage: 1},
			"I/O is up to 50 % of the run time (8m20 of 16m40). CPU of its nodes not known, highest memory not known."},
		{1000 * time.Second, 0, nil, ""},
		{0, 0, profile(1, 1), ""}, // its end is its start
		{-1, 400 * time.Second, profile(4, 1),
			"So far: I/O is 1 % of the run time (4 s of 400 s): do not bother." + nodes},
		{-1, time.Minute, profile(6, 1), "So far: I/O is up to 10 % of the run time (6 s of 60 s)." + nodes},
		{-1, 59 * time.Second, profile(1, 1), ""},
		{-1, 0, profile(1, 1), ""},
		{-1, -1, nil, ""},
	} {
		run := history.Run{Job: "5", Start: start, End: start.Add(c.ran)}
		now := run.End
		if c.ran < 0 {
			run.End, now = time.Time{}, start.Add(c.watched)
		}
		text, share := advise.RunTime(&run, c.p, start, now)
		if text != c.want || (share == nil) != (text == "") {
			t.Errorf("%q, %v; want %q", text, share, c.want)
		}
	}
	// A daemon that began later knows the rest alone.
	run, since := history.Run{Job: "5", Start: start}, start.Add(300*time.Second)
	want := "Since 07:05 UTC: I/O is 1 % of the run time (1 s of 100 s): do not bother." + nodes
	if text, _ := advise.RunTime(&run, profile(1, 0.25), since, since.Add(100*time.Second)); text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
