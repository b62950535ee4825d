package remap

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"fairway/anomaly"
)

// TestTheStepsOfAPlan pins every change of state and who may ask for it, state by state.
func TestTheStepsOfAPlan(t *testing.T) {
	olga := Person{Name: "olga", Role: Operator}
	want := map[PlanState]struct {
		next []PlanState
		can  []Action
	}{
		Proposed:    {[]PlanState{Approved, Rejected, Withdrawn, Expired}, []Action{ActApprove, ActReject}},
		Approved:    {[]PlanState{Rejected, Withdrawn, Expired, Applying}, []Action{ActReject}},
		Applying:    {[]PlanState{RollingBack, Applied, Partial, Failed}, []Action{ActStop, ActRollBack}},
		Applied:     {[]PlanState{RollingBack, Verified, Partial}, []Action{ActRollBack}},
		Verified:    {[]PlanState{RollingBack}, []Action{ActRollBack}},
		Partial:     {[]PlanState{Applying, RollingBack}, []Action{ActComplete, ActRollBack}},
		Failed:      {[]PlanState{Applying, RollingBack}, []Action{ActComplete, ActRollBack}},
		RollingBack: {[]PlanState{RolledBack, Restored, Partial}, nil},
		Rejected:    {}, Withdrawn: {}, Expired: {}, RolledBack: {}, Restored: {},
	}
	for from, w := range want {
		for to := range want {
			if got := MayGo(from, to); got != slices.Contains(w.next, to) {
				t.Errorf("from %s to %s: %v", from, to, got)
			}
		}
		o := PlanOptions(olga, from, "")
		if !slices.Equal(o.Can, w.can) {
			t.Errorf("of a plan that is %s one can %v, want %v", from, o.Can, w.can)
		}
		if len(o.Can)+len(o.WhyNot) != len(planActions) {
			t.Errorf("of a plan that is %s: %+v leaves out an action", from, o)
		}
		if from.Refuses(ActRestore) != from.Refuses(ActRollBack) {
			t.Errorf("%s: a restore is %q", from, from.Refuses(ActRestore))
		}
	}
}

func TestOptionsSayWhyNot(t *testing.T) {
	olga, vera := Person{Name: "olga", Role: Operator}, Person{Name: "vera", Role: Viewer}
	if o := PlanOptions(olga, Proposed, "you proposed it"); o.WhyNot[ActApprove] != "you proposed it" ||
		o.WhyNot[ActRollBack] != "it is proposed, nothing was moved" || !o.Permits(ActReject) ||
		o.Permits(ActApprove) || len(o.ReasonLetters) != 0 {
		t.Errorf("of an own plan: %+v", o)
	}
	if o := PlanOptions(olga, Proposed, ""); !maps.Equal(o.ReasonLetters, map[Action]int{ActApprove: 10}) {
		t.Errorf("reasons for a proposed plan: %v", o.ReasonLetters)
	}
	if o := PlanOptions(vera, Proposed, ""); len(o.Can) != 0 ||
		o.WhyNot[ActRollBack] != `roll back needs the role operator, vera is "viewer"` {
		t.Errorf("of a viewer: %+v", o)
	}
	open, closed := &anomaly.Finding{ID: "F-1", State: anomaly.Confirmed}, &anomaly.Finding{ID: "F-2",
		State: anomaly.Dismissed}
	if o := FindingOptions(olga, open); !slices.Equal(o.Can, findingActions) || o.ReasonLetters[ActDismiss] != 10 {
		t.Errorf("of an open finding: %+v", o)
	}
	if o := FindingOptions(olga, closed); !slices.Equal(o.Can, []Action{ActNote}) ||
		o.WhyNot[ActSilence] != "F-2 is dismissed" {
		t.Errorf("of a closed finding: %+v", o)
	}
	floor := map[Action]string{ActExclude: "the floor is 1", ActCanary: ""}
	if o := ForwarderOptions(olga, false, floor); o.WhyNot[ActExclude] != "the floor is 1" ||
		o.WhyNot[ActReturn] != "it is not excluded" || !slices.Equal(o.Can, []Action{ActCanary}) {
		t.Errorf("of a forwarder: %+v", o)
	}
	if o := ForwarderOptions(olga, true, floor); !slices.Equal(o.Can, forwarderActions) {
		t.Errorf("of an excluded forwarder: %+v", o)
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		action Action
		reason string
		ok     bool
	}{
		{ActApprove, "because it", true}, {ActApprove, "because i", false}, {ActApprove, "          ", false},
		{ActDismiss, "", false}, {ActExclude, "", false}, {ActRollBack, "", true}, {ActRollBack, "a\x1b[2J", false},
		{ActReject, "no", true}, {ActApprove, strings.Repeat("x", maxReason+1), false},
	} {
		if err := c.action.CheckReason(c.reason); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s because of %.20q: %v", c.action, c.reason, err)
		}
	}
}
