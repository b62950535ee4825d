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

// TestStages: what each fault, and each step of a move against it, is called, and what may be pressed. What is over has
// no button; what was done is not asked for again; at most one button is filled.
func TestStages(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	since := now.Add(-5 * time.Minute)
	move := []remap.Move{{Node: "cn1", From: "fwd1", To: "fwd7"}, {Node: "cn2", From: "fwd1", To: "fwd7"}}
	plan := func(state remap.PlanState, ago time.Duration, e *remap.Effect) *remap.Plan {
		p := &remap.Plan{ID: "P-9", State: state, App: "climate", Job: "5", Moves: move, Created: since,
			Changed: now.Add(-ago), Effect: e, Approvals: []remap.Approval{{By: "olga", At: now.Add(-ago)}}}
		for _, m := range move {
			p.Results = append(p.Results, remap.Result{Node: m.Node, OK: true, At: since,
				Verified: state != remap.Applying})
		}
		return p
	}
	effect := func(v remap.Verdict, before, after float64) *remap.Effect {
		e := &remap.Effect{Verdict: v, AfterTo: now.Add(-time.Minute), Class: "write", Expected: 10}
		if after > 0 {
			e.Latency = &remap.Change{Before: before, After: after}
		}
		return e
	}
	goesBack := plan(remap.Verified, 12*time.Second, nil)
	goesBack.Back = &remap.Back{Goal: remap.Restored, Why: remap.StayText("fwd1 is confirmed: slow (F-1)", "5m")}
	helpedBack := plan(remap.Verified, 2*time.Minute, effect(remap.Helped, .036, .0041))
	helpedBack.Back = goesBack.Back
	slow := anomaly.Finding{Factor: 10, FactorNow: 7.7, Class: "write", Cause: "its targets answer as usual"}
	for name, c := range map[string]struct {
		f         anomaly.Finding
		condition anomaly.Condition
		state     anomaly.State
		idle      bool // nobody waits
		plan      *remap.Plan
		stage     advise.Stage
		sentence  string
		second    string // part of it
		action    remap.Action
		filled    bool
	}{
		"suspect": {f: anomaly.Finding{Class: "write", Sentence: "fwd1 is 12x slow at writing"}, state: anomaly.Suspect,
			stage: advise.Suspect, sentence: "fwd1 may be slow at writing", second: "12x slow at writing",
			action: advise.ActLook},
		"suspect, with figures": {f: anomaly.Finding{Class: "write", FactorNow: 4.8,
			Sentence: "fwd1 is 5x slow at writing: 104 ms, peers 22"}, state: anomaly.Suspect, stage: advise.Suspect,
			sentence: "fwd1 may be slow at writing", second: "now 104 ms, peers 22", action: advise.ActLook},
		"suspect, and just now it is not": {f: anomaly.Finding{Class: "meta", FactorNow: .17,
			Sentence: "fwd1 is 0.17x slow at metadata: 7.8 ms, peers 45"}, state: anomaly.Suspect,
			stage: advise.Suspect, sentence: "fwd1 may be slow at metadata", action: advise.ActLook,
			second: "now 7.8 ms, peers 45; among its peers at the moment"},
		"slow, with figures of another window": {f: anomaly.Finding{Class: "write", Factor: 7, FactorNow: 3.8,
			Sentence: "fwd1 is 6.1x slow at writing: 159 ms, peers 26; reading is normal"}, stage: advise.Slow,
			sentence: "fwd1 is 7x slow at writing", second: "now 159 ms, peers 26; reading is normal",
			action: advise.ActPropose, filled: true},
		"slow": {f: slow, stage: advise.Slow, sentence: "fwd1 is 10x slow at writing", second: "now 7.7x",
			action: advise.ActPropose, filled: true},
		"slow, in other figures": {f: anomaly.Finding{Factor: 7,
			Sentence: "fwd1 is 10x slow at reading and over 100x at writing, for its load"}, stage: advise.Slow,
			sentence: "fwd1 is 7x slow", second: "is slow at reading and at writing, for its load",
			action: advise.ActPropose, filled: true},
		"slow, and only canaries go there": {f: anomaly.Finding{Factor: 7,
			Sentence: "fwd1 is slow at canaries: reads 10x and writes 11x as long as through its peers"}, idle: true,
			stage: advise.Slow, sentence: "fwd1 is 7x slow", action: remap.ActExclude,
			second: "canaries through it take longer than through its peers"},
		"slow, and nobody waits": {f: slow, idle: true, stage: advise.Slow, sentence: "fwd1 is 10x slow at writing",
			action: remap.ActExclude},
		"asked": {f: slow, plan: plan(remap.Proposed, time.Second, nil), stage: advise.Slow,
			sentence: "fwd1 is 10x slow at writing", action: remap.ActApprove, filled: true},
		"moving": {f: slow, plan: plan(remap.Applying, time.Second, nil), stage: advise.Moving,
			sentence: "Moving climate's 2 nodes to fwd7", second: "2 done, 0 under way, 0 failed",
			action: remap.ActStop},
		"measuring": {f: slow, plan: plan(remap.Verified, 12*time.Second, nil), stage: advise.Measuring,
			sentence: "Moved 12 s ago. Does it help?", second: "2 of 2 nodes use fwd7. 48 s left",
			action: remap.ActRollBack},
		"measuring, and its nodes go back": {f: slow, plan: goesBack, stage: advise.Measuring,
			sentence: "Moved 12 s ago. Does it help?", action: advise.ActOpen,
			second: "48 s left. fwd1 itself is still slow; the nodes go back when it has been well for 5m"},
		"measuring, and it is well again": {f: slow, state: anomaly.Returned, plan: goesBack, stage: advise.Measuring,
			sentence: "Moved 12 s ago. Does it help?", action: advise.ActOpen,
			second: "48 s left; the nodes go back when it has been well for 5m"},
		"helped": {f: slow, plan: plan(remap.Verified, 2*time.Minute, effect(remap.Helped, .036, .0041)),
			stage: advise.Helped, sentence: "It helped: 8.8x as fast",
			second: "36 -> 4.1 ms (expected ~3.6 ms). fwd1 itself is still slow", action: remap.ActExclude},
		"helped, and the job has ended": {f: slow,
			plan: plan(remap.Restored, 2*time.Minute, effect(remap.Helped, .036, .0041)), stage: advise.Helped,
			sentence: "It helped: 8.8x as fast", action: remap.ActExclude},
		"helped, and its nodes go back": {f: slow, plan: helpedBack, stage: advise.Helped, action: remap.ActExclude,
			sentence: "It helped: 8.8x as fast",
			second: "36 -> 4.1 ms (expected ~3.6 ms). fwd1 itself is still slow; " +
				"the nodes go back when it has been well"},
		"helped, and nobody had answered": {f: anomaly.Finding{}, condition: anomaly.Dead, plan: plan(remap.Verified,
			2*time.Minute, &remap.Effect{Verdict: remap.Helped, HungSeconds: 284}), stage: advise.Helped,
			sentence: "It helped: its nodes had waited 4m44 without an answer",
			second:   "They answer again. fwd1 itself is still dead", action: remap.ActExclude},
		"helped, and it is well again": {f: slow, state: anomaly.Returned, stage: advise.Helped,
			plan:     plan(remap.Verified, 2*time.Minute, effect(remap.Helped, .036, .0041)),
			sentence: "It helped: 8.8x as fast", second: "fwd1 is among its peers again", action: advise.ActOpen},
		"did not help": {f: slow, plan: plan(remap.Verified, 2*time.Minute, effect(remap.NoEffect, .036, .035)),
			stage: advise.InVain, sentence: "It did not help: 36 -> 35 ms", second: "the cause is not fwd1 alone",
			action: remap.ActRollBack, filled: true},
		"not measured": {f: slow, plan: plan(remap.Verified, 2*time.Minute, effect(remap.EffectUnknown, 0, 0)),
			stage: advise.NotKnown, sentence: "Moved; not known whether it helped", action: advise.ActOpen},
		"some were not moved": {f: slow, plan: plan(remap.Partial, time.Minute, nil), stage: advise.Incomplete,
			sentence: "P-9 is partial: 2 of 2 nodes moved", action: advise.ActOpen, filled: true},
		"long moved, and somebody waits again": {f: slow, plan: plan(remap.Verified, 20*time.Minute, &remap.Effect{
			Verdict: remap.Helped, AfterTo: now.Add(-11 * time.Minute)}), stage: advise.Slow,
			sentence: "fwd1 is 10x slow at writing", action: advise.ActPropose, filled: true},
		"cleared": {f: slow, state: anomaly.Returned, stage: advise.Cleared,
			sentence: "fwd1 was slow, now among its peers",
			second:   "it lasted 3m00; each node of its job lost 18 s. No move is offered"},
		"dead": {f: anomaly.Finding{}, condition: anomaly.Dead, stage: advise.Dead, sentence: "fwd1 answers nobody",
			action: advise.ActPropose, filled: true},
		"hung": {f: anomaly.Finding{Evidence: map[string]float64{"request_age": 42, "nodes_waiting": 8}},
			condition: anomaly.Hung, stage: advise.Hung, sentence: "fwd1 takes requests and answers none",
			second: "8 of its nodes wait, the oldest request for 42 s", action: advise.ActPropose, filled: true},
		"unreadable": {f: anomaly.Finding{}, condition: anomaly.Unreadable, stage: advise.Unreadable,
			sentence: "fwd1's counters cannot be read", action: advise.ActPropose, filled: true},
		"silent": {f: anomaly.Finding{Kind: anomaly.ForwarderSilent}, condition: anomaly.Silent, idle: true,
			stage: advise.Silent, sentence: "fwd1: its agent does not report", action: advise.ActDoctor},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.f
			f.ID, f.Node, f.Since, f.Condition = "F-1", "fwd1", since, c.condition
			if f.Kind == "" {
				f.Kind = anomaly.FailSlow
			}
			if f.State = c.state; f.State == "" {
				f.State = anomaly.Confirmed
			}
			if f.State != anomaly.Suspect {
				f.Steps = []anomaly.Step{{State: anomaly.Confirmed, At: since.Add(5 * time.Second)}}
			}
			f.Changed = now.Add(-2 * time.Minute)
			if !c.idle {
				f.Impact = []anomaly.Impact{{Job: "5", Share: .77, CostSeconds: 18}}
			}
			sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
				Jobs:     []remap.Job{{ID: "5", App: "climate", Nodes: []topology.NodeID{"cn1", "cn2", "cn3"}}},
				Findings: []anomaly.Finding{f}})
			in := advise.Input{Situation: sit, Now: now}
			if c.plan != nil {
				in.Plans = []remap.Plan{*c.plan}
			}
			got := advise.Of(&f, in)
			if strings.Contains(got.Second, ", peers ") && strings.Contains(got.Second, "x") {
				t.Errorf("two windows in one line: %q", got.Second)
			}
			if got.Stage != c.stage || got.Sentence != c.sentence || !strings.Contains(got.Second, c.second) {
				t.Errorf("%s: %q; %q; want %s: %q; %q", got.Stage, got.Sentence, got.Second, c.stage, c.sentence,
					c.second)
			}
			from := since
			if got.Over() {
				from = f.Changed
			}
			if c.plan == nil && !got.Since.Equal(from) {
				t.Errorf("since %s, want %s", got.Since, from.UTC())
			}
			for _, s := range got.Steps {
				if c.plan != nil && c.plan.State == remap.Restored && s.Name == "moved" && !s.At.Equal(since) {
					t.Errorf("moved at %s, want %s: it is not when they were back", s.At, since.UTC())
				}
			}
			if last := got.Steps[max(0, len(got.Steps)-1):]; f.Over() {
				if !got.Until().Equal(f.Changed) {
					t.Errorf("last %+v; want it well again at %s", last, f.Changed.UTC())
				}
			} else if !got.Until().IsZero() {
				t.Errorf("until %s, and it is not over", got.Until())
			}
			name, filled := remap.Action(""), false
			if got.Action != nil {
				name, filled = got.Action.Name, got.Action.Filled
			}
			if name != c.action || filled != c.filled {
				t.Errorf("to press: %q, filled %v; want %q, %v", name, filled, c.action, c.filled)
			}
			for _, a := range got.Others {
				if a.Filled {
					t.Errorf("%q is filled, too", a.Label)
				}
				if got.Action != nil && a.Name == got.Action.Name {
					t.Errorf("%q is there twice", a.Label)
				}
			}
			if c.plan != nil && c.plan.State != remap.Proposed && c.stage != advise.Slow {
				for _, a := range append([]advise.Action{*got.Action}, got.Others...) {
					if a.Name == remap.ActApprove || a.Name == advise.ActPropose {
						t.Errorf("it asks for what was done: %q", a.Label)
					}
				}
			}
		})
	}
}

