package console_test

import (
	"testing"

	"fairway/remap"
)

func TestAPlanSaysWhatItShouldBringAndWhatItBrought(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.answers("P-000001", map[string]any{"expected": "I/O time ~0.20x: at least 5.3 s instead of 26 s"})
		s.press("backspace", "enter")
		s.sees("EXPECTED  I/O time ~0.20x")
		s.answers("P-000001", map[string]any{"state": remap.Verified,
			"expected": "I/O time ~0.20x: at least 5.3 s instead of 26 s",
			"outcome":  "I/O time 4 s for 98.5 GB: 0.80x of the last run's per byte"})
		s.press("backspace", "enter")
		s.sees("EXPECTED  I/O time ~0.20x", "MEASURED  I/O time 4 s for 98.5 GB")
	})
}

// TestAPlanThatEndedSaysByWhomAndWhy: it offers no approval and shows no checks of this second.
func TestAPlanThatEndedSaysByWhomAndWhy(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.sees("CHECKS", "A approve")
		s.press("x")
		s.sees("reject P-000001: accepted")
		s.seconds(11)
		s.lacks("accepted") // the keys are there again
		s.press("backspace", "enter")
		s.sees("REJECTED", "REJECTED  by olga at ")
		s.lacks("CHECKS", "A approve")
	})
}

// TestAPlanThatNobodyAnsweredExpires: the page says so; nobody rejected it.
func TestAPlanThatNobodyAnsweredExpires(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.seconds(15*60 + 2)
		s.press("backspace", "enter")
		s.sees("P-000001  EXPIRED", "EXPIRED   by desk at ", "nobody approved it in time")
		s.lacks("REJECTED", "A approve")
	})
}

// TestAPlanOffersWhatTheServerPermits: a plan that waits for its start has moved nothing, so it can be rejected and not
// rolled back.
func TestAPlanOffersWhatTheServerPermits(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.answers("P-000001", map[string]any{"state": remap.Approved, "can": []string{"reject"},
			"why_not": map[string]string{"rollback": "it is approved, nothing was moved"}})
		s.press("backspace", "enter")
		s.sees("APPROVED", "x reject")
		s.lacks("B roll back", "roll back (shift)", "A approve")
		s.press("B")
		s.sees("refused: it is approved, nothing was moved")
		s.press("x")
		s.asked("reject P-000001")
	})
}

// TestFindingsOfferNoKeysWithoutAFinding: what a key would be about is not there.
func TestFindingsOfferNoKeysWithoutAFinding(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.accuse()
		s.press("3")
		s.sees("a acknowledge", "e drain...")
		s.press("x", "planned work on its array", "enter")
		s.second()
		s.sees("No finding is open")
		s.lacks("a acknowledge", "e drain...", "s silence", "x not a fault", "p propose")
	})
}
