// Package sourcetest is the conformance suite that every live source passes: what is absent stays
// absent, nothing is ever negative, bad input is named, and a source ends when it is closed.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// Suite says how to make a source and what it finds on disk. The trees stand for anything that is
// read as named texts; a source that reads over a network brings a stand-in that serves the tree.
type Suite struct {
	// New makes a fresh source over a tree whose files may change between two ticks.
	New func(fsys fs.FS) collector.Source
	// First and Second are the tree at two ticks one second apart; every counter has grown.
	First, Second fstest.MapFS
	// Want are the metrics that the second tick must report.
	Want []collector.Metric
	// Tolerated lists the files whose garbage is rightly ignored (free text, optional lists).
	Tolerated []string
	// NoCounters says that nothing is counted which could begin anew.
	NoCounters bool
}

// tree is a file system whose content can be swapped between ticks.
type tree struct{ now atomic.Pointer[fstest.MapFS] }

func newTree(m fstest.MapFS) *tree {
	t := &tree{}
	t.now.Store(&m)
	return t
}

func (t *tree) set(m fstest.MapFS) { t.now.Store(&m) }

func (t *tree) Open(name string) (fs.File, error) { return t.now.Load().Open(name) }

// ReadDir and ReadFile keep the fast paths of the map.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) { return t.now.Load().ReadDir(name) }
func (t *tree) ReadFile(name string) ([]byte, error)       { return t.now.Load().ReadFile(name) }

// Run runs the suite, each check in a bubble of fake time that a leaked goroutine cannot leave.
func Run(t *testing.T, s Suite) {
	for _, c := range []struct {
		name  string
		check func(*testing.T, Suite)
	}{
		{"reports what it says it reports", reports},
		{"a missing subject is ErrNoData", missing},
		{"a reset gives no negative rate and is counted", reset},
		{"a gap is not smeared", gap},
		{"what is absent stays absent", absent},
		{"garbage is named and does not stop it", garbage},
		{"a file that cannot be read costs its own values", unreadable},
		{"whatever a file holds, it goes on", attacked},
		{"honours its context", contextual},
		{"Close twice, at once and during Read", closing},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.check(t, s) })
		})
	}
}

// read does one tick; a panic is a failure of the suite, not its end.
func read(t *testing.T, src collector.Source) (r collector.Reading, err error) {
	t.Helper()
	r.Now = time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			t.Errorf("Read panicked: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	err = src.Read(ctx, &r)
	sane(t, r)
	return r, err
}

// sane checks what is true of every reading.
func sane(t *testing.T, r collector.Reading) {
	t.Helper()
	check := func(where string, ofJob bool, ss []collector.Sample) {
		seen := map[collector.Metric]bool{}
		for _, s := range ss {
			switch {
			case !s.Metric.Known() && !(ofJob && s.Metric.OfJobs()):
				t.Errorf("%s: metric number %d is not one", where, s.Metric)
				continue
			case s.Value < 0 || math.IsNaN(s.Value) || math.IsInf(s.Value, 0):
				t.Errorf("%s: %v = %v", where, s.Metric, s.Value)
			case seen[s.Metric]:
				t.Errorf("%s: %v is listed twice", where, s.Metric)
			}
			seen[s.Metric] = true
		}
	}
	check("samples", false, r.Samples)
	for _, j := range r.Jobs {
		check("job "+string(j.Job), true, j.Samples)
	}
	for _, one := range r.Targets {
		check("target "+string(one.Target), false, one.Samples)
	}
}

func metrics(r collector.Reading) []collector.Metric {
	var out []collector.Metric
	for _, s := range r.Samples {
		out = append(out, s.Metric)
	}
	return out
}

// twoTicks reads the first tree, waits a second and reads the second.
func twoTicks(t *testing.T, src collector.Source, tr *tree, second fstest.MapFS) (collector.Reading, error) {
	t.Helper()
	if _, err := read(t, src); err != nil && !errors.Is(err, collector.ErrNoData) {
		t.Logf("first tick: %v", err)
	}
	time.Sleep(time.Second)
	tr.set(second)
	return read(t, src)
}

func closeIt(t *testing.T, src collector.Source) {
	t.Helper()
	if err := src.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// over makes a source over a tree, which is closed with the test.
func (s Suite) over(t *testing.T, m fstest.MapFS) (*tree, collector.Source) {
	t.Helper()
	tr := newTree(m)
	src := s.New(tr)
	t.Cleanup(func() { closeIt(t, src) })
	return tr, src
}

// full is what the second tick reports of whole trees.
func (s Suite) full(t *testing.T) collector.Reading {
	t.Helper()
	tr, src := s.over(t, s.First)
	r, err := twoTicks(t, src, tr, s.Second)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reports(t *testing.T, s Suite) {
	tr, src := s.over(t, s.First)
	if src.Name() == "" {
		t.Error("the source has no name")
	}
	r, err := twoTicks(t, src, tr, s.Second)
	if err != nil {
		t.Fatal(err)
	}
	got := metrics(r)
	for _, m := range s.Want {
		if !slices.Contains(got, m) {
			t.Errorf("%v is not reported; reported: %v", m, names(got))
		}
	}
	if r.Resets != 0 {
		t.Errorf("%d resets in a tree whose counters grew", r.Resets)
	}
}

func names(ms []collector.Metric) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.String())
	}
	return out
}

