package console_test

import (
	"testing"

	"fairway/remap"
	"fairway/webui/api"
)

func TestAPlanSaysWhatItShouldBringAndWhatItBrought(t *testing.T) {
	s := atPlan(t)
	s.fake.ChangePlan("P-000001",
		func(p *api.PlanView) { p.Expected = "I/O time ~0.20x: at least 5.3 s instead of 26 s" })
	s.second()
	s.press("backspace", "enter")
	s.sees("EXPECTED  I/O time ~0.20x")
	s.fake.ChangePlan("P-000001", func(p *api.PlanView) {
		p.State, p.Outcome = remap.Verified, "I/O time 4 s for 98.5 GB: 0.80x of the last run's per byte"
	})
	s.second()
	s.press("backspace", "enter")
	s.sees("EXPECTED  I/O time ~0.20x", "MEASURED  I/O time 4 s for 98.5 GB")
}

// TestAPlanThatEndedSaysByWhomAndWhy: it offers no approval and shows no checks of this second.
func TestAPlanThatEndedSaysByWhomAndWhy(t *testing.T) {
	s := atPlan(t)
	s.sees("CHECKS", "A approve")
	s.fake.ChangePlan("P-000001", func(p *api.PlanView) {
		p.State, p.Ended = remap.Rejected, &remap.Ended{By: "policy dfra", At: p.Created, Reason: "job 5 has ended"}
	})
	s.second()
	s.press("backspace", "enter")
	s.sees("REJECTED", "ENDED     by policy dfra at ", ": job 5 has ended")
	s.lacks("CHECKS", "A approve")
}

// TestAPlanOffersWhatTheServerPermits: a plan that waits for its start has moved nothing, so it can be rejected and not
// rolled back.
func TestAPlanOffersWhatTheServerPermits(t *testing.T) {
	s := atPlan(t)
	s.fake.ChangePlan("P-000001", func(p *api.PlanView) { p.State = remap.Approved })
	s.second()
	s.press("backspace", "enter")
	s.sees("APPROVED", "x reject")
	s.lacks("B roll back", "roll back (shift)", "A approve")
	s.press("B")
	s.sees("refused: it is approved, nothing was moved")
	s.press("x")
	s.asked("reject P-000001")
}

// TestFindingsOfferNoKeysWithoutAFinding: what a key would be about is not there.
func TestFindingsOfferNoKeysWithoutAFinding(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("3")
	s.sees("a acknowledge", "e exclude...")
	s.fake.Do(func(o *api.Overview) { o.Findings = nil })
	s.second()
	s.sees("No finding is open")
	s.lacks("a acknowledge", "e exclude...", "s silence", "x not a fault", "p propose")
}
