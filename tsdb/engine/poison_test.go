package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/log"
	"fairway/tsdb/engine/rows"
)

// TestAPoisonedLogOpens replays a log with rows of thousands of hours, as an earlier version wrote it for a hostile
// sender: the newest rows are kept, what is left out is counted and named.
func TestAPoisonedLogOpens(t *testing.T) {
	const hours, now = 20_000, 1_790_000_400
	dir := t.TempDir()
	open := func() *DB {
		t.Helper()
		db, err := Open(dir, Options{SyncInterval: time.Nanosecond, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Now: func() time.Time { return time.Unix(now, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	one := func(sec int64, v float64) []collector.Frame {
		return []collector.Frame{{Node: "cn1", Role: topology.Compute, TimeMillis: sec * 1000,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: v}}}}
	}
	db := open()
	if err := db.Append(context.Background(), one(now, 1)); err != nil {
		t.Fatal(err)
	}
	first := db.head.nextBlock + 1
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// The next segment is the attack, and after it an honest row.
	wal := log.New(disk.OS{}, filepath.Join(dir, "wal"))
	if _, err := wal.Replay(log.Target{Nodes: 1, Log: slog.New(slog.DiscardHandler),
		Take: func(*log.Record) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	wal.Resume(first)
	var p log.Pending
	p.Begin()
	for i := range int64(hours) {
		id := first + uint64(i)
		start := i * 3600
		if i == hours-1 {
			start = tsdb.FloorDiv(now+600, BlockSeconds) * BlockSeconds
		}
		p.Note(id)
		p.Writer.NamedRow(rows.NewBlock(id, start), 7, 0, []collector.Metric{collector.ReadBytes},
			[]uint64{rows.Bits(float64(i))})
	}
	p.HandOver(wal)
	if _, err := wal.Flush(first + hours); err != nil {
		t.Fatal(err)
	}
	if err := wal.Close(); err != nil {
		t.Fatal(err)
	}

	db = open()
	defer db.Close()
	if n := len(db.head.open); n > maxReplayed {
		t.Errorf("%d blocks are open", n)
	}
	damages := fmt.Sprint(db.Damages())
	if left := hours - maxReplayed; !strings.Contains(damages, fmt.Sprint(left+1)) ||
		!strings.Contains(damages, "1970-01-01") ||
		!strings.Contains(damages, filepath.Base(segmentOf(dir, 2))) {
		t.Errorf("the damage is not named with %d spans: %s", left+1, damages)
	}
	if err := db.Append(context.Background(), one(now+1, 2)); err != nil {
		t.Fatal(err)
	}
	got, err := db.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{"cn1"}, Metric: collector.ReadBytes,
		FromMillis: (now - 60) * 1000, ToMillis: (now + 3600) * 1000})
	if err != nil || len(got) != 1 || len(got[0].Points) != 3 || got[0].Points[0].Value != 1 ||
		got[0].Points[1].Value != 2 ||
		got[0].Points[2].Value != hours-1 {
		t.Errorf("the newest rows are %v, %v", got, err)
	}
}

// TestAMessageOfManyHoursHoldsFewBlocks appends one message whose frames jump between hours: never more blocks are
// open than for others, and every row is there.
func TestAMessageOfManyHoursHoldsFewBlocks(t *testing.T) {
	const spans, start = 100, 1_700_000_400
	db, err := Open(t.TempDir(), Options{SyncInterval: time.Nanosecond,
		Log: slog.New(slog.DiscardHandler)}.WithoutSync())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var frames []collector.Frame
	for i := range 10 * spans {
		at := int64(start + i%spans*3600 + i/spans)
		frames = append(frames, collector.Frame{Node: "cn1", Role: topology.Compute, TimeMillis: at * 1000,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: float64(at)}}})
	}
	if err := db.Append(context.Background(), frames); err != nil {
		t.Fatal(err)
	}
	db.head.mu.Lock() // blocks are sealed meanwhile
	open, next := len(db.head.open), db.head.nextBlock
	db.head.mu.Unlock()
	if open > maxOpen+1 {
		t.Errorf("%d blocks are open, at most %d", open, maxOpen+1)
	}
	if next > spans {
		t.Errorf("%d blocks were opened for %d spans", next, spans)
	}
	got, err := db.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{"cn1"}, Metric: collector.ReadBytes,
		FromMillis: 0, ToMillis: (start + spans*3600) * 1000})
	if err != nil || len(got) != 1 || len(got[0].Points) != 10*spans {
		t.Fatalf("%d series, %v", len(got), err)
	}
	for _, p := range got[0].Points {
		if p.Value != float64(p.TimeMillis/1000) {
			t.Fatalf("at %d: %v", p.TimeMillis/1000, p.Value)
		}
	}
}
