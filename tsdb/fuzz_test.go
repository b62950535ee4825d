package tsdb

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"fairway/collector"
	"fairway/tsdb/column"
)

// sampleBlock is a small sealed block to start from.
func sampleBlock() []byte {
	b := newOpenBlock(1, 1_700_000_400, 70)
	db := &DB{layouts: map[string]*layout{}, table: &nodeTable{entries: make([]nodeEntry, 70)}}
	db.opts.Now = nil
	for node := range 70 {
		metrics := []collector.Metric{collector.ReadOps, collector.ReadBytes, collector.MetaWait}
		n := b.ensure(node, db.layoutFor(nil, metrics))
		for sec := range 119 + node%2 {
			if node%9 > 0 || sec == 0 {
				var next []uint64
				for _, v := range []float64{float64(sec % 5), float64(sec % 5 * 4096), float64(node*sec) / 7} {
					next = append(next, math.Float64bits(v))
				}
				b.cells.append(&n.changes, sec, appendChanges(nil, 7, n.last, next))
				copy(n.last, next)
			}
			n.addRow(sec)
		}
	}
	return encodeBlock(b, func(int) float64 { return 9000 })
}

// FuzzBlock reads arbitrary bytes as a block file: any answer but a crash, a value outside its own
// figures, or more memory than the file warrants.
func FuzzBlock(f *testing.F) {
	block := append(newFileHeader(), sampleBlock()...)
	f.Add(block)
	f.Add(block[:len(block)-20])
	f.Add(append(block[:len(block):len(block)], sampleBlock()...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frames, _, _, err := walkFrames(bytes.NewReader(data), "fuzz", int64(len(data)))
		if err != nil {
			return
		}
		for _, fr := range frames {
			if fr.chunks > 4 { // chunks that the file has no room for cost nothing but time
				fr.chunks = 4
			}
			decodeFrame(fr)
			var r frameReader
			var c column.Column
			for i := range fr.metrics {
				if ok, err := r.column(fr, fr.metrics[i].metric, 1, &c); ok && err == nil && c.Stats.Count > BlockSeconds {
					t.Errorf("%d seconds", c.Stats.Count)
				}
			}
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20+uint64(len(data))*200 {
			t.Errorf("%d bytes made it allocate %d", len(data), grown)
		}
	})
}

// FuzzLog opens a store whose log is arbitrary records.
func FuzzLog(f *testing.F) {
	var w recordWriter
	b := &openBlock{id: 1, start: 1_700_000_400}
	w.fullRow(b, 0, 1, []collector.Metric{collector.ReadBytes, collector.MetaWait}, []uint64{math.Float64bits(5), math.Float64bits(0.25)})
	w.deltaRow(b, 1, 1, appendChanges(nil, 1, []uint64{math.Float64bits(5)}, []uint64{math.Float64bits(9)}))
	w.sameRow(b, 2, 1)
	w.flush()
	f.Add(w.buf, []byte{}, false)
	f.Add(w.buf[:5], w.buf, true)
	f.Fuzz(func(t *testing.T, first, second []byte, raw bool) {
		dir := t.TempDir()
		for _, d := range []string{"wal", blocksDir} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := saveNodes(unsynced{}, dir, []nodeEntry{{name: "a"}, {name: "b"}, {name: "c"}}); err != nil {
			t.Fatal(err)
		}
		l := writeLog{next: 1}
		file := logHeader(1, 1)
		l.add(first, nil)
		l.add(second, nil)
		for _, rec := range l.unsynced {
			file = append(file, rec...)
		}
		if raw { // the second as it is, not as a record
			file = append(append(logHeader(1, 1), l.unsynced[0]...), second...)
		}
		if err := os.WriteFile(filepath.Join(dir, "wal", segmentName(1)), file, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(dir, Options{Log: slog.New(slog.DiscardHandler), fs: unsynced{}})
		if err != nil {
			return
		}
		for _, b := range db.view.Load().open {
			encodeBlock(b, func(int) float64 { return 0 })
			for i := range 3 {
				n := b.node(i)
				if n == nil {
					continue
				}
				row := make([]uint64, len(n.last))
				if n.row(n.newest(), row, nil); !slices.Equal(row, n.last) {
					t.Errorf("node %d: its stream ends with %x, its newest row is %x", i, row, n.last)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestUvarintIsTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		b := binary.AppendUvarint(nil, rng.Uint64()>>rng.IntN(64))
		for range rng.IntN(9) {
			b = append(b, byte(rng.Uint32()))
		}
		if rng.IntN(10) == 0 {
			b = b[:rng.IntN(len(b))]
		}
		u, n := uvarint(b)
		if wantU, wantN := binary.Uvarint(b); u != wantU || n != wantN {
			t.Fatalf("%x: %d of %d bytes, want %d of %d", b, u, n, wantU, wantN)
		}
	}
}
