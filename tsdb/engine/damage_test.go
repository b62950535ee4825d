package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
)

const damageStart = 1_700_000_400 // a multiple of 1200

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// truth is the value that the test stores hold at a second.
func truth(node int, m collector.Metric, sec int64) float64 {
	x := uint64(node*31+int(m)*7) + uint64(sec)*2654435761
	if node%5 == 0 {
		return float64(node % 2) // constant
	}
	if m == collector.MetaWait {
		return float64(x%977) / 1e6
	}
	return float64(x % 1000 * 4096)
}

var damageMetrics = []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.MetaWait}

func damageNode(i int) topology.NodeID { return topology.NodeID(fmt.Sprintf("n%03d", i)) }

// fillStore makes a store of 70 nodes and five minutes and seals it.
func fillStore(t *testing.T, dir string) {
	t.Helper()
	db, err := engine.Open(dir, engine.Options{SyncInterval: time.Nanosecond, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	for sec := range int64(300) {
		frames := make([]collector.Frame, 70)
		for i := range frames {
			frames[i] = collector.Frame{Node: damageNode(i), TimeMillis: (damageStart + sec) * 1000}
			for _, m := range damageMetrics {
				frames[i].Samples = append(frames[i].Samples, collector.Sample{Metric: m, Value: truth(i, m, sec)})
			}
		}
		if err := db.Append(context.Background(), frames); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Flush(context.Background()), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// missing reads everything and returns how many values are gone; a wrong one fails the test.
func missing(t *testing.T, db *engine.DB) (gone int) {
	t.Helper()
	var nodes []topology.NodeID
	for i := range 70 {
		nodes = append(nodes, damageNode(i))
	}
	for _, m := range damageMetrics {
		out, err := db.Select(context.Background(), tsdb.Query{Nodes: nodes, Metric: m, FromMillis: damageStart * 1000,
			ToMillis: (damageStart + 300) * 1000})
		if err != nil {
			t.Fatal(err)
		}
		gone += 70 * 300
		for _, s := range out {
			var i int
			fmt.Sscanf(string(s.Node), "n%d", &i)
			for _, p := range s.Points {
				gone--
				if want := truth(i, m, p.TimeMillis/1000-damageStart); p.Value != want {
					t.Fatalf("%s %s at %d: got %v, want %v", s.Node, m, p.TimeMillis, p.Value, want)
				}
			}
		}
	}
	return gone
}

func onlyBlockFile(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "blocks", "*.blk"))
	if err != nil || len(list) != 1 {
		t.Fatalf("block files: %v %v", list, err)
	}
	return list[0]
}

// openWith opens the store after a file of it was given other content.
func openWith(t *testing.T, dir, path string, content []byte) *engine.DB {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := engine.Open(dir, engine.Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestDamageCostsWhatItHitsAndIsReported changes one byte at a time, all through a block file.
func TestDamageCostsWhatItHitsAndIsReported(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	path := onlyBlockFile(t, dir)
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	columns := 0
	for at := 0; at < len(intact); at += 1 + len(intact)/150 {
		bad := append([]byte(nil), intact...)
		bad[at] ^= 0x55
		db := openWith(t, dir, path, bad)
		gone := missing(t, db)
		if gone > 0 && gone <= 240 {
			columns++
		}
		if gone > 0 && len(db.Damages()) == 0 {
			t.Errorf("byte %d: %d values are gone and nothing is reported", at, gone)
		}
		db.Close()
	}
	if columns < 50 {
		t.Errorf("only %d of about 150 changed bytes cost no more than a column and the one predicted from it", columns)
	}
}

// TestDamageUnderLateRowsCostsWhatItHits changes one byte at a time of a sealed block while the log has a late row of
// its seconds and nothing of the block itself, which is not dropped because the log has a row.
func TestDamageUnderLateRowsCostsWhatItHits(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	db, err := engine.Open(dir, engine.Options{SyncInterval: time.Nanosecond, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	late := collector.Frame{Node: "late", TimeMillis: (damageStart + 250) * 1000,
		Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 1}}}
	if err := errors.Join(db.Append(t.Context(), []collector.Frame{late}), db.Close()); err != nil {
		t.Fatal(err)
	}
	path := onlyBlockFile(t, dir)
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hit := 0
	for at := len(intact) - len(intact)/4; at < len(intact); at += 1 + len(intact)/120 {
		bad := append([]byte(nil), intact...)
		bad[at] ^= 0x55
		db := openWith(t, dir, path, bad)
		gone := missing(t, db)
		if gone >= 70*4*60 {
			t.Errorf("byte %d: %d values are gone, the whole block", at, gone)
		}
		if gone > 0 && gone <= 240 {
			hit++
		}
		if gone > 0 && len(db.Damages()) == 0 {
			t.Errorf("byte %d: %d values are gone and nothing is reported", at, gone)
		}
		out, err := db.Select(t.Context(), tsdb.Query{Nodes: []topology.NodeID{"late"}, Metric: collector.ReadBytes,
			FromMillis: damageStart * 1000, ToMillis: (damageStart + 300) * 1000})
		if err != nil || len(out) != 1 || len(out[0].Points) != 1 {
			t.Errorf("byte %d: the late row is not there: %v %v", at, out, err)
		}
		db.Close()
	}
	if hit < 10 {
		t.Errorf("only %d changed bytes cost no more than a column and the one predicted from it", hit)
	}
}

// TestALostPageIsReported zeroes a few bytes at every place of the first block's header and first directory, as a
// torn write does: a directory of zeros says that no node has rows.
func TestALostPageIsReported(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	path := onlyBlockFile(t, dir)
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 12; at < 180; at += 4 {
		bad := append([]byte(nil), intact...)
		clear(bad[at : at+12])
		db := openWith(t, dir, path, bad)
		if gone := missing(t, db); gone > 0 && len(db.Damages()) == 0 {
			t.Errorf("byte %d: %d values are gone and nothing is reported", at, gone)
		}
		db.Close()
	}
}

// TestADamagedVersionIsDamage changes a block's version without its checksum: the block is lost and reported, and the
// rest of the file is read.
func TestADamagedVersionIsDamage(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	path := onlyBlockFile(t, dir)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[12+4] |= 0x40
	db := openWith(t, dir, path, data)
	defer db.Close()
	if gone := missing(t, db); gone != 70*4*120 || len(db.Damages()) == 0 {
		t.Errorf("%d values are gone, want those of one block: %v", gone, db.Damages())
	}
}

func TestCheckFindsDamageAndRepairSalvagesTheRest(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	rep, err := engine.Check(dir, false)
	if err != nil || len(rep.Damages) > 0 || rep.Nodes != 70 || rep.Blocks != 3 || rep.Columns != 70*4*3 {
		t.Fatalf("an intact store: %+v %v", rep, err)
	}
	path := onlyBlockFile(t, dir)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{len(data) / 4, len(data) / 2} {
		data[at] ^= 1
	}
	if err := os.WriteFile(path, data[:len(data)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	if rep, err = engine.Check(dir, true); err != nil || len(rep.Damages) == 0 || len(rep.Repaired) != 1 {
		t.Fatalf("a damaged store: %+v %v", rep, err)
	}
	if rep, err = engine.Check(dir, false); err != nil || len(rep.Damages) > 0 {
		t.Fatalf("after the repair: %+v %v", rep, err)
	}
	db, err := engine.Open(dir, engine.Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if gone := missing(t, db); gone == 0 || gone > 70*4*60+4*120*4 {
		t.Errorf("%d values are gone; the cut block has %d", gone, 70*4*60)
	}
	if d := db.Damages(); len(d) > 0 {
		t.Errorf("after the repair: %v", d)
	}
}

func TestBackupIsAStoreOfItsOwn(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	fillStore(t, dir)
	db, err := engine.Open(dir, engine.Options{SyncInterval: time.Nanosecond, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	late := []collector.Frame{{Node: "late", TimeMillis: damageStart * 1000,
		Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 7}}}}
	if err := errors.Join(db.Append(context.Background(), late),
		engine.Backup(context.Background(), dir, copied)); err != nil {
		t.Fatal(err)
	}
	if err := engine.Backup(context.Background(), dir, copied); err == nil {
		t.Error("a backup over another one was made")
	}
	if rep, err := engine.Check(copied, false); err != nil || len(rep.Damages) > 0 || rep.LogRecords == 0 {
		t.Fatalf("the copy: %+v %v", rep, err)
	}
	other, err := engine.Open(copied, engine.Options{SyncInterval: time.Nanosecond, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if gone := missing(t, other); gone != 0 {
		t.Errorf("%d values are missing in the copy", gone)
	}
	late[0].Samples[0].Value = 8 // rows of a span that the copy has sealed survive there too
	if err := errors.Join(other.Append(context.Background(), late), other.Close()); err != nil {
		t.Fatal(err)
	}
	if other, err = engine.Open(copied, engine.Options{Log: quiet()}); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	out, err := other.Select(context.Background(),
		tsdb.Query{Nodes: []topology.NodeID{"late"}, Metric: collector.ReadBytes, ToMillis: 1 << 50})
	if err != nil || len(out) != 1 || out[0].Points[0].Value != 8 {
		t.Errorf("after reopening the copy: %v %v", out, err)
	}
}

// A file of a newer version, or of one that no release wrote, is refused by name and stays as it is.
func TestAnotherFormatIsRefusedByName(t *testing.T) {
	for _, c := range []struct {
		name, glob string
		version    int64 // its offset
		crcFrom    int64 // the header's checksum is over bytes from here
		crcAt      int64
	}{
		{"block file", "blocks/*.blk", 4, 0, 8},
		{"dictionary", "nodes", 4, -1, 0},
		{"log segment", "wal/*.log", 4, 0, 24},
	} {
		for version, says := range map[uint16]string{9: "written by a newer version", 0: "fairwayd v0.2.0 reads it"} {
			if version == 0 && c.name == "block file" {
				continue // it has one version: an older one is damage, and costs none of its blocks
			}
			t.Run(fmt.Sprint(c.name, version), func(t *testing.T) {
				dir := t.TempDir()
				fillStore(t, dir)
				list, _ := filepath.Glob(filepath.Join(dir, c.glob))
				path := list[len(list)-1]
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				binary.LittleEndian.PutUint16(data[c.version:], version)
				if c.crcFrom >= 0 {
					binary.LittleEndian.PutUint32(data[c.crcAt:],
						crc32.Checksum(data[c.crcFrom:c.crcAt], crc32.MakeTable(crc32.Castagnoli)))
				}
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				db, err := engine.Open(dir, engine.Options{Log: quiet()})
				if err == nil {
					_, err = db.Select(context.Background(),
						tsdb.Query{Nodes: []topology.NodeID{"n001"}, Metric: collector.ReadBytes, ToMillis: 1 << 50})
					db.Close()
				}
				if err == nil || !strings.Contains(err.Error(), says) ||
					errors.Is(err, engine.ErrNewerFormat) != (version == 9) ||
					!strings.Contains(err.Error(), fmt.Sprint("version ", version)) ||
					!strings.Contains(err.Error(), filepath.Base(path)) {
					t.Errorf("got %v, want an error that names the file, version %d, and: %s", err, version, says)
				}
				if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
					t.Errorf("%s is not as it was: %v", path, err)
				}
			})
		}
	}
}

// A block of version 1, whose metrics had no sums of their own, is refused and no end of a file to write over.
func TestABlockOfBeforeIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	list, _ := filepath.Glob(filepath.Join(dir, "blocks/*.blk"))
	path := list[len(list)-1]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const fileHeader, fixed, metric = 12, 40, 21
	block := data[fileHeader:]
	binary.LittleEndian.PutUint16(block[4:], 1)
	metrics, limits := int(binary.LittleEndian.Uint16(block[36:])), int(binary.LittleEndian.Uint16(block[38:]))
	head := slices.Clone(block[:fixed+8*limits])
	for m := range metrics {
		head = append(head, block[fixed+8*limits+metric*m:][:metric-4]...)
	}
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)))
	copy(block, head)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := engine.Open(dir, engine.Options{Log: quiet()})
	if err == nil {
		_, err = db.Select(context.Background(),
			tsdb.Query{Nodes: []topology.NodeID{"n001"}, Metric: collector.ReadBytes, ToMillis: 1 << 50})
		db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "version 1, of before v0.1.0") {
		t.Errorf("got %v, want an error that names version 1", err)
	}
}

func TestRetentionByAgeAndBytes(t *testing.T) {
	put := func(opts engine.Options) (seconds int64) {
		dir := t.TempDir()
		opts.SyncInterval, opts.Log = time.Nanosecond, quiet()
		now := time.Unix(damageStart+5*3600, 0)
		opts.Now = func() time.Time { return now }
		db, err := engine.Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for h := range int64(5) {
			for sec := range int64(10) {
				f := collector.Frame{Node: "nA", TimeMillis: (damageStart + h*3600 + sec) * 1000,
					Samples: []collector.Sample{{Metric: collector.MetaWait, Value: float64(sec) / 7}}}
				if err := db.Append(context.Background(), []collector.Frame{f}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := db.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		db.RetainForTest(now)
		return countSeconds(db)
	}
	if n := put(engine.Options{}); n != 50 {
		t.Errorf("without limits: %d seconds, want 50", n)
	}
	if n := put(engine.Options{RetentionAge: 3 * time.Hour}); n != 30 {
		t.Errorf("three hours: %d seconds, want 30", n)
	}
	if n := put(engine.Options{RetentionBytes: 1000}); n >= 50 || n < 10 {
		t.Errorf("1000 bytes: %d seconds, want fewer than 50 and at least the newest hour", n)
	}
}
