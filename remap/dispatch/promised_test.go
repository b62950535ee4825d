package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/policy/dfra"
)

// What a plan that waits would fill is not proposed to a second job, and its decision says whose it is; another idle
// forwarder is. Once the plan was withdrawn it is free again.
func TestTwoJobsAreNotSentToOneIdleForwarder(t *testing.T) {
	m := newMachine(8, 2, 2)
	m.busy["f1"], m.busy["f3"] = true, true
	m.finds = []anomaly.Finding{{ID: "F-1", Node: "f0", Kind: anomaly.FailSlow, State: anomaly.Confirmed}}
	s := newSite(t, m, remap.ModeApprove)
	first := s.dispatch(t, "1", "NEW", cns(0, 2))
	if got := fmt.Sprint(first.Decision.Forwarders); got != "[f2]" || first.Plan == "" {
		t.Fatalf("the first job is sent to %s by %q", got, first.Plan)
	}
	second := s.dispatch(t, "2", "NEW", cns(2, 4))
	reasons := second.Decision.Reasons
	want := "; 0 idle healthy forwarders can take its place; promised: f2 to " + first.Plan
	if why := reasons[len(reasons)-1].Text; second.Plan != "" || !strings.HasSuffix(why, want) {
		t.Errorf("the second one is sent to %v by %q: %s; want %s", second.Decision.Forwarders, second.Plan, why, want)
	}
	s.past(t, "BIG", 4, nil) // would have f2 to itself, which the first plan then cannot fill
	if a := s.dispatch(t, "4", "BIG", cns(4, 8)); slices.Contains(a.Decision.Forwarders, "f2") {
		t.Errorf("a third one is granted what is promised: %+v", a.Decision)
	}
	delete(m.busy, "f3")
	if a := s.dispatch(t, "3", "NEW", cns(2, 4)); fmt.Sprint(a.Decision.Forwarders) != "[f3]" {
		t.Errorf("beside another idle forwarder the second job is sent to %v", a.Decision.Forwarders)
	}
	if _, err := s.d.End(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if a := s.dispatch(t, "5", "NEW", cns(0, 2)); fmt.Sprint(a.Decision.Forwarders) != "[f2]" {
		t.Errorf("after the first plan was withdrawn the next job is sent to %v", a.Decision.Forwarders)
	}
}

// The reason of a plan that only takes nodes off one that is not well is that alone.
func TestAReasonSaysWhatMatters(t *testing.T) {
	rule := dfra.Reason{Text: "its forwarder f1 is not well; 1 idle healthy forwarder can take its place"}
	for want, d := range map[string]dfra.Decision{
		rule.Text: {Action: dfra.Default, Count: 3, Reasons: []dfra.Reason{{Text: "no history"}, rule}},
		"dfra: isolate on 1 forwarder; " + rule.Text: {Action: dfra.Isolate, Count: 1, Reasons: []dfra.Reason{rule}},
		"dfra: default on 2 forwarders":              {Action: dfra.Default, Count: 2},
	} {
		if got := reason("dfra", &d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
