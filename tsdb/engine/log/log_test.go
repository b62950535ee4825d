package log

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fairway/collector"
	"fairway/tsdb/engine/disk"
	"fairway/tsdb/engine/rows"
)

// seen returns what a replay of a log shows, an operation a string.
func seen(t *testing.T, l *Log) (ops []string) {
	t.Helper()
	_, err := l.Replay(Target{Nodes: 9, Log: slog.New(slog.DiscardHandler),
		Report:   func(d disk.Damage) { ops = append(ops, d.What) },
		Distrust: func() { ops = append(ops, "distrust") },
		Take: func(r *Record) error {
			for {
				more, err := r.Next()
				if err != nil || !more {
					return err
				}
				switch r.Kind {
				case Context:
					ops = append(ops, fmt.Sprintf("block %d of %d, second %d", r.Block, r.Start, r.Sec))
				case Same:
					ops = append(ops, fmt.Sprintf("%d to %d the same", r.Node, r.End))
				case Row:
					vals := make([]uint64, 2)
					rows.Values(r.Row, vals)
					ops = append(ops, fmt.Sprintf("%d: %v %v", r.Node, math.Float64frombits(vals[0]),
						math.Float64frombits(vals[1])))
				case Named:
					ops = append(ops, fmt.Sprintf("%d: %v %v", r.Node, r.Metrics, math.Float64frombits(r.Values[0])))
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// TestReplay: what was written is replayed, operation by operation, over segments; a record that is gone is reported,
// and a segment goes when its blocks are sealed.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	l := New(disk.OS{}, dir)
	seen(t, l)
	l.Resume(1)
	var p Pending
	p.Begin()
	first, second := rows.NewBlock(1, 1200), rows.NewBlock(2, 1320)
	write := func(b *rows.Block, rotate bool) {
		t.Helper()
		if rotate {
			if err := l.Rotate(); err != nil {
				t.Fatal(err)
			}
		}
		p.Note(b.ID)
		p.Writer.NamedRow(b, 3, 4, []collector.Metric{collector.ReadBytes, collector.MetaWait},
			[]uint64{math.Float64bits(5), math.Float64bits(0.25)})
		var row [rows.MaxBytes + rows.Slack]byte
		p.Writer.Row(b, 4, 4, row[:rows.Put(row[:], []uint64{math.Float64bits(9), math.Float64bits(-0.5)})])
		p.Writer.SameRow(b, 4, 5)
		p.Writer.SameRow(b, 4, 6)
		bytes := p.HandOver(l)
		spare, err := l.Flush(b.ID + 1)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(bytes, spare)
	}
	write(first, false)
	write(first, false)
	write(second, true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ops := func(block, start int) []string {
		return []string{fmt.Sprintf("block %d of %d, second 3", block, start), "4: [read_bytes meta_wait] 5",
			fmt.Sprintf("block %d of %d, second 4", block, start), "4: 9 -0.5", "5 to 7 the same"}
	}
	want := slices.Concat(ops(1, 1200), ops(1, 1200), ops(2, 1320))
	l = New(disk.OS{}, dir)
	if got := seen(t, l); !slices.Equal(got, want) {
		t.Errorf("replayed: %q, want %q", got, want)
	}
	if found, err := Check(dir); err != nil || found.Segments != 2 || found.Records != 3 || len(found.Damages) > 0 {
		t.Errorf("checked: %+v %v", found, err)
	}
	path := filepath.Join(dir, segmentName(1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:2*pageBytes], 0o600); err != nil { // the header and one record
		t.Fatal(err)
	}
	want = slices.Concat(ops(1, 1200), []string{"records 2 to 2 are missing", "distrust"}, ops(2, 1320))
	if got := seen(t, New(disk.OS{}, dir)); !slices.Equal(got, want) {
		t.Errorf("without a record: %q, want %q", got, want)
	}
	if err := l.Forget(func(block uint64) bool { return block == 2 }); err != nil {
		t.Fatal(err)
	}
	if left, err := disk.List(dir, segmentExt); err != nil || !slices.Equal(left, []int64{2}) {
		t.Errorf("segments %v are left, %v", left, err)
	}
}