func missing(t *testing.T, s Suite) {
	_, src := s.over(t, fstest.MapFS{})
	for range 2 {
		r, err := read(t, src)
		if !errors.Is(err, collector.ErrNoData) {
			t.Errorf("an empty tree: %v, want ErrNoData", err)
		}
		if len(r.Samples) > 0 {
			t.Errorf("an empty tree gave %v", r.Samples)
		}
		time.Sleep(time.Second)
	}
}

func reset(t *testing.T, s Suite) {
	if s.NoCounters {
		return
	}
	tr, src := s.over(t, s.Second)
	r, err := twoTicks(t, src, tr, s.First)
	if err != nil {
		t.Fatal(err)
	}
	if r.Resets == 0 {
		t.Error("the counters went backwards and no reset was counted")
	}
}

func gap(t *testing.T, s Suite) {
	tr, src := s.over(t, s.First)
	fresh, _ := read(t, src)
	time.Sleep(time.Minute)
	tr.set(s.Second)
	r, err := read(t, src)
	if err != nil {
		t.Fatal(err)
	}
	known := metrics(fresh) // gauges are known at once, rates are not
	for _, m := range metrics(r) {
		if !slices.Contains(known, m) {
			t.Errorf("%v was reported over a gap of a minute", m)
		}
	}
}

func absent(t *testing.T, s Suite) {
	full := s.full(t)
	for file := range s.First {
		tr, src := s.over(t, without(s.First, file))
		r, _ := twoTicks(t, src, tr, without(s.Second, file))
		for _, m := range metrics(r) {
			if !slices.Contains(metrics(full), m) {
				t.Errorf("without %s: %v appeared from nothing", file, m)
			}
		}
	}
}

func without(m fstest.MapFS, file string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, f := range m {
		if name != file {
			out[name] = f
		}
	}
	return out
}

func garbage(t *testing.T, s Suite) {
	for file := range s.First {
		if slices.Contains(s.Tolerated, file) {
			continue
		}
		for kind, bytes := range map[string]string{"binary": "\x00\xff garbage \x01\n",
			"cut": cut(s.First[file].Data)} {
			bad := without(s.First, file)
			bad[file] = &fstest.MapFile{Data: []byte(bytes)}
			tr, src := s.over(t, bad)
			_, err := read(t, src)
			if kind == "binary" && (err == nil || !strings.Contains(err.Error(), path.Base(file))) {
				t.Errorf("%s of garbage: error %v, want one that names the file", file, err)
			}
			tr.set(s.First) // and it recovers
			time.Sleep(time.Second)
			if _, err := read(t, src); err != nil {
				t.Errorf("after %s garbage in %s was mended: %v", kind, file, err)
			}
		}
	}
}

