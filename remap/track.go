package remap

import (
	"fmt"
	"slices"

	"fairway/anomaly"
)

// Track is what moves that were carried out were measured to bring, beside what was expected of them.
type Track struct {
	// Measured are those whose effect is known, Helped and Worse some of these; of Unknown ones it is not.
	Measured int `json:"measured"`
	Helped   int `json:"helped"`
	Worse    int `json:"worse"`
	Unknown  int `json:"unknown"`
	// Expected and Got are how many times as fast requests should have become, and became: the medians of the moves of
	// which both are known; 0: of none.
	Expected float64 `json:"expected,omitempty"`
	Got      float64 `json:"got,omitempty"`
}

// TrackOf counts plans; those never carried out, or not measured yet, and limits count nowhere.
func TrackOf(plans []Plan) (t Track) {
	var expected, got []float64
	for i := range plans {
		e := plans[i].Effect
		if e == nil || e.Verdict == Measuring || plans[i].Limits() {
			continue
		}
		switch e.Verdict {
		case EffectUnknown:
			t.Unknown++
			continue
		case Helped:
			t.Helped++
		case Worse:
			t.Worse++
		}
		t.Measured++
		if e.Expected > 0 && e.Gain != nil && e.HungSeconds == 0 {
			expected, got = append(expected, e.Expected), append(got, e.Gain.Times)
		}
	}
	if n := len(got); n > 0 {
		slices.Sort(expected)
		slices.Sort(got)
		t.Expected, t.Got = expected[n/2], got[n/2]
	}
	return t
}

// Text says it in words; empty where no effect is known.
func (t Track) Text() string {
	if t.Measured == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %s helped", t.Helped, anomaly.Counted(t.Measured, "measured move"))
	if t.Got > 0 {
		text = fmt.Sprintf("promised %s, got %s; ", anomaly.Times(t.Expected), anomaly.Times(t.Got)) + text
	}
	if t.Worse > 0 {
		text += fmt.Sprintf(", %d made it worse", t.Worse)
	}
	return text
}
