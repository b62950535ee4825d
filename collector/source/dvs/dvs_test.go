package dvs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/collector"
	"fairway/collector/sourcetest"
)

const client = "RQ_LOOKUP: 100 0 0 0 0.000 0.000\nRQ_GETATTR: 10 2 0 0 0.000 0.000\n" +
	"RQ_PARALLEL_READ: 50 0 0 0 0.000 0.004\nRQ_READPAGES_RP: 50 0 0 0 0.000 0.000\n" +
	"RQ_PARALLEL_WRITE: 20 1 0 0 0.000 0.000\nread: 7 0 0.000 0.000\n"

func tree(text string) fstest.MapFS {
	return fstest.MapFS{"proc/fs/dvs/mounts/0/stats": {Data: []byte(text)}}
}

var later = strings.NewReplacer("LOOKUP: 100", "LOOKUP: 130", "10 2 0", "15 4 0", "READ: 50", "READ: 90", "20 1 0",
	"30 1 0").Replace(client)

func TestConformance(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{
		New:   func(fsys fs.FS) collector.Source { return New(fsys, false) },
		First: tree(client), Second: tree(later),
		Want: []collector.Metric{collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.Errors},
	})
}

// A client counts what it asked, failed requests too; answers are not counted again.
func TestRates(t *testing.T) {
	fsys := tree(client)
	s := New(fsys, false)
	var r collector.Reading
	for i, text := range []string{client, later} {
		fsys["proc/fs/dvs/mounts/0/stats"] = &fstest.MapFile{Data: []byte(text)}
		r = collector.Reading{Now: time.Unix(int64(50+i), 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	f := collector.Frame{Samples: r.Samples}
	for m, want := range map[collector.Metric]float64{collector.ReadOps: 40, collector.WriteOps: 10,
		collector.MetaOps: 30 + 7, collector.Errors: 2} {
		if v, ok := f.Value(m); !ok || v != want {
			t.Errorf("%v = %v (%v), want %v", m, v, ok, want)
		}
	}
}

// Files of a real system hold the kinds that are known, and a bad line costs itself.
func TestFiles(t *testing.T) {
	name := filepath.Join("..", "..", "..", "shared", "data", "dvs_gpfs", "proc", "fs", "dvs", "mounts", "0", "stats")
	b, err := os.ReadFile(name)
	if err != nil {
		b = []byte(client)
	}
	counts, err := ParseStats(b)
	if err != nil || len(counts) < 5 {
		t.Errorf("%d kinds, %v", len(counts), err)
	}
	got, err := ParseStats([]byte(client + "RQ_OPEN: 1 x 0 0\nRQ_CLOSE: 3 0 0 0 0 0\n"))
	if err == nil || !strings.Contains(err.Error(), "line 7") || len(got) != 6 || got[5].Client[0] != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzStats(f *testing.F) {
	f.Add([]byte(client))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ParseStats(b) })
}
