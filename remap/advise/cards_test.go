package advise

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

func cards(sit *remap.Situation, plans []remap.Plan, now time.Time) []Card {
	for i := range plans {
		if plans[i].State == "" {
			plans[i].State = remap.Proposed
		}
	}
	return Cards(Input{Situation: sit, Plans: plans, Now: now})
}

// A plan of many nodes names their number: where to and the key behind it must be seen in a terminal of 80 columns.
func TestAMoveIsShort(t *testing.T) {
	sit := remap.BuildSituation(remap.SituationParts{Machine: &topology.Machine{}})
	for want, nodes := range map[string][]topology.NodeID{
		"move cn[002-003] to 2 forwarders": {"cn002", "cn003"},
		"move 4 nodes to 4 forwarders":     {"c00001", "c00017", "c00033", "c00049"},
	} {
		var p remap.Plan
		for _, n := range nodes {
			p.Moves = append(p.Moves, remap.Move{Node: n, To: topology.ForwarderID("to-" + n)})
		}
		if got := newBoard(Input{Situation: sit}).moveText(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Who suffers most comes first; a finding that hurts nobody waits for nobody, nor does one that has an owner.
func TestNeedsAreOrderedByWhoSuffers(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	hurt := func(id string, n topology.NodeID, s anomaly.State, owner string, share float64) anomaly.Finding {
		f := anomaly.Finding{ID: id, Node: n, Kind: anomaly.FailSlow, State: s, Owner: owner, Since: now,
			Sentence: string(n) + " is 10x slow at writing: 36 ms, peers 3.5"}
		if share > 0 {
			f.Impact = []anomaly.Impact{{Job: "5", Share: share, CostSeconds: 18}}
		}
		return f
	}
	m := &topology.Machine{}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m,
		Jobs: []remap.Job{{ID: "5", App: "climate", User: "wei", Nodes: []topology.NodeID{"cn1", "cn2", "cn3"}}},
		Findings: []anomaly.Finding{hurt("F-1", "fwd1", anomaly.Suspect, "", .9),
			hurt("F-2", "fwd2", anomaly.Confirmed, "", .2), hurt("F-3", "fwd3", anomaly.Confirmed, "", .77),
			hurt("F-4", "fwd4", anomaly.Confirmed, "", 0), hurt("F-5", "fwd5", anomaly.Confirmed, "olga", .9)}})
	sit.Observed = topology.Mapping{"cn1": "fwd3", "cn2": "fwd3", "cn3": "fwd2"}
	sit.Used = sit.Observed
	// job 6 has ended, and the first node was on its way back when the plan was proposed
	sit.Findings[2].Impact = append(sit.Findings[2].Impact, anomaly.Impact{Job: "6", Share: .4})
	plans := []remap.Plan{{ID: "P-9", Moves: []remap.Move{{Node: "cn1", From: "fwd7", To: "fwd7"},
		{Node: "cn2", From: "fwd7", To: "fwd7"}}}, {ID: "P-10"}}
	got := cards(sit, plans, now)
	var order []string
	for _, n := range got {
		order = append(order, n.Finding+n.Plan)
	}
	if want := "[F-3P-9 F-2 F-1 P-10]"; len(got) != 4 || want != "["+order[0]+" "+order[1]+" "+order[2]+" "+order[3]+
		"]" {
		t.Fatalf("%v, want %s", order, want)
	}
	first := got[0]
	if len(first.Victims) != 1 {
		t.Errorf("%+v", first.Victims)
	}
	if first.Victims[0].Text != "climate (job 5) of wei: 2 of 3 nodes wait 77 %, each of its nodes lost 18 s" ||
		first.Action.Text != "move cn[1-2] to fwd7 (silent)" || first.Action.Name != remap.ActApprove {
		t.Errorf("%+v %+v", first, first.Action)
	}
}

// A job's storm that made others wait and does so no more, and a silent forwarder that nobody uses, stand below a
// suspect that a job waits for.
func TestWhatHurtsNobodyStandsBelowWhatHurts(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	one := func(id string, kind anomaly.Kind, state anomaly.State, share float64) anomaly.Finding {
		return anomaly.Finding{ID: id, Node: "fwd1", Kind: kind, State: state, Since: now, Changed: now,
			Impact: []anomaly.Impact{{Job: "5", Share: share, CostSeconds: 7}}}
	}
	m := &topology.Machine{Nodes: []topology.Node{{ID: "fwd1", Role: topology.Forwarder},
		{ID: "fwd2", Role: topology.Forwarder}}}
	for share, want := range map[float64]string{0: "[F-2 F-1 fwd2]", .3: "[F-1 F-2 fwd2]"} {
		sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m,
			Jobs: []remap.Job{{ID: "5", Nodes: []topology.NodeID{"cn1"}}},
			Load: map[topology.ForwarderID]remap.Load{"fwd1": {LastSeen: now}},
			Findings: []anomaly.Finding{one("F-1", anomaly.MetaStorm, anomaly.Confirmed, share),
				one("F-2", anomaly.FailSlow, anomaly.Suspect, .8)}})
		sit.Observed = topology.Mapping{"cn1": "fwd1"}
		sit.Used = sit.Observed
		var order []string
		for _, c := range cards(sit, nil, now) {
			order = append(order, cmp.Or(c.Finding, string(c.Node)))
		}
		if got := fmt.Sprint(order); got != want {
			t.Errorf("with a storm that takes %.0f %% of a job's time: %s, want %s", 100*share, got, want)
		}
	}
}

