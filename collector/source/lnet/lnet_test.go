package lnet

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

func tree(stats, peers string) fstest.MapFS {
	return fstest.MapFS{"sys/kernel/debug/lnet/stats": {Data: []byte(stats)},
		"sys/kernel/debug/lnet/peers": {Data: []byte(peers)}}
}

const peers = "nid                      refs state  last   max   rtr   min    tx   min queue\n10.0.0.1@o2ib 1 NA -1 " +
	"8 8 8 -3 -20 99\n10.0.0.2@o2ib 1 up -1 8 8 8 5 1 0\n"

func TestRates(t *testing.T) {
	fsys := tree("0 28 4294967295 1 1 0 2 100 200 1000 0", peers)
	s := New(fsys)
	var r collector.Reading
	for i, line := range []string{"0 28 4294967295 1 1 0 2 100 200 1000 0", "0 28 4 5 9 0 3 150 400 3000 7"} {
		fsys["sys/kernel/debug/lnet/stats"] = &fstest.MapFile{Data: []byte(line)}
		r = collector.Reading{Now: time.Unix(int64(50+i), 0)}
		if err := s.Read(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	f := collector.Frame{Samples: r.Samples}
	for m, want := range map[collector.Metric]float64{collector.LinkRxBytes: 2200, collector.LinkTxBytes: 2050,
		collector.Errors: 5 + 1, collector.QueueLen: 3} {
		if v, ok := f.Value(m); !ok || v != want {
			t.Errorf("%v = %v (%v), want %v", m, v, ok, want)
		}
	}
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{
		New:    func(fsys fs.FS) collector.Source { return New(fsys) },
		First:  tree("0 28 10 10 10 10 10 100 200 1000 0", peers),
		Second: tree("0 28 11 50 90 10 13 150 400 3000 7", peers),
		Want:   []collector.Metric{collector.LinkRxBytes, collector.LinkTxBytes, collector.Errors},
	})
}

func TestBadInputIsNamed(t *testing.T) {
	if _, err := ParseStats([]byte("1 2 3")); err == nil || !strings.Contains(err.Error(), "3 numbers") {
		t.Error(err)
	}
	p, err := ParsePeers([]byte(peers + "half a line\n"))
	if len(p) != 2 || err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("%v, %v", p, err)
	}
}

// TestStats reads the line that two generations of Lustre have, and those of real systems beside the repository.
func TestStats(t *testing.T) {
	lines := map[string]uint64{"0 28 0 101 102 0 0 2120 5302 0 0\n": 0, "0 28 5 101 102 77 0 2120 5302 139 3\n": 139}
	for dir, routed := range map[string]uint64{"hpe_2.10": 0, "llnl_lmt/1.8.3": 1391108595264} {
		b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "lustre", dir, "proc/sys/lnet/stats"))
		if err == nil {
			lines[string(b)] = routed
		}
	}
	for line, routed := range lines {
		if st, err := ParseStats([]byte(line)); err != nil || st.RoutedBytes != routed {
			t.Errorf("%q: %+v, %v", line, st, err)
		}
	}
}

func FuzzPeers(f *testing.F) {
	f.Add([]byte(peers))
	f.Fuzz(func(_ *testing.T, b []byte) { ParsePeers(b); ParseStats(b) })
}