// TestWhatWasDoneStaysDone: while a finding is open and nobody waits, its card shows the move of long ago and what that
// brought; where somebody waits again, the way begins anew.
func TestWhatWasDoneStaysDone(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	f := anomaly.Finding{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Confirmed, Factor: 7,
		Since: now.Add(-time.Hour), Steps: []anomaly.Step{{State: anomaly.Suspect, At: now.Add(-99 * time.Minute)},
			{State: anomaly.Returned, At: now.Add(-98 * time.Minute)}, // what follows is another time
			{State: anomaly.Suspect, At: now.Add(-55 * time.Minute)},
			{State: anomaly.Suspect, At: now.Add(-54 * time.Minute), Condition: anomaly.Hung},
			{State: anomaly.Confirmed, At: now.Add(-50 * time.Minute)}}}
	p := remap.Plan{ID: "P-9", State: remap.Verified, Moves: []remap.Move{{Node: "cn1", From: "fwd1", To: "fwd7"}},
		Created: now.Add(-45 * time.Minute), Changed: now.Add(-40 * time.Minute),
		Approvals: []remap.Approval{{By: "olga", At: now.Add(-41 * time.Minute)}},
		Effect:    &remap.Effect{Verdict: remap.Helped, AfterTo: now.Add(-39 * time.Minute)}}
	for share, want := range map[float64]string{
		0:  "suspected done confirmed done P-9 done approved done moved done helped done",
		.5: "suspected done confirmed done plan next approved  moved  helped "} {
		f.Impact = []anomaly.Impact{{Job: "5", Share: share, CostSeconds: 18}}
		sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
			Jobs: []remap.Job{{ID: "5", Nodes: []topology.NodeID{"cn1"}}}, Findings: []anomaly.Finding{f}})
		c := advise.Of(&f, advise.Input{Situation: sit, Plans: []remap.Plan{p}, Now: now})
		var got []string
		for _, s := range c.Steps {
			got = append(got, s.Name, s.State)
		}
		if c.Stage != advise.Slow || strings.Join(got, " ") != want {
			t.Errorf("share %g: %s, %q; want %q", share, c.Stage, got, want)
		}
		if at := c.Steps[0].At; !at.Equal(now.Add(-55 * time.Minute)) {
			t.Errorf("suspected at %s, which is since when it is slow", at)
		}
	}
}