// Links that are not what they were need somebody before they hurt anybody: after all that hurts, before the plans.
// Nobody is called once somebody looks after it.
func TestASlowLinkIsNeededBeforeItHurts(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	link := map[string]float64{anomaly.LinkBits: 25e9}
	one := func(id string, state anomaly.State, evidence map[string]float64, hurt ...anomaly.Impact) anomaly.Finding {
		return anomaly.Finding{ID: id, Node: topology.NodeID("fwd" + id), Kind: anomaly.FailSlow, State: state,
			Since: now, Evidence: evidence, Impact: hurt}
	}
	hurts := anomaly.Impact{Job: "5", Share: .1}
	owned := one("F-6", anomaly.Confirmed, link)
	owned.Owner = "olga"
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
		Jobs: []remap.Job{{ID: "5", Nodes: []topology.NodeID{"cn1"}}},
		Findings: []anomaly.Finding{one("F-1", anomaly.Suspect, link), one("F-2", anomaly.Confirmed, link),
			one("F-3", anomaly.Confirmed, nil), one("F-4", anomaly.Suspect, nil, hurts),
			one("F-5", anomaly.Confirmed, link, hurts), owned}})
	var order []string
	all := cards(sit, []remap.Plan{{ID: "P-1"}}, now)
	for _, n := range all {
		order = append(order, n.Finding+n.Plan)
	}
	if got := fmt.Sprint(order); got != "[F-5 F-4 F-2 F-1 P-1]" {
		t.Fatalf("%s", got)
	}
	if r := all[2].Action; r.Name != remap.ActExclude ||
		r.Text != "no job waits now; drain it to keep the next one off" {
		t.Errorf("%+v", r)
	}
}

// A plan that waits to leave a suspect is shown with what it is to help against, also where nobody has waited yet.
func TestAPlanIsShownWithItsSuspect(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
		Jobs: []remap.Job{{ID: "6", Nodes: []topology.NodeID{"cn1"}}},
		Findings: []anomaly.Finding{{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Suspect,
			Since: now, Class: "write", // job 5 has ended
			Impact: []anomaly.Impact{{Job: "5", Share: .5, CostSeconds: 9}}}}})
	move := remap.Plan{ID: "P-1", Job: "6", Moves: []remap.Move{{Node: "cn1", From: "fwd1", To: "fwd7"}}}
	for plan, want := range map[*remap.Plan]string{nil: "", &move: "fwd1 may be slow at writing P-1"} {
		var plans []remap.Plan
		if plan != nil {
			plans = append(plans, *plan)
		}
		got := ""
		for _, c := range cards(sit, plans, now) {
			got += c.Sentence + " " + c.Plan
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Of plans that leave one forwarder the card asks for the one that helps the most nodes, whichever came last.
func TestTheLargestPlanIsAskedForFirst(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
		Jobs: []remap.Job{{ID: "5", Nodes: []topology.NodeID{"cn1", "cn2"}},
			{ID: "6", Nodes: []topology.NodeID{"cn3"}}},
		Findings: []anomaly.Finding{{ID: "F-1", Node: "fwd1", Kind: anomaly.FailSlow, State: anomaly.Confirmed,
			Since: now, Impact: []anomaly.Impact{{Job: "5", Share: .5}, {Job: "6", Share: .5}}}}})
	move := func(n topology.NodeID, from topology.ForwarderID) remap.Move {
		return remap.Move{Node: n, From: from, To: "fwd7"}
	}
	plans := []remap.Plan{
		{ID: "P-4", Created: now.Add(-time.Second), Moves: []remap.Move{move("cn3", "fwd1")}},
		{ID: "P-3", Created: now.Add(-2 * time.Second), Moves: []remap.Move{move("cn4", "fwd2"), move("cn5", "fwd2"),
			move("cn3", "fwd1")}},
		{ID: "P-2", Created: now.Add(-3 * time.Second), Moves: []remap.Move{move("cn1", "fwd1"), move("cn2", "fwd1")}},
		{ID: "P-1", Created: now.Add(-4 * time.Second), Moves: []remap.Move{move("cn1", "fwd1"), move("cn2", "fwd1")}},
	}
	if first := cards(sit, plans, now)[0]; first.Finding != "F-1" || first.Plan != "P-1" {
		t.Errorf("it asks for %q: %+v", first.Plan, first)
	}
}