// unreadable tries each file that is there and cannot be read: a disk's error, a table that changed each time while it
// was read, a right that is missing. Nothing appears that is not known without it, and once it can be read again the
// source goes on.
func unreadable(t *testing.T, s Suite) {
	full := s.full(t)
	for file := range s.First {
		for _, reason := range []error{syscall.EIO, syscall.ESTALE, fs.ErrPermission} {
			tr := newTree(s.First)
			refusing := &refusing{tree: tr, name: file, reason: reason}
			src := s.New(refusing)
			if _, err := read(t, src); err != nil {
				t.Errorf("before %s cannot be read: %v", file, err)
			}
			time.Sleep(time.Second)
			refusing.now.Store(true)
			tr.set(s.Second)
			r, err := read(t, src)
			if reason == syscall.EIO && !slices.Contains(s.Tolerated, file) &&
				(err == nil || !strings.Contains(err.Error(), path.Base(file))) {
				t.Errorf("%s: %v: error %v, want one that names the file", file, reason, err)
			}
			for _, m := range metrics(r) {
				if !slices.Contains(metrics(full), m) {
					t.Errorf("%s: %v: %v appeared from nothing", file, reason, m)
				}
			}
			refusing.now.Store(false)
			time.Sleep(time.Second)
			again, err := read(t, src)
			if err != nil {
				t.Errorf("after %s can be read again: %v", file, err)
			}
			noMore(t, file, again, full)
			closeIt(t, src)
		}
	}
}

// noMore checks the second in which a file can be read again, in which nothing was done: what was done before the file
// could not be read, since the node was started perhaps, is not of that second.
func noMore(t *testing.T, file string, got, full collector.Reading) {
	t.Helper()
	for _, s := range got.Samples {
		unit := s.Metric.Info().Unit
		if most, ok := collector.SampleOf(full.Samples, s.Metric); ok && s.Value > most &&
			(unit == collector.BytesPerSec || unit == collector.OpsPerSec || unit == collector.PerSec) {
			t.Errorf("after %s could not be read: %v is %v, in a second of work it was %v", file, s.Metric, s.Value,
				most)
		}
	}
}

// refusing is a tree of which one file cannot be read for a while.
type refusing struct {
	*tree
	name   string
	reason error
	now    atomic.Bool
}

func (f *refusing) refuses(name string) error {
	if name == f.name && f.now.Load() {
		return &fs.PathError{Op: "read", Path: name, Err: f.reason}
	}
	return nil
}

func (f *refusing) Open(name string) (fs.File, error) {
	if err := f.refuses(name); err != nil {
		return nil, err
	}
	return f.tree.Open(name)
}

func (f *refusing) ReadFile(name string) ([]byte, error) {
	if err := f.refuses(name); err != nil {
		return nil, err
	}
	return f.tree.ReadFile(name)
}

// cut ends a text in the middle of its last line.
func cut(b []byte) string { return string(b[:len(b)-len(b)/5-1]) }

func contextual(t *testing.T, s Suite) {
	_, src := s.over(t, s.First)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := collector.Reading{Now: time.Now()}
	if err := src.Read(ctx, &r); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v, want context.Canceled", err)
	}
	if _, err := read(t, src); err != nil {
		t.Errorf("after a cancelled read: %v", err)
	}
}

func closing(t *testing.T, s Suite) {
	src := s.New(newTree(s.First))
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 10 {
			r := collector.Reading{Now: time.Now()}
			_ = src.Read(t.Context(), &r) // may fail once it is closed, must not panic or race
			time.Sleep(time.Millisecond)
		}
	})
	for range 4 {
		wg.Go(func() {
			time.Sleep(5 * time.Millisecond)
			if err := src.Close(); err != nil {
				t.Errorf("concurrent Close: %v", err)
			}
		})
	}
	wg.Wait()
	closeIt(t, src)
	synctest.Wait()
}
