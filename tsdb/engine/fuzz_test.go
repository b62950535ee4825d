package engine

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
	"fairway/tsdb/engine/column"
)

// sampleBlock is a small sealed block to start from.
func sampleBlock() []byte {
	b := newOpenBlock(1, 1_700_000_400)
	layouts := layoutSet{all: map[string]*layout{}}
	for node := range 70 {
		metrics := []collector.Metric{collector.ReadOps, collector.ReadBytes, collector.MetaWait}
		n, rows := b.ensure(node, layouts.of(nil, metrics))
		for sec := range 119 + node%2 {
			if node%9 > 0 || sec == 0 {
				var next []uint64
				for _, v := range []float64{float64(sec % 5), float64(sec % 5 * 4096), float64(node*sec) / 7} {
					next = append(next, math.Float64bits(v))
				}
				var row [maxRow + rowSlack]byte
				b.cells.append(&n.rows, sec, row[:putRow(row[:], next)])
			}
			rows.Set(sec)
		}
	}
	return encodeBlock(b, func(int) float64 { return 9000 }, &sealScratch{})
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
				if ok, err := r.column(fr, fr.metrics[i].metric, 1, &c); ok && err == nil &&
					c.Stats.Count > BlockSeconds {
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
	w.reset(nil)
	b := &openBlock{id: 1, start: 1_700_000_400}
	w.namedRow(b, 0, 1, []collector.Metric{collector.ReadBytes, collector.MetaWait},
		[]uint64{math.Float64bits(5), math.Float64bits(0.25)})
	w.row(b, 1, 1, []uint64{math.Float64bits(9), math.Float64bits(0.25)})
	w.sameRow(b, 2, 1)
	w.flush()
	payload := w.buf[recordHead:]
	f.Add(payload, []byte{}, false)
	f.Add(payload[:5], payload, true)
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
		records := [][]byte{first, second}
		if raw { // the second as it is, not as a record
			records = records[:1]
		}
		file := logOf(records...)
		if raw {
			file = append(file, second...)
		}
		if err := os.WriteFile(filepath.Join(dir, "wal", segmentName(1)), file, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(dir, Options{Log: slog.New(slog.DiscardHandler), fs: unsynced{}})
		if err != nil {
			return
		}
		for _, b := range db.head.blocks.view.Load().open {
			encodeBlock(b, func(int) float64 { return 0 }, &sealScratch{})
			for i := range 3 {
				if n, rows := b.node(i); n != nil {
					b.row(n, newestOf(rows), make([]uint64, len(n.layout.metrics)), nil)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// logOf returns a segment with records of these payloads.
func logOf(payloads ...[]byte) []byte {
	l := writeLog{next: 1}
	for _, p := range payloads {
		rec := append(logBuffer(recordHead + len(p))[:recordHead], p...)
		l.add(rec, nil)
	}
	out := logHeader(1, 1)
	for _, rec := range l.unsynced {
		out = append(out, rec...)
	}
	return out
}

// TestRowsAreReadAsWritten: a row of any values is found whole, and cut short it is found to be no row.
func TestRowsAreReadAsWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	values := []func() uint64{
		func() uint64 { return absentBits },
		func() uint64 { return 0 },
		func() uint64 { return math.Float64bits(rng.NormFloat64()) },
		func() uint64 { return math.Float64bits(-float64(rng.IntN(9) + 1)) },
		func() uint64 { return math.Float64bits(float64(rng.Uint64() >> rng.IntN(64))) },
		func() uint64 { return math.Float64bits(1<<53 - float64(rng.IntN(3))) },
	}
	for range 100_000 {
		slots := make([]uint64, rng.IntN(maxColumns+1))
		for i := range slots {
			slots[i] = values[rng.IntN(len(values))]()
		}
		var dst [maxRow + rowSlack]byte
		row := dst[:putRow(dst[:], slots)]
		if size, ok := rowSize(row); !ok || size != len(row) {
			t.Fatalf("%x: size %d %v, want %d", row, size, ok, len(row))
		}
		if cut := rng.IntN(len(row)); len(row) > 1 && cut > 0 {
			if _, ok := rowSize(row[:cut:cut]); ok {
				t.Fatalf("%x cut to %d bytes is a row", row, cut)
			}
		}
		back := make([]uint64, len(slots)+1)
		if rowValues(row, back); !slices.Equal(back[:len(slots)], slots) || back[len(slots)] != absentBits {
			t.Fatalf("%x: got %x, want %x", row, back, slots)
		}
		if slot := rng.IntN(len(slots) + 1); rowValue(row, slot) != back[slot] {
			t.Fatalf("%x: column %d is %x, want %x", row, slot, rowValue(row, slot), back[slot])
		}
	}
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
