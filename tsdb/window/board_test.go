package window

import (
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
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

// A node whose clock is half an hour ahead and that has died is not shown as alive for half an hour.
func TestAClockAheadDoesNotKeepANodeAlive(t *testing.T) {
	b := NewBoard(0)
	now := time.Unix(1_000_000, 0)
	b.Take([]collector.Frame{{Node: "n", TimeMillis: now.Add(30 * time.Minute).UnixMilli()}}, now)
	if f, _ := b.Frame("n"); f.TimeMillis != now.Add(-time.Second).UnixMilli() {
		t.Errorf("what came at %s is shown under %s", now.UTC(), time.UnixMilli(f.TimeMillis).UTC())
	}
	b.VisitArrivals(func(_ *collector.Frame, _ time.Time, ahead time.Duration) {
		if ahead != 30*time.Minute+time.Second {
			t.Errorf("its clock is said to be %s ahead", ahead)
		}
	})
}

// Routes of before the daemon's own clock was set back give way to what is seen after it.
func TestOwnClockSetBack(t *testing.T) {
	b := NewBoard(0)
	now := time.Unix(1_000_000, 0)
	see := func(f topology.ForwarderID, listed []collector.Route) {
		at := now.Add(-time.Second).UnixMilli()
		b.Take([]collector.Frame{
			{Node: "cn1", Role: topology.Compute, TimeMillis: at,
				Routes: []collector.Route{{Client: "cn1", Forwarder: f}}},
			{Node: "fwd1", Role: topology.Forwarder, TimeMillis: at, Routes: listed, RoutesComplete: true},
		}, now)
	}
	see("fwd1", []collector.Route{{Client: "cn1", Forwarder: "fwd1"}, {Client: "cn2", Forwarder: "fwd1"}})
	now = now.Add(-time.Hour)
	see("fwd2", nil)
	r := b.Routes(now)
	if cn1 := r["cn1"]; cn1.Forwarder != "fwd2" || !cn1.At.Equal(now) || len(cn1.Lingering) > 0 || len(r) != 1 {
		t.Errorf("routes are %+v, want cn1 on fwd2 since %s", r, now.UTC())
	}
	if n := len(b.tracker.nodes); n != 1 {
		t.Errorf("%d nodes are kept, one is known", n)
	}
}
