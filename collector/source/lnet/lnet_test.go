package lnet

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
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
		collector.Errors: 5 + 1, collector.QueueLen: 3, collector.TxWaiting: 3} {
		if v, ok := f.Value(m); !ok || v != want {
			t.Errorf("%v = %v (%v), want %v", m, v, ok, want)
		}
	}
}

// A router's tree: two pools, one of them starved, a client that waits for a credit and one whose messages wait.
func router(stats, peers string) fstest.MapFS {
	fsys := tree(stats, peers)
	for name, text := range map[string]string{
		"routes": "Routing enabled\nnet      hops prio   state router\n",
		"buffers": "pages count credits     min\n    0   512     500     470\n    1  4096    4096    4000\n" +
			"  256   256     -3     -20\n",
		"nis": "nid                      status alive refs peer  rtr   max    tx   min\n0@lo                     down" +
			"     0    2    0    0     0     0     0\n10.1.0.4@o2ib              up     0    3    8    0   256    -2" +
			"   -9\n"} {
		fsys["sys/kernel/debug/lnet/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{
		New:    func(fsys fs.FS) collector.Source { return New(fsys) },
		First:  router("5 28 10 10 10 10 10 100 200 1000 0", peers),
		Second: router("5 28 11 50 90 110 13 150 400 3000 7", peers),
		Want: []collector.Metric{collector.LinkRxBytes, collector.LinkTxBytes, collector.Errors, collector.RoutedBytes,
			collector.RoutedOps, collector.InFlight, collector.TransitTime, collector.BuffersFreeRatio,
			collector.TxWaiting, collector.QueueLen},
		// Sampled beside the tick: what they do not give is absent.
		Tolerated: []string{"sys/kernel/debug/lnet/buffers", "sys/kernel/debug/lnet/nis"},
	})
}

// changing is a tree that is replaced while it is read.
type changing struct {
	mu    sync.Mutex
	files fstest.MapFS
}

func (c *changing) set(files fstest.MapFS) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = files
}

func (c *changing) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files.Open(name)
}

// A router's gauges are means of what was sampled; its load is what it routes.
func TestRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := &changing{files: router("5 28 0 10 10 10 0 100 200 1000 0", peers)}
		s := New(fsys)
		defer s.Close()
		var r collector.Reading
		for range 2 {
			r = collector.Reading{Now: time.Now()}
			if err := s.Read(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
			fsys.set(router("5 28 0 10 10 1010 0 100 200 51000 0", peers))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		f := collector.Frame{Samples: r.Samples}
		for m, want := range map[collector.Metric]float64{collector.RoutedBytes: 50000, collector.RoutedOps: 1000,
			collector.InFlight: 5, collector.TransitTime: 0.005, collector.BuffersFreeRatio: 0, collector.TxWaiting: 3,
			collector.QueueLen: 3 + 3 + 2} {
			if v, ok := f.Value(m); !ok || math.Abs(v-want) > 1e-9 {
				t.Errorf("%v = %v (%v), want %v", m, v, ok, want)
			}
		}
		if len(r.Targets) != 3 || r.Targets[0].Target != "10.1.0.4@o2ib" || r.Targets[1].Target != "10.0.0.1@o2ib" ||
			r.Targets[1].Samples[0] != (collector.Sample{Metric: collector.InFlight, Value: 11}) {
			t.Errorf("peers %+v", r.Targets)
		}
	})
}

// A node that sends through routers reports what is on its way through each, and that it routes nothing itself.
func TestSender(t *testing.T) {
	fsys := tree("0 28 0 1 1 0 0 100 200 0 0", peers)
	fsys["sys/kernel/debug/lnet/routes"] = &fstest.MapFile{
		Data: []byte("Routing disabled\nnet hops prio state router\n" +
			"tcp     4294967295     0      up 10.0.0.2@o2ib\n")}
	var r collector.Reading
	if err := New(fsys).Read(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Targets) != 1 || r.Targets[0].Target != "10.0.0.2@o2ib" || r.Targets[0].Samples[0].Value != 3 {
		t.Errorf("routers %+v", r.Targets)
	}
}

// A bad line among the peers costs the sum over them, not the others.
func TestABadPeer(t *testing.T) {
	fsys := tree("0 28 0 1 1 0 0 100 200 0 0", peers+"10.0.0.3@o2ib 1 up -1 8 8 8 many 1 0\n")
	fsys["sys/kernel/debug/lnet/routes"] = &fstest.MapFile{
		Data: []byte("Routing disabled\nnet hops prio state router\n" +
			"tcp     4294967295     0      up 10.0.0.2@o2ib\n")}
	var r collector.Reading
	err := New(fsys).Read(t.Context(), &r)
	if err == nil || !strings.Contains(err.Error(), "peers") || len(r.Targets) != 1 {
		t.Errorf("%+v, %v", r.Targets, err)
	}
	f := collector.Frame{Samples: r.Samples}
	if v, ok := f.Value(collector.TxWaiting); ok {
		t.Errorf("%g wait in all, of which one is not known", v)
	}
}

// A table that changed while it was read is read again; one that never holds still costs the peers alone, and says so.
func TestATableThatChanges(t *testing.T) {
	for stale, want := range map[int]bool{0: true, 2: true, 3: false} {
		var r collector.Reading
		left := stale
		err := New(sourcetest.Kernel{FS: tree("0 28 0 1 1 0 2 100 200 0 0", peers), Changes: func(string) bool {
			left--
			return left >= 0
		}}).Read(t.Context(), &r)
		f := collector.Frame{Samples: r.Samples}
		if _, known := f.Value(collector.QueueLen); known != want || want != (err == nil) ||
			!want && !strings.Contains(err.Error(), "changed each time") {
			t.Errorf("%d stale: waiting known %v, %v", stale, known, err)
		}
	}
}

type forRoot struct{ fstest.MapFS }

func (forRoot) ReadFile(name string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestNotRoot(t *testing.T) {
	var r collector.Reading
	if err := New(forRoot{}).Read(t.Context(), &r); err == nil || errors.Is(err, collector.ErrNoData) ||
		!strings.Contains(err.Error(), "as root") {
		t.Error(err)
	}
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
	lines := map[string]uint64{"0 28 0 101 102 0 0 2120 5302 0 0\n": 0,
		"0 28 5 101 102 77 0 2120 5302 139 3 8\n": 139, // a column of a release to come
		"0 28 5 101 102 77 0 2120 5302 139 3\n":   139}
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
	f.Add([]byte("Routing enabled\nnet hops prio state router\ntcp -1 0 up 10.0.0.2@o2ib\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		ParsePeers(b)
		ParseStats(b)
		ParseNIs(b)
		ParseBuffers(b)
		ParseRoutes(b)
	})
}
