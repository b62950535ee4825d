package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

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
