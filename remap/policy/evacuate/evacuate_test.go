package evacuate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.Local)

// site is four forwarders of 1 GB/s: fwd0 is ill since ten seconds and has the four nodes of job 1, fwd1 has job 2,
// fwd2 nobody and fwd3 job 3, which fills it.
func site(condition anomaly.Condition, ratio float64, ill topology.NodeID) *remap.Situation {
	m := &topology.Machine{Name: "test"}
	routes, load := map[topology.NodeID]window.Route{}, map[topology.ForwarderID]remap.Load{}
	rates := []float64{2e8, 3e8, 0, 9.9e8}
	for i := range 4 {
		f := topology.ForwarderID(fmt.Sprint("fwd", i))
		m.Nodes = append(m.Nodes, topology.Node{ID: f.Node(), Role: topology.Forwarder})
		load[f] = remap.Load{LastSeen: noon, ReadBytesPerSec: new(0.0), WriteBytesPerSec: &rates[i],
			MetaOpsPerSec: new(0.0), PeakBytesPerSec: 1e9}
	}
	jobs := []remap.Job{{ID: "1", App: "ROMS", User: "wei"}, {ID: "2", App: "WRF", User: "ann"}, {ID: "3", App: "CM1"}}
	for i, f := range []topology.ForwarderID{"fwd0", "fwd1", "fwd3"} {
		for k := range 4 {
			n := topology.NodeID(fmt.Sprintf("cn%d%d", i, k))
			m.Nodes = append(m.Nodes, topology.Node{ID: n, Role: topology.Compute})
			routes[n] = window.Route{Forwarder: f, At: noon}
			jobs[i].Nodes = append(jobs[i].Nodes, n)
		}
	}
	f := anomaly.Finding{ID: "F-0001", Node: ill, Kind: anomaly.FailSlow, Condition: condition, Factor: ratio,
		State: anomaly.Confirmed, Steps: []anomaly.Step{{State: anomaly.Confirmed, At: noon.Add(-10 * time.Second)}}}
	if ratio > 0 {
		f.Impact = []anomaly.Impact{{Job: "1", Share: 0.8}}
	}
	return remap.BuildSituation(remap.SituationParts{At: noon, Machine: m, Routes: routes, Load: load, Jobs: jobs,
		Findings: []anomaly.Finding{f}})
}

