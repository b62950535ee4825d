package archive

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"

	"fairway/tsdb/engine"
)

func TestForwardersAreKeptByDay(t *testing.T) {
	store, err := engine.Open(filepath.Join(t.TempDir(), "store"), engine.Options{SyncInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	day := time.Now().UTC().Truncate(24 * time.Hour)
	frame := func(node topology.NodeID, role topology.Role, at time.Time, samples ...collector.Sample) collector.Frame {
		return collector.Frame{Node: node, Role: role, TimeMillis: at.UnixMilli(), Samples: samples}
	}
	var frames []collector.Frame
	for i := range 10 {
		at := day.Add(time.Duration(i) * time.Second)
		frames = append(frames,
			frame("fwd1", topology.Forwarder, at, collector.Sample{Metric: collector.WriteBytes,
				Value: float64(100 * i)}, collector.Sample{Metric: collector.QueueLen, Value: 0}),
			frame("c1", topology.Compute, at, collector.Sample{Metric: collector.WriteBytes, Value: 7}))
	}
	if err := store.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "archive")
	keep := func(now time.Time, want int) {
		t.Helper()
		if n, err := KeepForwarders(t.Context(), dir, store, now, 7); err != nil || n != want {
			t.Errorf("at %s: %d days, %v, want %d", now, n, err, want)
		}
	}
	keep(day.Add(24*time.Hour+10*time.Minute), 0) // samples may still come late
	keep(day.Add(26*time.Hour), 1)
	keep(day.Add(27*time.Hour), 0)
	keep(day.AddDate(0, 0, 20), 0)
	got := one(t, dir,
		"SELECT count(*), sum(write_bytes), count(read_bytes), max(queue_len), min(node), count(DISTINCT day) FROM "+
			"forwarder")
	if want := []any{int64(9), 4500.0, int64(0), 0.0, "fwd1", int64(1)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
