package api

import (
	"fmt"
	"math"
	"testing"

	"fairway/collector"
)

// A shown level stays while the value is near it, and follows one that moves away.
func TestAShownLevelStaysAtABorder(t *testing.T) {
	for _, c := range []struct {
		shown byte
		share float64
		want  byte
	}{
		{LevelUnknown, math.NaN(), LevelUnknown}, {3, math.NaN(), LevelUnknown}, {LevelUnknown, 0.399, 3},
		{3, 0.401, 3}, {3, 0.42, 3}, {3, 0.43, 4}, {4, 0.39, 4}, {4, 0.37, 3}, {3, 0.7, 7}, {9, 1.5, 9}, {8, 1.5, 9},
		{LevelUnknown, 0.009, LevelIdle}, {LevelIdle, 0.012, LevelIdle}, {LevelIdle, 0.013, 0}, {0, 0.008, 0},
		{0, 0.007, LevelIdle}, {5, 0.001, LevelIdle},
	} {
		if got := NextLevel(c.shown, c.share); got != c.want {
			t.Errorf("%d is shown, the share is %g: %d, want %d", c.shown, c.share, got, c.want)
		}
	}
}

func TestARowHasALevelForEachScale(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	r := ForwarderRow{PeakBytesPerSec: 1e9, Occupancy: v(0)}
	r.Values.Set(collector.WriteBytes, v(0.52e9))
	r.Values.Set(collector.QueueLen, v(640))
	r.Values.Set(collector.MetaWait, v(0.05))
	if r.SetLevels(""); r.Levels != "..595-" || len(r.Levels) != len(ForwarderScales) {
		t.Errorf("levels %q", r.Levels)
	}
	r.Values.Set(collector.ReadBytes, v(0.06e9))
	r.Values.Set(collector.Errors, v(1))
	r.Values.Set(collector.MetaWait, v(0.049))
	r.Slow = v(1) // it works, as fast as its peers
	if r.SetLevels(r.Levels); r.Levels != "0.5951" {
		t.Errorf("a second later: levels %q", r.Levels)
	}
	r.Slow = v(10)
	if r.SetLevels(r.Levels); r.Levels != "5.5951" {
		t.Errorf("10 times as slow: levels %q", r.Levels)
	}
	if got := fmt.Sprint(levelOf('.'), levelOf('7'), levelOf('-')); got != "10 7 255" {
		t.Errorf("read back: %s", got)
	}
}