// TestDecide: who is moved, where to, whether a rule acts, and why not where nothing is done.
func TestDecide(t *testing.T) {
	act := Rule{Name: "night", Action: Act}
	for _, c := range []struct {
		name   string
		s      *remap.Situation
		rules  []Rule
		change func(*Case)
		act    bool
		says   string // of the plan's reason, else of the line that says why it has no plan; empty: neither
		to     string
	}{
		{name: "without a rule a person is asked", s: site(anomaly.Slow, 10, "fwd0"), to: "fwd2",
			says: "fwd0 is 10x slow (F-0001) and job 1 waits for it: 4 nodes to fwd2, where no other job is"},
		{name: "a rule acts", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act}, act: true, to: "fwd2",
			says: "; rule night acts, 1 of at most 10 in 24 hours"},
		{name: "one that hangs, whoever waits", s: site(anomaly.Hung, 0, "fwd0"), act: true, to: "fwd2",
			says: "fwd0 is hung (F-0001)", rules: []Rule{{Name: "night", Action: Act, Conditions: []string{"hung"}}}},
		{name: "one that hangs and the rule does not name that", s: site(anomaly.Hung, 0, "fwd0"), rules: []Rule{act},
			to: "fwd2", says: "; rule night does not name hung and asks: fence it first"},
		{name: "one that is dead", s: site(anomaly.Dead, 0, "fwd0"), rules: []Rule{act}, act: true, to: "fwd2",
			says: "fwd0 is dead (F-0001)"},
		{name: "one that is silent only", s: site(anomaly.Silent, 0, "fwd0"), rules: []Rule{act}},
		{name: "a back end", s: site(anomaly.Slow, 10, "oss1"), rules: []Rule{act}},
		{name: "nobody waits", s: site(anomaly.Slow, 0, "fwd0"), rules: []Rule{act}},
		{name: "whether anybody waits is not known", s: site(anomaly.Slow, 0, "fwd0"), rules: []Rule{act}, to: "fwd2",
			says: "and job 1 may wait for it: 4 nodes to fwd2, where no other job is; rule night asks, for its nodes " +
				"count no I/O",
			change: func(c *Case) { c.Demand = func(*remap.Job) *float64 { return nil } }},
		{name: "a job that just began", s: site(anomaly.Slow, 0, "fwd0"), rules: []Rule{act}, change: func(c *Case) {
			c.Demand = func(*remap.Job) *float64 { return nil }
			c.Situation.Jobs[0].Start = noon.Add(-time.Second)
		}},
		{name: "too little for the rule", s: site(anomaly.Slow, 3, "fwd0"), to: "fwd2", says: "where no other job is",
			rules: []Rule{{Name: "night", Action: Act, Ratio: 5}}},
		{name: "too early for the rule", s: site(anomaly.Slow, 10, "fwd0"), to: "fwd2",
			says:  "; rule night acts when this has been confirmed for 1m0s",
			rules: []Rule{{Name: "night", Action: Act, For: time.Minute}}},
		{name: "not its hours", s: site(anomaly.Slow, 10, "fwd0"), to: "fwd2", says: "where no other job is",
			rules: []Rule{{Name: "night", Action: Act, Hours: "22:00-06:00"}}},
		{name: "over midnight", s: site(anomaly.Slow, 10, "fwd0"), to: "fwd2", act: true, says: "; rule night acts",
			rules: []Rule{{Name: "night", Action: Act, Hours: "11:00-06:00"}}},
		{name: "the first rule that fits counts", s: site(anomaly.Slow, 10, "fwd0"), to: "fwd2",
			says:  "; rule wei asks",
			rules: []Rule{{Name: "wei", User: "wei", Action: Propose}, act}},
		{name: "its bound", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act}, to: "fwd2",
			says:   "; rule night has acted 10 times in 24 hours and asks",
			change: func(c *Case) { c.Acted["night"] = 10 }},
		{name: "with others", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act}, act: true, to: "fwd1",
			says:   "4 nodes to fwd1, where 1 job loses nothing",
			change: func(c *Case) { c.Taken["fwd2"] = true }},
		{name: "others would lose", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act},
			says: "wherever its nodes went, jobs there would lose 44 % or more; 5 % is the bound",
			change: func(c *Case) {
				c.Taken["fwd2"] = true
				c.Demand = func(*remap.Job) *float64 { return new(9e8) }
			}},
		{name: "what others lose is not known", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act}, to: "fwd1",
			says: "would lose is not known; rule night asks, for what that costs others is not known",
			change: func(c *Case) {
				c.Taken["fwd2"] = true
				c.Demand = func(*remap.Job) *float64 { return nil }
			}},
		{name: "nowhere to go", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act},
			says:   "no healthy forwarder is free for its nodes",
			change: func(c *Case) { c.Taken["fwd1"], c.Taken["fwd2"], c.Taken["fwd3"] = true, true, true }},
		{name: "a person has refused", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act},
			says: "P-1 was ended by sam",
			change: func(c *Case) {
				c.Refused = func(*anomaly.Finding, topology.JobID) string { return "P-1 was ended by sam" }
			}},
		{name: "a plan of another waits", s: site(anomaly.Slow, 10, "fwd0"), rules: []Rule{act},
			says:   "P-9 waits and moves these nodes",
			change: func(c *Case) { c.Waiting["cn02"] = &remap.Plan{ID: "P-9", Proposer: "policy dfra"} }},
	} {
		if err := Validate(c.rules); err != nil {
			t.Fatal(err)
		}
		in := &Case{Situation: c.s, Rules: c.rules, Acted: map[string]int{}, Taken: map[topology.ForwarderID]bool{},
			Waiting: map[topology.NodeID]*remap.Plan{},
			Refused: func(*anomaly.Finding, topology.JobID) string { return "" },
			Demand:  func(*remap.Job) *float64 { return new(2e8) }}
		if c.change != nil {
			c.change(in)
		}
		plans, held := Decide(in)
		got, to, acts := "", "", false
		for _, p := range plans {
			got, to, acts = p.Reason, string(p.Moves[0].To), p.Act
			if len(p.Moves) != 4 || p.Force != strings.Contains(c.name, "one that") {
				t.Errorf("%s: moves %v", c.name, p.Moves)
			}
		}
		for _, l := range held {
			got = l.Text
		}
		if len(plans)+len(held) > 1 || to != c.to || acts != c.act || (c.says == "") != (got == "") ||
			!strings.Contains(got, c.says) {
			t.Errorf("%s: %q to %q, acts %v; want %q to %q, %v", c.name, got, to, acts, c.says, c.to, c.act)
		}
	}
}