// TestWhatIsAboveAll: a daemon that was late says so and of nobody that he is silent; all forwarders
// that are silent at once are one card about the daemon or the network.
func TestWhatIsAboveAll(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	m := &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder},
		{ID: "fwd2", Role: topology.Forwarder}}}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m})
	all := advise.Cards(advise.Input{Situation: sit, Now: now, Late: 8 * time.Second})
	if len(all) != 1 || all[0].Sentence != "fairway's own daemon was 8 s late" {
		t.Errorf("a daemon that is late: %+v", all)
	}
	all = advise.Cards(advise.Input{Situation: sit, Now: now})
	if len(all) != 1 || all[0].Sentence != "All 2 forwarders are silent at once" || all[0].Stage != advise.AllSilent {
		t.Errorf("one that is on time: %+v", all)
	}
}

// TestSilentAndUnused: one that does not report stands behind a slow one that jobs wait for, whoever uses it.
func TestSilentAndUnused(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	m := &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder},
		{ID: "fwd2", Role: topology.Forwarder}}}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m,
		Load: map[topology.ForwarderID]remap.Load{"fwd1": {LastSeen: now}},
		Jobs: []remap.Job{{ID: "5", Nodes: []topology.NodeID{"cn1"}}},
		Findings: []anomaly.Finding{{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Confirmed,
			Since: now, Factor: 10, Impact: []anomaly.Impact{{Job: "5", Share: .5}}}}})
	all := advise.Cards(advise.Input{Situation: sit, Now: now})
	if len(all) != 2 || all[0].Node != "fwd1" || all[1].Sentence != "1 forwarder silent: fwd2" {
		t.Errorf("%+v", all)
	}
}

