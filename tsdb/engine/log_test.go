package engine

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/tsdb/engine/block"
	"fairway/tsdb/engine/log"
	"fairway/tsdb/engine/rows"
)

const logPage = 4096

// FuzzLog opens a store whose log is arbitrary records.
func FuzzLog(f *testing.F) {
	payload := writtenRecord(f)
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
		if err := os.WriteFile(segmentOf(dir, 1), file, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := Open(dir, Options{Log: slog.New(slog.DiscardHandler), fs: unsynced{}})
		if err != nil {
			return
		}
		for _, b := range db.head.open {
			new(block.Sealer).Seal(b.Block, func(int) float64 { return 0 })
			for i := range 3 {
				if n, secs := b.Node(i); n != nil {
					n.There(secs.Newest(), -1, make([]uint64, len(n.Layout.Metrics)))
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

func segmentOf(dir string, number int) string {
	return filepath.Join(dir, "wal", fmt.Sprintf("%010d.log", number))
}

// writtenRecord returns a record's payload as the log writes it.
func writtenRecord(f *testing.F) []byte {
	dir, b := f.TempDir(), rows.NewBlock(1, 1_700_000_400)
	var p log.Pending
	p.Begin()
	p.Writer.NamedRow(b, 0, 1, []collector.Metric{collector.ReadBytes, collector.MetaWait},
		[]uint64{math.Float64bits(5), math.Float64bits(0.25)})
	var row [rows.MaxBytes + rows.Slack]byte
	p.Writer.Row(b, 1, 1, row[:rows.Put(row[:], []uint64{math.Float64bits(9), math.Float64bits(0.25)})])
	p.Writer.SameRow(b, 2, 1)
	l := log.New(unsynced{}, dir)
	p.HandOver(l)
	if err := l.Close(); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "0000000001.log"))
	if err != nil {
		f.Fatal(err)
	}
	record := data[logPage:]
	return record[appendlog.HeadBytes:][:binary.LittleEndian.Uint32(record)]
}

// logOf returns a segment with records of these payloads.
func logOf(payloads ...[]byte) []byte {
	toPage := func(b []byte) []byte { return append(b, make([]byte, -len(b)&(logPage-1))...) }
	head := append([]byte("FWLG"), 3, 0, 0, 0)
	head = binary.LittleEndian.AppendUint64(head, 1)
	head = binary.LittleEndian.AppendUint64(head, 1)
	out := toPage(binary.LittleEndian.AppendUint32(head, appendlog.Sum(head)))
	for i, p := range payloads {
		rec := append(make([]byte, appendlog.HeadBytes), p...)
		appendlog.Seal(rec, uint64(i+1))
		out = append(out, toPage(rec)...)
	}
	return out
}