// Two plans that go to one forwarder exclude each other, or share what one was promised: each says so.
// TestATargetIsNeededBeforeItIsFull: its card stands although nobody waits, asks for no move, and goes when it is over.
func TestATargetIsNeededBeforeItIsFull(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	f := anomaly.Finding{ID: "F-1", Node: "fs-OST0003", Kind: anomaly.TargetFull, State: anomaly.Suspect, Changed: now,
		Sentence: "fs-OST0003 on oss1 is 96 % full: at the growth of the last hour, 1 % an hour, it is full in 4 hours"}
	for state, want := range map[anomaly.State]int{anomaly.Suspect: 1, anomaly.Confirmed: 1, anomaly.Returned: 0} {
		f.State = state
		got := cards(remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
			Findings: []anomaly.Finding{f}}), nil, now)
		if len(got) != want {
			t.Errorf("%s: %+v", state, got)
		}
		for _, c := range got {
			if c.Sentence != "fs-OST0003 on oss1 is 96 % full" || c.Stage != Odd || c.Accuses() ||
				c.Second != "at the growth of the last hour, 1 % an hour, it is full in 4 hours" ||
				c.Action.Name != ActLook {
				t.Errorf("%s: %+v", state, c)
			}
		}
	}
}

func TestPlansToOneForwarderNameEachOther(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{}})
	plans := []remap.Plan{
		{ID: "P-1", Moves: []remap.Move{{Node: "cn1", From: "fwd1", To: "fwd7"}}},
		{ID: "P-2", Moves: []remap.Move{{Node: "cn2", From: "fwd1", To: "fwd7"},
			{Node: "cn3", From: "fwd1", To: "fwd6"}}},
		{ID: "P-3", Moves: []remap.Move{{Node: "cn4", From: "fwd1", To: "fwd5"}}},
	}
	want := []string{"move cn1 to fwd7 (silent; P-2 wants it, too)",
		"move cn[2-3] to 2 forwarders (P-1 wants some of them, too)", "move cn4 to fwd5 (silent)"}
	for i, n := range cards(sit, plans, now) {
		if n.Action.Text != want[i] {
			t.Errorf("%s: %q, want %q", n.Plan, n.Action.Text, want[i])
		}
	}
}

