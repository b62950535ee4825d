package tsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// faultyFiles is a file system that sometimes has no room, writes a part, or fails an fsync, and
// that knows of every file what a power cut could take: all after the last successful fsync.
type faultyFiles struct {
	osFiles
	mu     sync.Mutex
	rng    *rand.Rand
	odds   int // one in odds operations fails; 0 none
	synced map[string]int64
	failed int
}

func (f *faultyFiles) fails() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.odds == 0 || f.rng.IntN(f.odds) > 0 {
		return false
	}
	f.failed++
	return true
}

type faultyFile struct {
	file
	fs   *faultyFiles
	path string
}

func (f *faultyFiles) wrap(path string, inner file, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return &faultyFile{inner, f, path}, nil
}

func (f *faultyFiles) Create(path string) (file, error) {
	if f.fails() {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
	}
	f.mu.Lock()
	f.synced[path] = 0
	f.mu.Unlock()
	inner, err := f.osFiles.Create(path)
	return f.wrap(path, inner, err)
}

func (f *faultyFiles) OpenAppend(path string) (file, error) {
	inner, err := f.osFiles.OpenAppend(path)
	return f.wrap(path, inner, err)
}

func (f *faultyFiles) Rename(from, to string) error {
	if f.fails() {
		return syscall.EIO
	}
	if err := f.osFiles.Rename(from, to); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced[to] = f.synced[from]
	delete(f.synced, from)
	return nil
}

func (f *faultyFiles) SyncDir(string) error {
	if f.fails() {
		return syscall.EIO
	}
	return nil
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if f.fs.fails() {
		n, _ := f.file.Write(b[:len(b)/3])
		return n, syscall.ENOSPC
	}
	return f.file.Write(b)
}

func (f *faultyFile) Sync() error {
	if f.fs.fails() {
		return syscall.EIO
	}
	size, err := f.file.Size() // the test's power cut is its own: no real fsync is needed
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.synced[f.path] = size
	return err
}

func (f *faultyFile) Truncate(size int64) error {
	f.fs.mu.Lock()
	f.fs.synced[f.path] = min(f.fs.synced[f.path], size)
	f.fs.mu.Unlock()
	return f.file.Truncate(size)
}

// powerCut leaves of every file what was synced and a random part of the rest, some of it garbage.
func (f *faultyFiles) powerCut(t *testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, synced := range f.synced {
		st, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		size := st.Size()
		if size <= synced {
			continue
		}
		kept := synced + f.rng.Int64N(size-synced+1)
		if f.rng.IntN(3) == 0 {
			kept = size
		}
		if err := os.Truncate(path, kept); err != nil {
			t.Fatal(err)
		}
		if kept > synced && f.rng.IntN(2) == 0 { // a page that never reached the disk
			w, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			at := synced + f.rng.Int64N(kept-synced)
			if _, err := w.WriteAt(make([]byte, min(kept-at, 50)), at); err != nil {
				t.Fatal(err)
			}
			w.Close()
		}
	}
}

// abandon ends the goroutines and lets go of the files as a killed process would.
func (db *DB) abandon() {
	db.closed.Store(true)
	close(db.stop)
	db.done.Wait()
	if db.wal.file != nil {
		db.wal.file.Close()
	}
	for _, f := range db.view.Load().files {
		f.close()
	}
	db.lock.Close()
}

type sampleKey struct {
	node   int
	metric collector.Metric
	sec    int64
}

// killed is the state of the kill test: what the store must answer and what it may.
type killed struct {
	*testing.T
	rng   *rand.Rand
	dir   string
	must  map[sampleKey]float64
	maybe map[sampleKey][]float64 // written, not answered
	clock int64
}

const killStart = 1_700_000_400

func (k *killed) frames() []collector.Frame {
	var out []collector.Frame
	for range 1 + k.rng.IntN(4) {
		sec := k.clock
		switch k.rng.IntN(12) {
		case 0:
			sec -= k.rng.Int64N(600) // late
		case 1:
			sec += 86400 // a clock that is ahead
		}
		f := collector.Frame{Node: topology.NodeID(fmt.Sprintf("n%d", k.rng.IntN(6))), TimeMillis: (killStart + max(sec, 0)) * 1000}
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaWait} {
			if k.rng.IntN(5) > 0 {
				f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: float64(k.rng.IntN(5)) * []float64{1, 1 << 40, 0.1}[m%3]})
			}
		}
		out = append(out, f)
		k.clock += k.rng.Int64N(4)
	}
	return out
}

