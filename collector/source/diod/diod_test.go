package diod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/sourcetest"
	"fairway/collector"
)

// line writes a line of tpools; ops by name, everything else 0.
func line(tree string, reqs, fids, rbytes, wbytes int, ops map[string]int) string {
	n := make([]int, numbers)
	n[atReqs], n[atFids], n[atReadBytes], n[atWriteBytes] = reqs, fids, rbytes, wbytes
	for name, v := range ops {
		i := slices.Index(opNames[:], name)
		if i < 0 {
			panic(name)
		}
		n[atOps+i] = v
	}
	return tree + " " + strings.Trim(fmt.Sprint(n), "[]") + " \n"
}

// fixture is a tree served as a control tree; anchors answer at once.
type fixture struct{ fsys fs.FS }

func (f fixture) ReadFile(_ context.Context, name string, buf []byte) ([]byte, error) {
	b, err := fs.ReadFile(f.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return buf[:0], syscall.ENOENT
	}
	return append(buf[:0], b...), err
}
func (f fixture) Wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Second / queueHz):
		return true
	}
}
func (f fixture) Look() ([]byte, bool, error) {
	b, err := fs.ReadFile(f.fsys, "tpools")
	return b, err == nil, err
}
func (f fixture) Attach(context.Context, string) (anchor, error)     { return f, nil }
func (f fixture) TimeGetAttr(context.Context) (time.Duration, error) { return time.Millisecond, nil }
func (f fixture) Clunk(context.Context) error                        { return nil }
func (f fixture) Close() error                                       { return nil }

func over(fsys fs.FS) collector.Source {
	return newSource(Options{Addr: "fwd1:564", Node: "fwd1"},
		func(context.Context) (control, error) { return fixture{fsys}, nil })
}

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func trees(at int) fstest.MapFS {
	ops := func(n int) map[string]int {
		return map[string]int{"read": n, "write": 2 * n, "getattr": n, "walk": n, "clunk": n, "version": 3, "attach": 2}
	}
	return fstest.MapFS{
		"tpools": file(line("default", 1, 3, 99*at, 0, ops(7*at)) +
			line("/pfs/with space", 4, 9, 1000*at, 500*at, ops(10*at)) +
			line("/pfs/jobs/1001", 2, 3, 10*at, 20*at, ops(at))),
		"connections": file("cn1.site.example 12\ncn2 4\ncn2 8\nlocalhost 2\nfwd1 1\n10.0.0.7 3\n"),
		"exports":     file("/pfs - - -\nctl - - -\n"),
	}
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, sourcetest.Suite{
		New: over, First: trees(1), Second: trees(3), Tolerated: []string{"exports"},
		Want: []collector.Metric{
			collector.ReadBytes, collector.WriteBytes, collector.ReadOps, collector.WriteOps, collector.MetaOps,
			collector.QueueLen, collector.InFlight, collector.ServerTime, collector.MetaWait, collector.Connections,
			collector.OpenHandles,
		},
	})
}

// testdata/tpools was written by hand in the shape of diod 1.0.24's.
func TestParseTpools(t *testing.T) {
	text, err := os.ReadFile("testdata/tpools")
	if err != nil {
		t.Fatal(err)
	}
	pools, err := parseTpools(nil, text, names{})
	if err != nil || len(pools) != 3 {
		t.Fatalf("%d pools, %v", len(pools), err)
	}
	p := pools[1]
	want := [counters]uint64{readBytes: 4096000, writeBytes: 8192000, readOps: 1000, writeOps: 2000,
		metaOps: 1 + 5 + 2 + 40 + 3 + 7 + 4 + 60 + 1, allOps: 0}
	want[allOps] = want[readOps] + want[writeOps] + want[metaOps] + 2 + 55
	if p.tree != "/scratch" || p.queued != 17 || p.fids != 21 || p.counts != want {
		t.Errorf("got %+v\nwant %v", p, want)
	}
	if pools[2].tree != "/scratch/jobs/1001" {
		t.Errorf("tree %q", pools[2].tree)
	}
}

func TestLinesThatAreNotRightAreNamedAndTheRestIsKept(t *testing.T) {
	good := line("/pfs", 3, 1, 5, 6, nil)
	for text, want := range map[string]string{
		"/pfs 4 9\n" + good:                               `tpools line 1 ("/pfs 4 9"): 3 fields, want 55`,
		good + strings.Replace(good, " 3 ", " x ", 1):     `line 2 ("/pfs x `,
		good + strings.Replace(good, " 3 ", " -3 ", 1):    `field 2 is "-3", want a number`,
		good + "99999999999999999999 " + good[len("/p"):]: "",
		good + "\x00\xff\n":                               "tpools line 2",
	} {
		pools, err := parseTpools(nil, []byte(text), names{})
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
		if len(pools) == 0 || pools[0].tree != "/pfs" || pools[0].queued != 3 {
			t.Errorf("%q: the good line was lost: %+v", text, pools)
		}
	}
}