// A slow back end's victims are behind its gateways, and only what leaves these for another back end helps.
func TestWhatHelpsAgainstASlowBackEnd(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	m := &topology.Machine{}
	load := map[topology.ForwarderID]remap.Load{}
	for f, server := range map[topology.ForwarderID]topology.NodeID{"gw1": "be1", "gw2": "be2", "gw3": "be1",
		"gw4": "be2"} {
		m.Nodes = append(m.Nodes, topology.Node{ID: f.Node(), Role: topology.Forwarder})
		load[f] = remap.Load{LastSeen: now, BackEnd: server, ReadBytesPerSec: new(0.0), WriteBytesPerSec: new(0.0),
			MetaOpsPerSec: new(0.0)}
	}
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: m, Load: load,
		Jobs: []remap.Job{{ID: "5", App: "climate", User: "wei", Nodes: []topology.NodeID{"cn1", "cn2", "cn3"}}},
		Findings: []anomaly.Finding{{ID: "F-1", Node: "be1", Kind: anomaly.TargetSlow, State: anomaly.Confirmed,
			Impact: []anomaly.Impact{{Job: "5", Share: .5}}}}})
	sit.Observed = topology.Mapping{"cn1": "gw1", "cn2": "gw3", "cn3": "gw2"}
	sit.Used = sit.Observed
	within := remap.Plan{ID: "P-1", Moves: []remap.Move{{Node: "cn1", From: "gw1", To: "gw3"}}}
	away := remap.Plan{ID: "P-2", Moves: []remap.Move{{Node: "cn2", From: "gw3", To: "gw4"}}}
	for _, c := range []struct {
		plans      []remap.Plan
		plan, text string
	}{{nil, "", "nodes of its gateways are better served by gw[2,4]"},
		{[]remap.Plan{within}, "", "nodes of its gateways are better served by gw[2,4]"},
		{[]remap.Plan{within, away}, "P-2", "move cn2 to gw4 (idle)"}} {
		n := cards(sit, c.plans, now)[0]
		if n.Finding != "F-1" || n.Plan != c.plan || n.Action.Text != c.text || len(n.Victims) != 1 ||
			n.Victims[0].Text != "climate (job 5) of wei: 2 of 3 nodes wait 50 %" {
			t.Errorf("with %d plans: %+v, %+v", len(c.plans), n, n.Action)
		}
	}
}

// A finding whose victims wait no more does not ask to move anybody. One whose victims have ended needs nobody, unless
// it is a slow forwarder in use: the next job is on it.
func TestNobodyIsMovedWhoDoesNotWait(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	sit := remap.BuildSituation(remap.SituationParts{At: now, Machine: &topology.Machine{},
		Jobs: []remap.Job{{ID: "5", Nodes: []topology.NodeID{"cn1"}}}})
	was, ended := anomaly.Impact{Job: "5", CostSeconds: 9}, anomaly.Impact{Job: "4", CostSeconds: 9}
	for name, c := range map[string]struct {
		kind       anomaly.Kind
		state      anomaly.State
		victim     anomaly.Impact
		needed     bool
		text       string
		mayDrain   bool
		wantAction remap.Action
	}{
		"slow, and a job waits": {anomaly.FailSlow, anomaly.Confirmed, anomaly.Impact{Job: "5", Share: .5}, true,
			"move its nodes elsewhere", true, ActPropose},
		"slow, and it waits no more": {anomaly.FailSlow, anomaly.Confirmed, was, true,
			"no job waits now; drain it to keep the next one off", false, remap.ActExclude},
		"slow, and the job has ended": {anomaly.FailSlow, anomaly.Confirmed, ended, true,
			"no job waits now; drain it to keep the next one off", false, remap.ActExclude},
		"suspect, and the job has ended": {anomaly.FailSlow, anomaly.Suspect, ended, false,
			"look at its evidence", false, ActLook},
		"suspect, and it waits no more": {anomaly.FailSlow, anomaly.Suspect, was, true,
			"look at its evidence", false, ActLook},
		"a storm, and a job waits": {anomaly.MetaStorm, anomaly.Confirmed, anomaly.Impact{Job: "5", Share: .5}, true,
			"move the nodes that wait elsewhere", false, ActPropose},
		"a storm, and it waits no more": {anomaly.MetaStorm, anomaly.Confirmed, was,
			true, "", false, ""},
		"a storm, and the job has ended": {anomaly.MetaStorm, anomaly.Confirmed, ended,
			false, "", false, ""},
	} {
		f := anomaly.Finding{ID: "F-1", Node: "fwd1", Kind: c.kind, State: c.state, Since: now,
			Impact: []anomaly.Impact{c.victim}}
		sit.Findings = []anomaly.Finding{f}
		if got := cards(sit, nil, now); (len(got) == 1) != c.needed {
			t.Errorf("%s: %+v", name, got)
		}
		n := Of(&f, Input{Situation: sit, Now: now})
		a := n.Action
		if a == nil {
			a = &Action{}
		}
		drains := slices.ContainsFunc(n.Others, func(a Action) bool { return a.Name == remap.ActExclude })
		if a.Text != c.text || a.Name != c.wantAction || drains != c.mayDrain {
			t.Errorf("%s: %+v", name, n)
		}
	}
}