// note records frames as answered or as perhaps written.
func (k *killed) note(frames []collector.Frame, answered bool) {
	for i := range frames {
		var node int
		fmt.Sscanf(string(frames[i].Node), "n%d", &node)
		for _, s := range frames[i].Samples {
			key := sampleKey{node, s.Metric, frames[i].TimeMillis/1000 - killStart}
			if answered {
				k.must[key] = s.Value
				delete(k.maybe, key)
			} else {
				k.maybe[key] = append(k.maybe[key], s.Value)
			}
		}
	}
}

// check reads everything back. What was perhaps written is, from then on, as it was found: the
// store may not change its mind.
func (k *killed) check(db *DB, round int) {
	k.Helper()
	if d := db.Damages(); len(d) > 0 {
		k.Fatalf("round %d: damaged: %v", round, d)
	}
	found := map[sampleKey]float64{}
	for node := range 6 {
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaWait} {
			out, err := db.Select(context.Background(), Query{Nodes: []topology.NodeID{topology.NodeID(fmt.Sprintf("n%d", node))}, Metric: m, ToMillis: 1 << 50})
			if err != nil {
				k.Fatalf("round %d: %v", round, err)
			}
			for _, s := range out {
				for _, p := range s.Points {
					found[sampleKey{node, m, p.TimeMillis/1000 - killStart}] = p.Value
				}
			}
		}
	}
	allowed := func(key sampleKey, v float64) bool {
		for _, w := range k.maybe[key] {
			if w == v {
				return true
			}
		}
		want, ok := k.must[key]
		return ok && want == v
	}
	for key, want := range k.must {
		if got, ok := found[key]; !ok || got != want && !allowed(key, got) {
			k.Fatalf("round %d: %+v: got %v (there: %v), %v was answered", round, key, got, ok, want)
		}
	}
	for key, got := range found {
		if !allowed(key, got) {
			k.Fatalf("round %d: %+v: %v was never written", round, key, got)
		}
	}
	k.must, k.maybe = found, map[sampleKey][]float64{}
}

// TestKills ends the store at 500 random points - power cuts with torn writes, after full disks and
// failed fsyncs - and after each one everything answered must be there and nothing else. By default it
// does the first hundred; docs/store.md says what one long run has found that is not explained yet.
func TestKills(t *testing.T) {
	rounds := 100
	if os.Getenv("FAIRWAY_LONG") != "" {
		rounds = 500
	}
	k := &killed{T: t, must: map[sampleKey]float64{}, maybe: map[sampleKey][]float64{}, rng: rand.New(rand.NewPCG(7, 11)), dir: t.TempDir()}
	fsys := &faultyFiles{rng: rand.New(rand.NewPCG(3, 5)), synced: map[string]int64{}}
	refused := 0
	for round := range rounds {
		fsys.odds = 0
		db, err := Open(k.dir, Options{SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler), fs: fsys})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		k.check(db, round)
		if round%3 > 0 {
			fsys.odds = 15
		}
		for range k.rng.IntN(30) {
			frames := k.frames()
			err := db.Append(context.Background(), frames)
			k.note(frames, err == nil)
			if err != nil {
				refused++
			}
			if k.rng.IntN(12) == 0 {
				db.Flush(context.Background()) // may fail; its rows stay in the log
			}
		}
		db.abandon()
		fsys.powerCut(t)
		if round%50 == 49 { // start afresh now and then, for the time it takes
			if len(k.must) < 100 {
				t.Fatalf("round %d: only %d samples were answered", round, len(k.must))
			}
			k.dir = filepath.Join(t.TempDir(), "next")
			k.must, k.maybe, k.clock = map[sampleKey]float64{}, map[sampleKey][]float64{}, 0
		}
	}
	if fsys.failed < rounds/2 || refused < rounds/5 {
		t.Errorf("only %d operations failed and %d appends were refused", fsys.failed, refused)
	}
}
