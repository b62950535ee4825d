package desk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
)

func TestChecksSayWhatATargetIsAccusedOf(t *testing.T) {
	for _, c := range []struct {
		state anomaly.State
		kind  anomaly.Kind
		level remap.CheckLevel
		says  string
	}{
		{anomaly.Suspect, anomaly.FailSlow, remap.Amber, "fwd2 is suspect: slow for its load (F-0007)"},
		{anomaly.Confirmed, anomaly.ForwarderSilent, remap.Red, "fwd2 is confirmed: silent (F-0007)"},
	} {
		s := &remap.Situation{Findings: []anomaly.Finding{{ID: "F-0007", Node: "fwd2", Kind: c.kind, State: c.state}}}
		if got := checkTargets([]topology.ForwarderID{"fwd2"}, remap.Plan{}, s); len(got) != 1 ||
			got[0].Level != c.level ||
			got[0].Text != c.says {
			t.Errorf("%+v, want %s %q", got, c.level, c.says)
		}
	}
}

func TestNobodyIsMovedWithinASickBackEnd(t *testing.T) {
	s := &remap.Situation{
		Findings: []anomaly.Finding{{ID: "F-0007", Node: "be1", Kind: anomaly.TargetSlow, State: anomaly.Confirmed}},
		Load: map[topology.ForwarderID]remap.Load{"gw1": {BackEnd: "be1"}, "gw2": {BackEnd: "be2"},
			"gw3": {BackEnd: "be1"}}}
	for _, c := range []struct {
		from, to topology.ForwarderID
		level    remap.CheckLevel
		says     string
	}{
		{"gw1", "gw3", remap.Red,
			"be1 is behind gw1 and gw3 alike: be1 is confirmed: slower than its peers (F-0007); a " +
				"move between them helps nobody"},
		{"gw2", "gw3", remap.Amber, "be1 is behind gw3: be1 is confirmed: slower than its peers (F-0007)"},
		{"gw1", "gw2", "", ""},
	} {
		p := remap.Plan{Moves: []remap.Move{{Node: "c1", From: c.from, To: c.to}}}
		got := checkBackEnds(remap.Targets(p.Moves), p, s)
		if c.says == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0].Level != c.level || got[0].Text != c.says {
			t.Errorf("%s to %s: %+v, want %s %q", c.from, c.to, got, c.level, c.says)
		}
	}
}

// The way of a move must be seen in 80 columns, however many nodes go it.
func TestMovesInWords(t *testing.T) {
	var moves []remap.Move
	for i := range 32 {
		moves = append(moves, remap.Move{Node: topology.NodeID(fmt.Sprintf("c%05d", 519+i)), From: "fwd008",
			To: "fwd016"})
	}
	for i := range 16 {
		moves = append(moves, remap.Move{Node: topology.NodeID(fmt.Sprintf("c%05d", 1000+7*i)), To: "fwd017"})
	}
	moves = append(moves, remap.Move{Node: "login1", From: "fwd009", To: "fwd009"},
		remap.Move{Node: "a", From: "fwd001", To: "fwd002"}, remap.Move{Node: "b", From: "fwd001", To: "fwd002"})
	want := []string{"c[00519-00550] (32)  fwd008 -> fwd016", "c01000 c01007 and 14 more  (not known) -> fwd017",
		"login1  stay on fwd009", "a,b (2)  fwd001 -> fwd002"}
	if got := moveLines(moves); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// TestNodesOverSeveralForwardersCanBeMoved: such a node's way back are all of them; the plan says so, keeps what is
// known of each, is green, and its roll back wants exactly those.
func TestNodesOverSeveralForwardersCanBeMoved(t *testing.T) {
	shares := []topology.Share{{Forwarder: "r1", Part: 0.6}, {Forwarder: "r2", Part: 0.4}}
	now := time.Unix(1795000000, 0)
	m := &topology.Machine{Nodes: []topology.Node{{ID: "c1", Role: topology.Compute},
		{ID: "r1", Role: topology.Forwarder},
		{ID: "r2", Role: topology.Forwarder}, {ID: "r3", Role: topology.Forwarder}}}
	s := remap.BuildSituation(remap.SituationParts{At: now, Machine: m,
		Routes: map[topology.NodeID]window.Route{"c1": {Shares: shares, At: now}}})
	moves, err := checkRequest(&remap.Request{Moves: remap.MoveAll([]topology.NodeID{"c1"}, "r3")}, s)
	if err != nil || moves[0].Spread != "r1,r2" || moves[0].From != "" {
		t.Fatalf("%+v, %v", moves, err)
	}
	p := remap.Plan{Moves: moves}
	if c := checkSources(p, s); c[0].Level != remap.Green || !strings.Contains(c[0].Text, "over several forwarders") {
		t.Errorf("%+v", c)
	}
	if lines := moveLines(moves); len(lines) != 1 || lines[0] != "c1  r1 + r2 -> r3" {
		t.Errorf("%q", lines)
	}
	if f := s.Freeze(moves); len(f.Forwarders) != 3 {
		t.Errorf("frozen: %+v", f)
	}
	back := remap.Move{Node: "c1", Spread: moves[0].Spread}
	for _, r := range []struct {
		route window.Route
		is    bool
	}{{s.Routes["c1"], true}, {window.Route{Forwarder: "r3"}, false}, {window.Route{Shares: shares[:1]}, false}} {
		if got := back.Over(&r.route); got != r.is {
			t.Errorf("back over %+v: %v", r.route, got)
		}
	}
	p.Dedicated, p.Job = true, "7"
	s.Jobs = []remap.Job{{ID: "8", Nodes: []topology.NodeID{"c1"}}}
	if c := checkAlone([]topology.ForwarderID{"r2"}, p, s); c[0].Level != remap.Red {
		t.Errorf("a forwarder that carries a share of another job: %+v", c)
	}
}

// Of two plans that wait and exclude each other the later one says so; it is as any other once the first was rejected.
func TestAForwarderIsPromisedOnce(t *testing.T) {
	m := newTestMachine(4, 3)
	inDesk(t, m, nil, func(t *testing.T, d *Desk, _ string) {
		first := propose(t, d, olga, remap.Request{Job: "1", Moves: remap.MoveAll(nodes(0, 1), "fwd2"), Reason: why,
			Dedicated: true})
		shared := propose(t, d, olga, remap.Request{Job: "2", Moves: remap.MoveAll(nodes(2), "fwd1"), Reason: why})
		later := propose(t, d, olga, remap.Request{Job: "3", Moves: remap.MoveAll(nodes(3), "fwd2"), Reason: why})
		says := func(id string) string {
			t.Helper()
			v, err := d.Preview(t.Context(), sam, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range v.Checks {
				if c.Name == "promised" && c.Level == remap.Amber {
					return c.Text
				}
			}
			return ""
		}
		if got := says(first.ID) + says(shared.ID); got != "" {
			t.Errorf("the first plan and one to elsewhere say %q", got)
		}
		if got := says(later.ID); !strings.HasPrefix(got, first.ID+" waits, too, and moves nodes to fwd2") {
			t.Errorf("the later plan says %q", got)
		}
		if _, err := d.Reject(t.Context(), sam, first.ID, remap.Answer{Reason: why}); err != nil {
			t.Fatal(err)
		}
		if got := says(later.ID); got != "" {
			t.Errorf("after the first was rejected the later plan says %q", got)
		}
	})
}
