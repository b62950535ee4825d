package dispatch

import (
	"fmt"
	"testing"

	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// Levels are percentiles of the site's own runs; what the site has set stays, and too few runs teach nothing.
func TestLevelsAreTheSitesOwn(t *testing.T) {
	var runs []history.Run
	for i := range 101 {
		runs = append(runs, history.Run{Profile: &history.Profile{WriteBytes: 1,
			Peaks:     history.Peaks{PeakBytesPerSec: float64(1000 - 10*i), PeakOpsPerSec: float64(i)},
			MetaQueue: new(float64(i) / 100)}}, history.Run{})
	}
	got := fmt.Sprint(*levelsOf(runs))
	if got != "{101 900 90 250 25 0.25}" {
		t.Errorf("levels %s", got)
	}
	c := levelsOf(runs).fill(dfra.Config{HighBW: 7})
	if c.HighBW != 7 || c.HighIOPS != 90 || c.LowBW != 250 {
		t.Errorf("filled %+v", c)
	}
	if few := levelsOf(runs[:38]); few != nil || few.fill(c) != c {
		t.Errorf("of 19 runs %+v", few)
	}
}