// TestThreeFieldLine feeds the whole source a control file with a line of 3 fields: an error that
// names it, no totals that would miss a tree, and everything else as before.
func TestThreeFieldLine(t *testing.T) {
	m := trees(1)
	m["tpools"] = file(string(m["tpools"].Data) + "/other 4 9\n")
	s := over(m)
	defer s.Close()
	for range 2 {
		time.Sleep(300 * time.Millisecond)
		var r collector.Reading
		err := s.Read(t.Context(), &r)
		if err == nil || !strings.Contains(err.Error(), `diod fwd1:564: tpools line 4 ("/other 4 9"): 3 fields`) {
			t.Errorf("error %v", err)
		}
		if len(r.Routes) != 3 || !r.RoutesComplete {
			t.Errorf("routes %+v", r.Routes)
		}
		for _, x := range r.Samples {
			if x.Metric == collector.ReadBytes || x.Metric == collector.ServerTime {
				t.Errorf("%v is %v although a tree is missing from it", x.Metric, x.Value)
			}
		}
	}
}

// Behind a queue every connection is the queue's: neither routes nor connections are diod's to report.
func TestBehindAQueue(t *testing.T) {
	s := newSource(Options{Addr: "fwd1:564", Node: "fwd1", Behind: true},
		func(context.Context) (control, error) { return fixture{trees(1)}, nil })
	defer s.Close()
	var r collector.Reading
	if err := s.Read(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	_, reported := collector.SampleOf(r.Samples, collector.Connections)
	if reported || len(r.Routes) != 0 || r.RoutesComplete {
		t.Errorf("routes %v, connections reported: %v", r.Routes, reported)
	}
}

// TestBacklogIsWhatNoWorkerIsFreeFor: each tree has its own workers.
func TestBacklogIsWhatNoWorkerIsFreeFor(t *testing.T) {
	for workers, want := range map[int]float64{1: 3 + 1, 3: 1, 4: 0, 0: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := newSource(Options{Addr: "fwd1:564", Node: "fwd1", Workers: workers},
				func(context.Context) (control, error) { return fixture{trees(1)}, nil })
			defer s.Close()
			var r collector.Reading
			for range 2 {
				r = collector.Reading{}
				if err := s.Read(t.Context(), &r); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			if got, ok := collector.SampleOf(r.Samples, collector.QueueLen); !ok || got != want {
				t.Errorf("%d workers: backlog %v (%v), want %v", workers, got, ok, want)
			}
		})
	}
}

func TestParseConnections(t *testing.T) {
	var got []string
	err := parseConnections([]byte("cn1.site.example 12\n\n10.0.0.7 3\ncn9\n cn2  4 \ncn3 x\n"),
		func(h []byte) { got = append(got, string(h)) })
	if want := []string{"cn1", "10.0.0.7", "cn2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := `connections line 4 ("cn9")`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestJobOf(t *testing.T) {
	for tree, want := range map[string]string{"/pfs/jobs/1001": "1001", "/jobs/88_4": "88_4", "/pfs/jobs": "",
		"/pfs/jobs/1/sub": "", "/pfs/myjobs/1": "", "": ""} {
		if got, ok := jobOf(tree); string(got) != want || ok != (want != "") {
			t.Errorf("jobOf(%q) = %q, %v", tree, got, ok)
		}
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	text := trees(2)["tpools"].Data
	known := names{}
	pools, _ := parseTpools(nil, text, known)
	if n := testing.AllocsPerRun(50, func() { pools, _ = parseTpools(pools[:0], text, known) }); n > 0 {
		t.Errorf("%v allocations per tpools", n)
	}
	sum := uint64(0)
	if n := testing.AllocsPerRun(50, func() { queueOf(text, func(_ []byte, q uint64) { sum += q }) }); n > 0 {
		t.Errorf("%v allocations per queue sample", n)
	}
	sum = 0
	if queueOf(text, func(_ []byte, q uint64) { sum += q }); sum != 6 {
		t.Errorf("queue %d, want 4+2", sum)
	}
}

func FuzzTpools(f *testing.F) {
	f.Add(trees(1)["tpools"].Data)
	f.Add([]byte("/pfs 4 9\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		pools, err := parseTpools(nil, b, names{})
		if err == nil && len(pools) > 0 {
			sum, want := uint64(0), uint64(0)
			queueOf(b, func(_ []byte, q uint64) { sum += q })
			for _, p := range pools {
				if p.tree != ownPool {
					want += p.queued
				}
			}
			if sum != want {
				t.Errorf("the sampler sees %d, the snapshot %d", sum, want)
			}
		}
		_ = parseConnections(b, func([]byte) {})
		parseExports(b)
	})
}
