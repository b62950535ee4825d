package remap

import "testing"

// TestTheTrackRecordIsOfMoves: a plan that was never carried out counts nowhere, an unknown effect as neither.
func TestTheTrackRecordIsOfMoves(t *testing.T) {
	gain := func(v Verdict, expected, got float64) Plan {
		return Plan{State: Verified, Effect: &Effect{Verdict: v, Expected: expected, Gain: &Gain{Times: got}}}
	}
	for want, plans := range map[string][]Plan{
		"": {{State: Rejected}, {State: Expired}, {State: Verified, Effect: &Effect{Verdict: Measuring}}},
		"promised 14x, got 7.7x; 2 of 2 measured moves helped": {gain(Helped, 14, 7.7), gain(Helped, 7.1, 6.6),
			{State: Rejected}, {State: Verified, Effect: &Effect{Verdict: EffectUnknown, Expected: 5}},
			{Moves: []Move{{Node: "fwd1", Limit: .05}}, Effect: &Effect{Verdict: Worse}}},
		"1 of 2 measured moves helped, 1 made it worse": {gain(Helped, 0, 3), gain(Worse, 0, 0.5)},
		"1 of 1 measured move helped": {{State: Verified, Effect: &Effect{Verdict: Helped, HungSeconds: 77,
			Expected: 10, Gain: &Gain{Times: 4000}}}},
	} {
		if got := TrackOf(plans).Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