// TestAnAddressMovesWithAllItsClients: who shares a floating address with a node that waits is in its plan.
func TestAnAddressMovesWithAllItsClients(t *testing.T) {
	s := site(anomaly.Slow, 10, "fwd0")
	for _, n := range []topology.NodeID{"cn00", "cn03", "cn10"} { // cn10 is another job's
		s.Routes[n] = window.Route{Forwarder: "fwd0", At: noon, Address: "10.0.0.1"}
	}
	plans, held := Decide(&Case{Situation: s, Waiting: map[topology.NodeID]*remap.Plan{}, Acted: map[string]int{},
		Taken:   map[topology.ForwarderID]bool{},
		Refused: func(*anomaly.Finding, topology.JobID) string { return "" },
		Demand:  func(*remap.Job) *float64 { return new(2e8) }})
	if len(plans) != 1 || len(held) > 0 {
		t.Fatalf("%+v, held %+v", plans, held)
	}
	var names []string
	for _, m := range plans[0].Moves {
		names = append(names, fmt.Sprint(m.Node, " ", m.To))
	}
	if got := strings.Join(names, ", "); got != "cn00 fwd2, cn01 fwd2, cn02 fwd2, cn03 fwd2, cn10 fwd2" {
		t.Error(got)
	}
	// The other job waits, too: it has moved with the first, in this second and while that plan waits.
	s.Jobs[1].Nodes, s.Observed["cn10"], s.Observed["cn11"] = []topology.NodeID{"cn11", "cn10"}, "fwd0", "fwd0"
	s.Findings[0].Impact = append(s.Findings[0].Impact, anomaly.Impact{Job: "2", Share: 0.5})
	waiting := &remap.Plan{ID: "P-1", Job: "1", Proposer: remap.PolicyPerson(Name).Name}
	for _, waits := range []*remap.Plan{nil, waiting} {
		want := "cn10 moves with job 1, which is on it, or on its address, too"
		c := &Case{Situation: s, Waiting: map[topology.NodeID]*remap.Plan{}, Acted: map[string]int{},
			Taken: map[topology.ForwarderID]bool{}, Rules: []Rule{{Name: "night", Action: Act}},
			Refused: func(*anomaly.Finding, topology.JobID) string { return "" },
			Demand:  func(*remap.Job) *float64 { return new(2e8) }}
		if waits != nil {
			want = "P-1 waits and moves these nodes"
			for _, m := range plans[0].Moves {
				c.Waiting[m.Node] = waits
			}
			s.Findings[0].Impact = s.Findings[0].Impact[1:] // so that it comes first
		}
		now, held := Decide(c)
		if waits == nil && len(now) != 1 || waits != nil && len(now) != 0 || len(held) != 1 || held[0].Text != want {
			t.Errorf("%+v, held %+v, want %s", now, held, want)
		}
	}
}

// TestWould: what rules would have done is what they do, within their time and their bound.
func TestWould(t *testing.T) {
	change := func(at time.Duration, id string, from, to anomaly.State) anomaly.Change {
		return anomaly.Change{At: noon.Add(at), From: from, Finding: anomaly.Finding{ID: id, Node: "fwd0", State: to,
			Condition: anomaly.Slow, Factor: 10, Impact: []anomaly.Impact{{Job: "1", Share: 0.5}}}}
	}
	changes := []anomaly.Change{
		change(3*time.Hour, "F-3", "", anomaly.Confirmed), // the journal is read backwards
		change(2*time.Hour+10*time.Second, "F-2", anomaly.Confirmed, anomaly.Returned),
		change(2*time.Hour, "F-2", "", anomaly.Confirmed), change(time.Hour, "F-1", "", anomaly.Confirmed),
		change(0, "F-1", "", anomaly.Suspect)}
	got, err := would([]Rule{{Name: "r", Action: Act, For: time.Minute, AtMost: 1}}, changes,
		func(time.Time) ([]remap.Job, error) {
			return []remap.Job{{ID: "1", Nodes: make([]topology.NodeID, 4)}, {ID: "2"}}, nil
		})
	var says []string
	for _, w := range got {
		says = append(says, w.Finding+" "+w.Does)
	}
	want := "[F-1 act F-2 propose: it was returned after 10s F-3 propose: it had acted 1 time in 24 hours]"
	if err != nil || fmt.Sprint(says) != want {
		t.Errorf("%v, %v; want %s", says, err, want)
	}
}

func TestRulesThatCannotBeAreNamed(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		says string
	}{
		{Rule{Action: Act}, `[[rule]] number 1: name = ""`},
		{Rule{Name: "a", Action: "move"}, `action = "move": want propose or act`},
		{Rule{Name: "a", Action: Act, Hours: "8-18"}, `hours = "8-18": want two times of the day`},
		{Rule{Name: "a", Action: Act, Conditions: []string{"silent"}}, `condition "silent": want slow, hung or dead`},
		{Rule{Name: "a", Action: Act, Loss: 2}, "loss = 2: want a share"},
		{Rule{Name: "a", Action: Act, For: -1}, "for = -1ns"},
		{Rule{Name: "a", Action: Act, AtMost: -1}, "at_most_a_day = -1"},
	} {
		if err := Validate([]Rule{c.rule}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.rule, err, c.says)
		}
	}
}
