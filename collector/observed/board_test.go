package observed

import (
	"testing"
	"time"

	"fairway/collector"
)

// A clock that was a day ahead and has been set back does not keep its node silent for a day.
func TestClockSetBack(t *testing.T) {
	b := NewBoard(0)
	now := time.Unix(1_000_000, 0)
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.Add(24 * time.Hour).UnixMilli()}}, now)
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.UnixMilli()}}, now.Add(time.Second))
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.Add(-time.Minute).UnixMilli()}}, now.Add(2*time.Second))
	if f, _ := b.Frame("n"); f.TimeMillis != now.UnixMilli() {
		t.Errorf("the newest frame is of %s", time.UnixMilli(f.TimeMillis).UTC())
	}
}
