package overview

import (
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

// console is one without screens, whose keys are all n.
type console struct{ screen.Host }

func (console) Key(screen.Action) string { return "n" }

func TestAgesInAReplayAreOfItsSecond(t *testing.T) {
	then := time.Unix(10000, 0)
	s := &screen.State{Now: then.Add(time.Hour), Past: then, Palette: chart.NewPalette(chart.NoAttributes),
		Host: console{}}
	s.Shown.Needs = []api.Need{{Finding: "F-0001", Node: "fwd001", State: "slow", Since: then.Add(-4 * time.Minute)},
		{Plan: "P-000001", State: "plan", Since: then.Add(-time.Minute)}}
	for i, want := range []string{"for 4m", "waits 1m"} {
		if got := needOn(s, i).tail; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A confirmed back end is in the layer's health, beside its forwarders or alone.
func TestHealthHasTheBackEnds(t *testing.T) {
	for want, finds := range map[string][]anomaly.Finding{
		"healthy": {{Kind: anomaly.TargetSlow, State: anomaly.Suspect}, {Kind: anomaly.TargetSlow, State: "returned"}},
		"2 back ends slow": {{Kind: anomaly.TargetSlow, State: anomaly.Confirmed},
			{Kind: anomaly.TargetSlow, State: anomaly.Confirmed}},
	} {
		s := &screen.State{Palette: chart.NewPalette(chart.NoAttributes), Host: console{}}
		s.Shown.Findings = finds
		if got, _ := state(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
