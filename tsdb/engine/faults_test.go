package engine

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// abandon ends the goroutines and lets go of the files as a killed process would.
func (db *DB) abandon() {
	db.closed.Store(true)
	close(db.stop)
	db.running.Wait()
	if f, ok := db.fs.(*faultyFiles); ok {
		f.abandon()
	}
	db.head.blocks.Close()
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
		f := collector.Frame{Node: topology.NodeID(fmt.Sprintf("n%d", k.rng.IntN(6))),
			TimeMillis: (killStart + max(sec, 0)) * 1000}
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaWait} {
			if k.rng.IntN(5) > 0 {
				f.Samples = append(f.Samples,
					collector.Sample{Metric: m, Value: float64(k.rng.IntN(5)) * []float64{1, 1 << 40, 0.1}[m%3]})
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

// check reads everything back after a kill. What was perhaps written is, from then on, as it was found: the
// store may not change its mind.
func (k *killed) check(db *DB, round int) {
	k.Helper()
	k.must, k.maybe = k.compare(db, round), map[sampleKey][]float64{}
}

// compare reads everything back, wants what was answered and nothing that was never written, and returns it.
func (k *killed) compare(db *DB, round int) map[sampleKey]float64 {
	k.Helper()
	if d := db.Damages(); len(d) > 0 {
		k.Fatalf("round %d: damaged: %v", round, d)
	}
	found := map[sampleKey]float64{}
	for node := range 6 {
		for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaWait} {
			out, err := db.Select(context.Background(),
				tsdb.Query{Nodes: []topology.NodeID{topology.NodeID(fmt.Sprintf("n%d", node))}, Metric: m,
					ToMillis: 1 << 50})
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
	return found
}

// kills ends the store at random points and wants everything answered, and nothing else, after each
// one: power cuts with torn writes, or the process alone, after full disks and failed fsyncs.
func kills(t *testing.T, seed uint64, rounds int) {
	k := &killed{T: t, must: map[sampleKey]float64{}, maybe: map[sampleKey][]float64{},
		rng: rand.New(rand.NewPCG(7, seed)), dir: t.TempDir()}
	fsys := newFaultyFiles(seed)
	refused := 0
	for round := range rounds {
		fsys.failOneIn(0)
		if round%4 == 0 {
			fsys.failOneIn(30)
		}
		opts := Options{SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler), fs: fsys}
		db, err := Open(k.dir, opts)
		if err != nil && round%4 == 0 { // it may say so, and must lose nothing
			fsys.failOneIn(0)
			db, err = Open(k.dir, opts)
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		fsys.failOneIn(0)
		k.check(db, round)
		if round%3 > 0 {
			fsys.failOneIn(15)
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
		k.compare(db, round)
		db.abandon()
		if fsys.cutDue || k.rng.IntN(4) > 0 {
			fsys.powerCut(t)
		}
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

// TestKills ends the store 60 times, with FAIRWAY_LONG, as make prove has it, 500 times; FAIRWAY_KILLS=SEED,ROUNDS
// chooses others.
func TestKills(t *testing.T) {
	seed, rounds := uint64(0), 60
	if os.Getenv("FAIRWAY_LONG") != "" {
		rounds = 500
	}
	if s := os.Getenv("FAIRWAY_KILLS"); s != "" {
		if _, err := fmt.Sscanf(s, "%d,%d", &seed, &rounds); err != nil {
			t.Fatalf("FAIRWAY_KILLS=%s: %v; it is SEED,ROUNDS", s, err)
		}
	}
	kills(t, seed, rounds)
}

// TestAPowerCutInTheFirstBlockOfAFile cuts the power while an hour's first block is being written. Nothing was sealed,
// so nothing is damaged, now or when the next block is in the file.
func TestAPowerCutInTheFirstBlockOfAFile(t *testing.T) {
	for seed := range uint64(60) {
		dir, fsys := t.TempDir(), newFaultyFiles(seed)
		open := func() *DB {
			db, err := Open(dir, Options{SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler), fs: fsys})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return db
		}
		db, syncs := open(), 0
		if err := db.Append(t.Context(), []collector.Frame{{Node: "n1", TimeMillis: killStart * 1000,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 7}}}}); err != nil {
			t.Fatal(err)
		}
		fsys.breakOff(func(op, path string) bool { // the header is on the device, or it is not
			if filepath.Ext(path) != ".blk" {
				return false
			}
			if op == "sync" {
				syncs++
			}
			return op == "truncate" || syncs > int(seed%2)
		})
		if db.Flush(t.Context()) == nil && seed%2 == 0 {
			t.Fatal("the block was sealed: the test shows nothing")
		}
		db.abandon()
		fsys.powerCut(t)
		fsys.breakOff(nil)
		for range 2 {
			db = open()
			if err := db.Flush(t.Context()); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			out, err := db.Select(t.Context(), tsdb.Query{Nodes: []topology.NodeID{"n1"}, Metric: collector.ReadBytes,
				ToMillis: 1 << 50})
			if err != nil || len(out) != 1 || len(out[0].Points) != 1 || out[0].Points[0].Value != 7 {
				t.Errorf("seed %d: an answered value is gone: %v %v", seed, out, err)
			}
			if d := db.Damages(); len(d) > 0 {
				t.Errorf("seed %d: %v", seed, d)
			}
			db.abandon()
		}
	}
}

// TestABlocksNumberIsNotGivenAgain seals a block that the log says nothing of, where the store can be made to, and
// ends the process. The next one must not take rows of another block for that one's.
func TestABlocksNumberIsNotGivenAgain(t *testing.T) {
	frame := func(sec int64, samples ...collector.Sample) []collector.Frame {
		return []collector.Frame{{Node: "n1", TimeMillis: (killStart + sec) * 1000, Samples: samples}}
	}
	value := collector.Sample{Metric: collector.ReadBytes, Value: 7}
	for name, seal := range map[string]func(*DB, *faultyFiles){
		"a frame without samples": func(db *DB, _ *faultyFiles) {
			db.Append(context.Background(), frame(600))
		},
		"a log that takes nothing": func(db *DB, fsys *faultyFiles) {
			fsys.breakOff(func(_, path string) bool { return filepath.Ext(path) == ".log" })
			db.Append(context.Background(), frame(600, value))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, fsys := t.TempDir(), newFaultyFiles(1)
			open := func() *DB {
				db, err := Open(dir, Options{SyncInterval: time.Nanosecond, Log: slog.New(slog.DiscardHandler),
					fs: fsys})
				if err != nil {
					t.Fatal(err)
				}
				return db
			}
			db := open()
			if err := db.Append(context.Background(), frame(0, value)); err != nil {
				t.Fatal(err)
			}
			seal(db, fsys)
			db.Flush(context.Background()) // may fail
			db.abandon()
			fsys.powerCut(t)
			fsys.breakOff(nil)

			db = open()
			if err := db.Append(context.Background(), frame(601, value)); err != nil {
				t.Fatal(err)
			}
			db.abandon()
			fsys.powerCut(t)

			db = open()
			defer db.Close()
			out, err := db.Select(context.Background(),
				tsdb.Query{Nodes: []topology.NodeID{"n1"}, Metric: collector.ReadBytes,
					FromMillis: (killStart + 601) * 1000,
					ToMillis:   1 << 50})
			if err != nil || len(out) != 1 || out[0].Points[0].Value != 7 {
				t.Errorf("an answered value is gone: %v %v", out, err)
			}
		})
	}
}
