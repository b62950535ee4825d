package endtoend

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// TestModelledSitesAreLeft has a rule that acts look after running jobs on a modelled site of each layer. What can be
// moved under a running program is, without a hand; what cannot stays and says why; nobody else is accused, and no
// move is called useless.
func TestModelledSitesAreLeft(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes ten minutes: FAIRWAY_LONG=1")
	}
	const busy = "busy" // a mount with open files is cut off only where nothing answers any more
	for _, c := range []struct{ layer, fault, refused string }{
		{"nfs", "link", busy}, {"nfs", "hung", ""}, {"dvs", "link", busy}, {"dvs", "hung", ""},
		{"gpfs", "link", ""}} {
		t.Run(c.layer+"-"+c.fault, func(t *testing.T) { leftByRule(t, c.layer, c.fault, c.refused) })
	}
	t.Run("lwfs-link", func(t *testing.T) { // whose clients count nothing: the rule asks, and this desk is on auto
		s := startRuled(t, "lwfs", "link", "0.1")
		var plans []api.PlanRow
		s.until("the rule asks for both jobs", func() bool {
			askAt(s.t, filepath.Join(s.dir, "fairwayd.sock"), "/api/v1/plans", &plans)
			return len(plans) == 2
		})
		for _, r := range plans {
			var p api.PlanView
			askAt(s.t, filepath.Join(s.dir, "fairwayd.sock"), "/api/v1/plans/"+r.ID, &p)
			if !strings.Contains(p.Reason, "may wait for it") || !strings.Contains(p.Reason, "rule leave asks") {
				t.Errorf("%s: %s", p.ID, p.Reason)
			}
		}
	})
	t.Run("lnet-link", func(t *testing.T) { // whose clients use all routers: it is drained
		s := startSite(t, "--auto", "--named-jobs")
		s.begin(batchJob{"1", "GRAPES", "cn1,cn2,cn3,cn4", "N-N", "0.5"})
		s.traffic("rtr2")
		s.demo("fault", "link", "rtr2", "0.1")
		s.drain(remap.Drained)
		if plans := s.plansOfRule(); len(plans) > 0 {
			t.Errorf("a rule moved nodes that use all routers: %+v", plans[0])
		}
		s.saysOnly("rtr2", anomaly.Slow)
	})
}

// startRuled starts a site with two jobs that a rule looks after, and a fault of gw2 once it was seen healthy.
func startRuled(t *testing.T, layer, fault string, amount ...string) *site {
	s := startSite(t, "--layer", layer, "--auto", "--named-jobs", "--spares", "1")
	s.begin(batchJob{"1", "GRAPES", "cn1,cn2,cn3", "N-N", "0.3"})
	s.begin(batchJob{"2", "ROMS", "cn4,cn5,cn6", "N-N", "0.3"})
	begun := s.truth().Seconds
	s.until("the detectors have seen the site healthy", func() bool { return s.truth().Seconds > begun+60 })
	s.demo("fault", append([]string{fault, "gw2"}, amount...)...)
	return s
}

func leftByRule(t *testing.T, layer, fault, refused string) {
	condition, amount := anomaly.Hung, []string{}
	if fault == "link" {
		condition, amount = anomaly.Slow, []string{"0.1"}
	}
	s := startRuled(t, layer, fault, amount...)
	var plans []api.PlanView
	s.until("the rule's plans for both jobs have ended", func() bool {
		plans = s.plansOfRule()
		return len(plans) == 2 && !slices.ContainsFunc(plans, func(p api.PlanView) bool {
			return p.State != remap.Verified && p.State != remap.Failed && p.State != remap.Partial
		})
	})
	s.saysOnly("gw2", condition)
	at := s.nodes("compute")
	for _, p := range plans {
		for _, m := range p.Moves {
			want := m.To
			if refused != "" {
				want = m.From
			}
			s.until(fmt.Sprintf("%s is on %s", m.Node, want), func() bool {
				at = s.nodes("compute")
				return at[string(m.Node)].Forwarder == want
			})
		}
		if ok := refused == ""; ok != (p.State == remap.Verified) || !strings.Contains(p.Error, refused) {
			t.Errorf("%s is %s: %s, want it refused as %q", p.ID, p.State, p.Error, refused)
		}
		if refused != "" {
			continue
		}
		s.until("what "+p.ID+" brought is known", func() bool {
			askAt(t, filepath.Join(s.dir, "fairwayd.sock"), "/api/v1/plans/"+p.ID, &p)
			return p.Effect != nil && p.Effect.Verdict != remap.Measuring
		})
		t.Logf("%s: %s", p.ID, p.Effect.Text())
		if p.Effect.InVain() {
			t.Errorf("%s left a gateway that is %s: %s", p.ID, condition, p.Effect.Text())
		}
	}
	s.saysOnly("gw2", condition)
}

// plansOfRule are the plans that the rule of a site without persons approved.
func (s *site) plansOfRule() (out []api.PlanView) {
	s.t.Helper()
	var rows []api.PlanRow
	askAt(s.t, filepath.Join(s.dir, "fairwayd.sock"), "/api/v1/plans", &rows)
	for _, r := range rows {
		var p api.PlanView
		askAt(s.t, filepath.Join(s.dir, "fairwayd.sock"), "/api/v1/plans/"+r.ID, &p)
		if slices.ContainsFunc(p.Approvals, func(a remap.Approval) bool { return a.By == "rule leave" }) {
			out = append(out, p)
		}
	}
	return out
}

// saysOnly wants that a node and nobody else is accused, with the right word, and that nobody is asked to move what
// has moved.
func (s *site) saysOnly(node string, want anomaly.Condition) {
	s.t.Helper()
	var all []api.FindingView
	var o api.Overview
	askAt(s.t, filepath.Join(s.dir, "fairwayd.sock"), "/api/v1/findings", &all)
	askAt(s.t, filepath.Join(s.dir, "fairwayd.sock"), "/api/v1/overview", &o)
	for _, f := range all {
		if !f.Open() || !f.Kind.Accuses() {
			continue
		}
		if string(f.Node) != node || f.Condition != want {
			s.t.Errorf("%s is %s and called %s: %s; want %s to be %s", f.Node, f.State, f.Condition, f.Sentence, node,
				want)
		}
	}
	for _, c := range o.Needs {
		s.t.Logf("card of %s: %s: %s; %s", c.Node, c.Stage, c.Sentence, c.Second)
		if c.Stage == advise.Helped && c.Action != nil && c.Action.Name == advise.ActPropose {
			s.t.Errorf("what helped is asked for again: %+v", c)
		}
	}
}