// TestCalm: what stands where no card is never calls well what is far from its peers, or open.
func TestCalm(t *testing.T) {
	drained := []anomaly.Finding{{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Excluded, Factor: 10,
		ExcludedBy: "olga"}}
	for _, c := range []struct {
		open       []anomaly.Finding
		compared   int
		ratio      float64
		word, text string
	}{
		{nil, 0, 0, "not known", "Nothing is known to be slow. 0 of 8 forwarders do I/O now and were compared."},
		{nil, 8, 1.1, "all well", "Nothing is slow. 8 of 8 forwarders do I/O now and were compared. " +
			"The nearest is fwd4, 1.1x."},
		{nil, 8, 11, "watched", "Nothing is known to be slow. 8 of 8 forwarders do I/O now and were compared. " +
			"fwd4 takes 11x its peers' time just now; it is suspected if that lasts."},
		{drained, 8, 11, "nothing needs you", "Nothing needs you. fwd1 is 10x slow (F-1) and is drained. " +
			"8 of 8 forwarders do I/O now and were compared."},
	} {
		nearest := "fwd4"
		if c.compared == 0 {
			nearest = ""
		}
		if word, text := advise.Calm(c.open, c.compared, 8, nearest, c.ratio); word != c.word || text != c.text {
			t.Errorf("%gx: %s: %q; want %s: %q", c.ratio, word, text, c.word, c.text)
		}
	}
}

// TestWithoutABatchSystem: who waits is counted in compute nodes; a slow forwarder that serves some is not left out.
func TestWithoutABatchSystem(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	f := anomaly.Finding{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Confirmed, Since: now,
		Factor: 3}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
		Findings: []anomaly.Finding{f}})
	sit.Clients = map[topology.ForwarderID]int{"fwd1": 12}
	for unknown, want := range map[bool]int{true: 1, false: 1} {
		all := advise.Cards(advise.Input{Situation: sit, Now: now, JobsUnknown: unknown})
		if len(all) != want && unknown {
			t.Fatalf("%+v", all)
		}
		if unknown && all[0].Victims[0].Text != "12 compute nodes use it; jobs are not reported here" {
			t.Errorf("%+v", all[0].Victims)
		}
	}
}
