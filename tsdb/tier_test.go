package tsdb

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

const tierBase = 1_700_000_000 / 36000 * 36000 // both tiers' blocks begin here

// tierStore is a store with half a day of three nodes and both tiers.
func tierStore(t *testing.T, dir string, now *atomic.Int64, keep time.Duration) *DB {
	t.Helper()
	db, err := Open(dir, Options{
		SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(now.Load(), 0) },
		RetentionAge: keep, Keep10s: 30 * 24 * time.Hour, Keep5m: 300 * 24 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	db.SetPeaks(map[topology.NodeID]float64{"a": 1000, "c": 10}, 0)
	return db
}

func fillHalfDay(t *testing.T, db *DB) {
	t.Helper()
	var frames []collector.Frame
	for at := int64(0); at < 12*3600; at++ {
		add := func(node topology.NodeID, samples ...collector.Sample) {
			frames = append(frames, collector.Frame{Node: node, Role: topology.Forwarder, TimeMillis: (tierBase + at) * 1000, Samples: samples})
		}
		add("a", collector.Sample{Metric: collector.ReadBytes, Value: float64(at % 997)}, collector.Sample{Metric: collector.WriteBytes, Value: 0},
			collector.Sample{Metric: collector.MetaWait, Value: float64(at%13) / 7})
		if at/700%3 > 0 { // gaps, some inside a bucket
			add("b", collector.Sample{Metric: collector.ReadBytes, Value: -5})
		}
		if at > 20000 && at%2 == 0 {
			add("c", collector.Sample{Metric: collector.WriteBytes, Value: float64(at % 11)})
		}
	}
	for len(frames) > 0 {
		n := min(len(frames), 2000)
		if err := db.Append(context.Background(), frames[:n]); err != nil {
			t.Fatal(err)
		}
		frames = frames[n:]
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// answers asks everything that survives down-sampling at a step.
func tierAnswers(t *testing.T, db *DB, step int64, to int64) (out []any) {
	t.Helper()
	nodes := []topology.NodeID{"a", "b", "c"}
	for _, agg := range []Agg{AggMean, AggSum, AggMin, AggMax, AggCount} {
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaWait} {
			got, err := db.Select(context.Background(), Query{Nodes: nodes, Metric: m, Agg: agg, StepMillis: step * 1000, FromMillis: tierBase * 1000, ToMillis: to * 1000})
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				for k := range got[i].Points { // sums of fractions depend on their order
					got[i].Points[k].Value = math.Round(got[i].Points[k].Value*1e6) / 1e6
				}
			}
			out = append(out, got)
		}
	}
	got, err := db.Occupancy(context.Background(), OccupancyQuery{Nodes: []topology.NodeID{"a", "c"}, FromMillis: tierBase * 1000, ToMillis: to * 1000, BucketMillis: step * 1000,
		PeakBytesPerSec: map[topology.NodeID]float64{"a": 1000, "c": 10}})
	if err != nil {
		t.Fatal(err)
	}
	return append(out, got)
}

// TestTiersAnswerForWhatRetentionRemoved compares answers before and after the seconds are gone.
func TestTiersAnswerForWhatRetentionRemoved(t *testing.T) {
	var now atomic.Int64
	now.Store(tierBase + 12*3600)
	dir := t.TempDir()
	db := tierStore(t, dir, &now, 24*time.Hour)
	fillHalfDay(t, db)
	const end = tierBase + 10*3600 // a span of the 5-min tier
	want := map[int64][]any{}
	for _, step := range []int64{10, 60, 300, 3600} {
		want[step] = tierAnswers(t, db, step, end)
	}
	reopen := func() {
		t.Helper()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = tierStore(t, dir, &now, 24*time.Hour)
	}
	retain := func(after time.Duration) {
		t.Helper()
		at := time.Unix(now.Add(int64(after.Seconds())), 0)
		db.sealing.Lock()
		defer db.sealing.Unlock()
		if err := db.makeTiers(at); err != nil {
			t.Fatal(err)
		}
		db.retain(at)
	}
	check := func(what string, steps ...int64) {
		t.Helper()
		for _, step := range steps {
			for i, got := range tierAnswers(t, db, step, end) {
				if !reflect.DeepEqual(got, want[step][i]) {
					t.Errorf("%s, step %d, answer %d:\ngot  %.300s\nwant %.300s", what, step, i, fmt.Sprint(got), fmt.Sprint(want[step][i]))
				}
			}
		}
	}
	retain(20 * time.Hour) // half of it is gone
	if first := db.rawFrom(); first <= tierBase || first >= tierBase+12*3600 {
		t.Fatalf("seconds from %d on are left, want the later part", first-tierBase)
	}
	check("half seconds, half tier", 10, 60, 300, 3600)
	retain(30 * time.Hour)
	if len(db.view.Load().files) > 0 {
		t.Fatal("seconds are left")
	}
	reopen()
	check("10 s tier", 10, 60, 300, 3600)
	if got, err := db.Select(context.Background(), Query{Nodes: []topology.NodeID{"a"}, Metric: collector.ReadBytes, FromMillis: tierBase * 1000, ToMillis: end * 1000}); err != nil || len(got) > 0 {
		t.Errorf("seconds that are gone are answered: %v %v", got, err)
	}
	retain(40 * 24 * time.Hour)
	check("5 min tier", 300, 3600)
	if out := tierAnswers(t, db, 10, end); len(out[0].([]Series)) > 0 {
		t.Error("a step finer than what is left is answered")
	}
	if d := db.Damages(); len(d) > 0 {
		t.Error(d)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLateRowsReachTheTier seals a row after its tier was made.
func TestLateRowsReachTheTier(t *testing.T) {
	var now atomic.Int64
	now.Store(tierBase + 12*3600)
	db := tierStore(t, t.TempDir(), &now, 240*time.Hour)
	defer db.Close()
	fillHalfDay(t, db)
	makeTiers := func() {
		t.Helper()
		db.sealing.Lock()
		defer db.sealing.Unlock()
		if err := db.makeTiers(time.Unix(now.Load(), 0)); err != nil {
			t.Fatal(err)
		}
	}
	makeTiers()
	late := collector.Frame{Node: "b", Role: topology.Forwarder, TimeMillis: (tierBase + 100) * 1000, Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 77777}}}
	if err := db.Append(context.Background(), []collector.Frame{late}); err != nil {
		t.Fatal(err)
	}
	if err := db.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	makeTiers()
	now.Add(300 * 3600)
	db.sealing.Lock()
	db.retain(time.Unix(now.Load(), 0))
	db.sealing.Unlock()
	got, err := db.Select(context.Background(), Query{Nodes: []topology.NodeID{"b"}, Metric: collector.ReadBytes, Agg: AggMax, StepMillis: 10_000,
		FromMillis: (tierBase + 100) * 1000, ToMillis: (tierBase + 110) * 1000})
	if err != nil || len(got) != 1 || got[0].Points[0].Value != 77777 {
		t.Errorf("got %v %v", got, err)
	}
}
