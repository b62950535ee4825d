package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/tier"
)

const tierBase = 1_700_000_000 / 36000 * 36000 // both tiers' blocks begin here

// tierStore is a store with half a day of three nodes and both tiers.
func tierStore(t *testing.T, dir string, now *atomic.Int64, keep time.Duration) *DB {
	t.Helper()
	db, err := Open(dir, Options{
		SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler),
		Now:          func() time.Time { return time.Unix(now.Load(), 0) },
		RetentionAge: keep, Keep10s: 30 * 24 * time.Hour, Keep5m: 300 * 24 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	db.SetPeaks(map[topology.NodeID]float64{"a": 1000, "c": 10})
	return db
}

func fillHalfDay(t *testing.T, db *DB) {
	t.Helper()
	var frames []collector.Frame
	for at := int64(0); at < 12*3600; at++ {
		add := func(node topology.NodeID, samples ...collector.Sample) {
			frames = append(frames, collector.Frame{Node: node, Role: topology.Forwarder,
				TimeMillis: (tierBase + at) * 1000, Samples: samples})
		}
		add("a", collector.Sample{Metric: collector.ReadBytes, Value: float64(at % 997)},
			collector.Sample{Metric: collector.WriteBytes, Value: 0},
			collector.Sample{Metric: collector.MetaWait, Value: float64(at%13) / 7})
		if at/700%3 > 0 { // gaps, some inside a bucket
			add("b", collector.Sample{Metric: collector.ReadBytes, Value: -5})
		}
		if at > 20000 && at%2 == 0 {
			add("c", collector.Sample{Metric: collector.WriteBytes, Value: float64(at % 11)},
				collector.Sample{Metric: collector.MemoryUsedRatio, Value: float64(at%5) / 4}) // a number above 63
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
	for _, agg := range []tsdb.Agg{tsdb.AggMean, tsdb.AggSum, tsdb.AggMin, tsdb.AggMax, tsdb.AggCount} {
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaWait,
			collector.MemoryUsedRatio} {
			got, err := db.Select(context.Background(),
				tsdb.Query{Nodes: nodes, Metric: m, Agg: agg, StepMillis: step * 1000, FromMillis: tierBase * 1000,
					ToMillis: to * 1000})
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
	got, err := db.Occupancy(context.Background(), tsdb.OccupancyQuery{Nodes: []topology.NodeID{"a", "c"},
		FromMillis: tierBase * 1000, ToMillis: to * 1000, BucketMillis: step * 1000,
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
		db.sealer.mu.Lock()
		defer db.sealer.mu.Unlock()
		if err := db.tiers.Update(at); err != nil {
			t.Fatal(err)
		}
		db.sealer.retain(at)
	}
	check := func(what string, steps ...int64) {
		t.Helper()
		for _, step := range steps {
			for i, got := range tierAnswers(t, db, step, end) {
				if !reflect.DeepEqual(got, want[step][i]) {
					t.Errorf("%s, step %d, answer %d:\ngot  %.300s\nwant %.300s", what, step, i, fmt.Sprint(got),
						fmt.Sprint(want[step][i]))
				}
			}
		}
	}
	retain(20 * time.Hour) // half of it is gone
	if first := db.head.blocks.First(); first <= tierBase || first >= tierBase+12*3600 {
		t.Fatalf("seconds from %d on are left, want the later part", first-tierBase)
	}
	check("half seconds, half tier", 10, 60, 300, 3600)
	retain(30 * time.Hour)
	if len(db.head.blocks.Files()) > 0 {
		t.Fatal("seconds are left")
	}
	reopen()
	check("10 s tier", 10, 60, 300, 3600)
	if got, err := db.Select(context.Background(),
		tsdb.Query{Nodes: []topology.NodeID{"a"}, Metric: collector.ReadBytes,
			FromMillis: tierBase * 1000, ToMillis: end * 1000}); err != nil || len(got) > 0 {
		t.Errorf("seconds that are gone are answered: %v %v", got, err)
	}
	retain(40 * 24 * time.Hour)
	check("5 min tier", 300, 3600)
	if out := tierAnswers(t, db, 10, end); len(out[0].([]tsdb.Series)) > 0 {
		t.Error("a step finer than what is left is answered")
	}
	if d := db.Damages(); len(d) > 0 {
		t.Error(d)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// remakeTiers does what the sealer does once a minute.
func remakeTiers(t *testing.T, db *DB, now int64) {
	t.Helper()
	db.sealer.mu.Lock()
	defer db.sealer.mu.Unlock()
	if err := db.tiers.Update(time.Unix(now, 0)); err != nil {
		t.Fatal(err)
	}
}

// TestLateRowsReachTheTier seals a row after its tier was made, also where the process is killed then.
func TestLateRowsReachTheTier(t *testing.T) {
	for _, killed := range []bool{false, true} {
		var now atomic.Int64
		now.Store(tierBase + 12*3600)
		dir := t.TempDir()
		db := tierStore(t, dir, &now, 240*time.Hour)
		fillHalfDay(t, db)
		remakeTiers(t, db, now.Load())
		row := collector.Frame{Node: "b", Role: topology.Forwarder, TimeMillis: (tierBase + 100) * 1000,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 77777}}}
		if err := db.Append(context.Background(), []collector.Frame{row}); err != nil {
			t.Fatal(err)
		}
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if killed {
			db.abandon()
			db = tierStore(t, dir, &now, 240*time.Hour)
		}
		remakeTiers(t, db, now.Load())
		late, err := os.ReadFile(filepath.Join(dir, tier.Dir, tier.LateFile))
		if err != nil || string(late) != "FWLT 1\n" {
			t.Errorf("made again, and still noted: %q %v", late, err)
		}
		now.Add(300 * 3600)
		db.sealer.mu.Lock()
		db.sealer.retain(time.Unix(now.Load(), 0))
		db.sealer.mu.Unlock()
		for _, step := range []int64{10, 300} {
			got, err := db.Select(context.Background(),
				tsdb.Query{Nodes: []topology.NodeID{"b"}, Metric: collector.ReadBytes, Agg: tsdb.AggMax,
					StepMillis: step * 1000,
					FromMillis: tierBase * 1000, ToMillis: (tierBase + 300) * 1000})
			if err != nil || len(got) != 1 || got[0].Points[len(got[0].Points)-1].Value != 77777 {
				t.Errorf("killed %v, step %d: got %v %v", killed, step, got, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestATornTierIsMadeAgain zeroes a part of every tier's newest block of each figure in turn, as a power cut may.
func TestATornTierIsMadeAgain(t *testing.T) {
	var now atomic.Int64
	now.Store(tierBase + 12*3600)
	dir := t.TempDir()
	db := tierStore(t, dir, &now, 240*time.Hour)
	fillHalfDay(t, db)
	remakeTiers(t, db, now.Load())
	db.abandon()
	sums := filepath.Join(dir, tier.Dir, "10s", "sum")
	whole, err := block.Check(sums, false)
	if err != nil || whole.Blocks == 0 {
		t.Fatal(whole, err)
	}
	list, err := filepath.Glob(filepath.Join(sums, "*.blk"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	path := list[len(list)-1]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[len(data)-40:])
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db = tierStore(t, dir, &now, 240*time.Hour)
	defer db.Close()
	remakeTiers(t, db, now.Load())
	remakeTiers(t, db, now.Load())
	if found, err := block.Check(sums, false); err != nil || found.Blocks != whole.Blocks || len(found.Damages) > 0 {
		t.Errorf("%d blocks, %d before one was torn: %v %v", found.Blocks, whole.Blocks, found.Damages, err)
	}
	if d := db.Damages(); len(d) > 0 {
		t.Error(d)
	}
}

// TestRowsOlderThanTheSecondsLeaveTheTierAlone seals a row of an hour of which only tiers are left: its bucket keeps
// what it had of ten seconds.
func TestRowsOlderThanTheSecondsLeaveTheTierAlone(t *testing.T) {
	var now atomic.Int64
	now.Store(tierBase + 12*3600)
	db := tierStore(t, t.TempDir(), &now, 24*time.Hour)
	defer db.Close()
	fillHalfDay(t, db)
	const end = tierBase + 10*3600
	want := tierAnswers(t, db, 10, end)
	sealer := func() {
		db.sealer.mu.Lock()
		defer db.sealer.mu.Unlock()
		at := time.Unix(now.Load(), 0)
		if err := db.tiers.Update(at); err != nil {
			t.Fatal(err)
		}
		db.sealer.retain(at)
	}
	now.Add(60 * 3600)
	sealer()
	late := collector.Frame{Node: "a", Role: topology.Forwarder, TimeMillis: (tierBase + 100) * 1000,
		Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 77777}}}
	if err := errors.Join(db.Append(context.Background(), []collector.Frame{late}),
		db.Flush(context.Background())); err != nil {
		t.Fatal(err)
	}
	sealer()
	if got := tierAnswers(t, db, 10, end); !reflect.DeepEqual(got, want) {
		t.Errorf("a row that came after its hour's seconds were removed changed the tier:\ngot  %.300s\nwant %.300s",
			fmt.Sprint(got), fmt.Sprint(want))
	}
}
