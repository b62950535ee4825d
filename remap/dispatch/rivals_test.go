package dispatch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/dfra"
	"fairway/remap/policy/mckp"
	"fairway/tsdb/history"
)

// contested is a site on which policy mckp has two spare forwarders to give: as many as ROMS wants, and
// as BIG wants, which moves ten times as much.
func contested(t *testing.T) *site {
	s := newSite(t, newMachine(8, 2, 2), remap.ModeApprove)
	s.d.cfg.Name, s.d.cfg.Policy = "mckp", mckp.Policy(0)
	s.past(t, "ROMS", 4, nil)
	s.past(t, "BIG", 4, func(p *history.Profile) { p.WriteBytes = 1e13 })
	return s
}

// TestMCKPLeavesForwardersToAJobThatIsExpected: who is to start within a minute and saves more gets
// them, who starts later or is running already does not count.
func TestMCKPLeavesForwardersToAJobThatIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := contested(t)
		big := Expected{Job: "9", User: "wei", App: "BIG", Nodes: 4, Start: time.Now().Add(30 * time.Second)}
		for _, c := range []struct {
			name   string
			expect []Expected
			want   dfra.Action
		}{
			{"alone", nil, dfra.Upgrade},
			{"a big one waits", []Expected{big}, dfra.Default},
			{"it is to start in an hour",
				[]Expected{{Job: "9", User: "wei", App: "BIG", Nodes: 4, Start: time.Now().Add(time.Hour)}},
				dfra.Upgrade},
			{"nobody knows it", []Expected{{Job: "9", User: "wei", App: "NEW", Nodes: 4, Start: time.Now()}},
				dfra.Upgrade},
			{"it is this job", []Expected{{Job: "1", User: "wei", App: "BIG", Nodes: 4, Start: time.Now()}},
				dfra.Upgrade},
		} {
			s.d.Expect(c.expect)
			a := s.dispatch(t, "1", "ROMS", cns(0, 4))
			if a.Decision.Action != c.want || (a.Plan != "") != (c.want == dfra.Upgrade) {
				t.Errorf("%s: %s, %+v", c.name, a.Decision.Action, a.Decision.Reasons)
			}
			if _, err := s.d.End(t.Context(), "1"); err != nil {
				t.Fatal(err)
			}
		}
		s.d.Expect([]Expected{big})
		if a := s.dispatch(t, "9", "BIG", cns(4, 8)); a.Decision.Action != dfra.Upgrade || a.Decision.Count != 2 {
			t.Errorf("the big one: %+v", a.Decision)
		}
	})
}

// TestMCKPSeesWhoWaitsForItsDecision: two hooks come at once, and the job that saves less comes first.
func TestMCKPSeesWhoWaitsForItsDecision(t *testing.T) {
	s := contested(t)
	leave := s.d.arrive(&Request{Job: "2", User: "wei", App: "BIG", Nodes: cns(4, 8)})
	if a := s.dispatch(t, "1", "ROMS", cns(0, 4)); a.Decision.Action != dfra.Default {
		t.Errorf("the small one takes what the big one needs: %+v", a.Decision)
	}
	leave()
	if a := s.dispatch(t, "2", "BIG", cns(4, 8)); a.Decision.Action != dfra.Upgrade || a.Decision.Count != 2 {
		t.Errorf("the big one: %+v", a.Decision)
	}
	if len(s.d.arrived) != 0 {
		t.Errorf("%d requests wait", len(s.d.arrived))
	}
}

// TestNobodyIsGrantedWhatAStartingJobHas: f1 serves c4 to c7 by default. While a job there waits for its decision, or
// where the site does not lend it, another job gets the spare forwarder alone, and a job that starts there later stays
// on f1. Lent, f1 is dedicated to the first job and the second one has to leave it.
func TestNobodyIsGrantedWhatAStartingJobHas(t *testing.T) {
	for _, c := range []struct {
		name           string
		lend, arrived  bool
		seen           bool // the site has no default mapping: nodes are seen where they are
		granted, stays bool
	}{
		{"lent", true, false, false, true, false},
		{"lent, and a job starts there", true, true, false, false, true},
		{"kept", false, false, false, false, true},
		{"kept where nodes are seen", false, false, true, false, true},
	} {
		m := newMachine(8, 2, 1)
		if c.seen {
			m.topo.Default = topology.Mapping{}
		}
		s := newSite(t, m, remap.ModeAuto)
		s.d.cfg.Lend = c.lend
		s.past(t, "ROMS", 4, nil) // wants two forwarders
		if c.arrived {
			defer s.d.arrive(&Request{Job: "2", User: "wei", App: "NEW", Nodes: cns(4, 8)})()
		}
		a := s.dispatch(t, "1", "ROMS", cns(0, 4))
		if slices.Contains(a.Decision.Forwarders, "f1") != c.granted || a.Decision.Action != dfra.Upgrade {
			t.Errorf("%s: job 1 gets %v by %s: %+v", c.name, a.Decision.Forwarders, a.Decision.Action,
				a.Decision.Reasons)
		}
		b := s.dispatch(t, "2", "NEW", cns(4, 8))
		if slices.Equal(b.Decision.Forwarders, []topology.ForwarderID{"f1"}) != c.stays {
			t.Errorf("%s: job 2 is on %v", c.name, b.Decision.Forwarders)
		}
	}
}

// TestWhatIsNotLentStillStandsIn: a job whose default forwarder is excluded gets the other one in service, where all
// are, although its grant is refused.
func TestWhatIsNotLentStillStandsIn(t *testing.T) {
	s := newSite(t, newMachine(8, 2, 0), remap.ModeAuto)
	s.past(t, "ROMS", 4, nil)
	c := s.d.caseOf(s.situation(), &job{run: history.Run{Job: "1", App: "ROMS", User: "wei", Nodes: 4},
		on: []topology.ForwarderID{"f0"}, past: &dfra.Run{App: "ROMS", User: "wei", Nodes: 4, VolumeBytes: 1e12,
			IONodes:   4,
			MetaQueue: 1}}, &history.Prediction{Depth: 1})
	c.Forwarders.Anomalous = []topology.ForwarderID{"f0"}
	got := decide(&s.d.cfg, s.situation(), c)
	if got.Action != dfra.Default || !got.Remap || !slices.Equal(got.Forwarders, []topology.ForwarderID{"f1"}) {
		t.Errorf("%+v", got)
	}
}
