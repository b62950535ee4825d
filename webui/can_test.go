package webui_test

import (
	"slices"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/api"
)

// TestWhatMayBeDoneIsServed: plans and forwarders say what the asking person may do with them, and why not the rest.
func TestWhatMayBeDoneIsServed(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "routes are shown", func() bool { return len(s.Picture.Snapshot().Situation.Routes) == 32 })
	_, b := post(s, "/api/v1/plans", simsite.OperatorSecret,
		api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001"),
			To: "fwd002", Reason: "fwd001 is slow today"})
	p := decode[api.PlanView](t, b)
	as := func(secret, path string) []byte {
		t.Helper()
		res, b := s.Ask("GET", path, secret, nil)
		if res.StatusCode != 200 {
			t.Fatalf("GET %s: %d %s", path, res.StatusCode, b)
		}
		return b
	}
	for _, c := range []struct {
		who, secret string
		can         []remap.Action
		why         string // not approve
	}{
		{"the proposer", simsite.OperatorSecret, []remap.Action{remap.ActReject}, "you proposed it"},
		{"another operator", simsite.AdminSecret, []remap.Action{remap.ActApprove, remap.ActReject}, ""},
		{"a viewer", simsite.ViewerSecret, []remap.Action{}, `approve needs the role operator, vic is "viewer"`},
	} {
		o := decode[api.PlanView](t, as(c.secret, "/api/v1/plans/"+p.ID)).Options
		if !slices.Equal(o.Can, c.can) || o.WhyNot[remap.ActApprove] != c.why {
			t.Errorf("%s: %+v", c.who, o)
		}
	}
	f := decode[api.ForwarderDetail](t, as(simsite.AdminSecret, "/api/v1/forwarders/fwd001"))
	if f.Options == nil || !f.Permits(remap.ActExclude) || !f.Permits(remap.ActCanary) ||
		f.WhyNot[remap.ActReturn] != "it is not excluded" || f.ReasonLetters[remap.ActExclude] != remap.ReasonLetters {
		t.Errorf("an operator and a forwarder: %+v", f.Options)
	}
	f = decode[api.ForwarderDetail](t, as(simsite.ViewerSecret, "/api/v1/forwarders/fwd001"))
	if f.Options == nil || len(f.Can) > 0 || len(f.WhyNot) != 3 {
		t.Errorf("a viewer and a forwarder: %+v", f.Options)
	}
}
