package engine_test

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/cmd/lab/conform/storetest"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
)

func TestEmbeddedStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() tsdb.Store {
		dir := t.TempDir()
		return func() tsdb.Store {
			db, err := engine.Open(dir, engine.Options{SyncInterval: time.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			if d := db.Damages(); len(d) > 0 {
				t.Fatalf("damaged: %v", d)
			}
			return db
		}
	})
}

// sealing seals every few appends, so that answers come from sealed blocks and their overlays.
type sealing struct {
	*engine.DB
	appends atomic.Int64
}

func (s *sealing) Append(ctx context.Context, frames []collector.Frame) error {
	err := s.DB.Append(ctx, frames)
	if s.appends.Add(1)%3 == 0 {
		err = errors.Join(err, s.Flush(ctx))
	}
	return err
}

func TestSealedBlocksKeepTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() tsdb.Store {
		dir := t.TempDir()
		return func() tsdb.Store {
			db, err := engine.Open(dir, engine.Options{SyncInterval: time.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			db.SetPeaks(map[topology.NodeID]float64{"f1": 1000, "f2": 1000})
			t.Cleanup(func() {
				if d := db.Damages(); len(d) > 0 {
					t.Errorf("damaged: %v", d)
				}
			})
			return &sealing{DB: db}
		}
	})
}

// TestReadersBesideAWriter reads while rows come in and out of order, in two frames a second, and with ever more
// metrics: what was answered is there, and nothing that was not appended.
func TestReadersBesideAWriter(t *testing.T) {
	db, err := engine.Open(t.TempDir(), engine.Options{SyncInterval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const nodes, secs = 3, 100
	var answered atomic.Int64 // seconds of every node
	read := func() {
		upTo := answered.Load()
		for i := range nodes {
			for _, m := range damageMetrics {
				out, err := db.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{damageNode(i)},
					Metric: m, FromMillis: damageStart * 1000, ToMillis: (damageStart + secs) * 1000})
				if err != nil {
					t.Error(err)
					return
				}
				n := int64(0)
				for _, s := range out {
					for _, p := range s.Points {
						sec := p.TimeMillis/1000 - damageStart
						if want := truth(i, m, sec); p.Value != want {
							t.Errorf("node %d %s second %d: got %v, want %v", i, m, sec, p.Value, want)
						}
						if sec < upTo {
							n++
						}
					}
				}
				if m == damageMetrics[0] && n != upTo {
					t.Errorf("node %d: %d of %d answered seconds are there", i, n, upTo)
				}
			}
		}
	}
	var reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				read()
			}
		}
	})
	frame := func(node int, sec int64, metrics ...collector.Metric) collector.Frame {
		f := collector.Frame{Node: damageNode(node), TimeMillis: (damageStart + sec) * 1000}
		for _, m := range metrics {
			f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: truth(node, m, sec)})
		}
		return f
	}
	for sec := int64(0); sec < secs; sec += 4 {
		var frames []collector.Frame
		for _, k := range []int64{1, 0, 3, 2} { // two of four are late
			for i := range nodes {
				more := damageMetrics[2 : 2+min(int(sec+k)/40, 2)]
				frames = append(frames, frame(i, sec+k, damageMetrics[:2]...), frame(i, sec+k, more...))
			}
		}
		if err := db.Append(context.Background(), frames); err != nil {
			t.Fatal(err)
		}
		answered.Store(sec + 4)
	}
	close(done)
	reading.Wait()
	read()
}

func TestASecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	db, err := engine.Open(dir, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := engine.Open(dir, engine.Options{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second Open: %v", err)
	}
}

// TestMain is also the child of the kill test: it appends until it is killed and says on standard
// output how far it was answered.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TSDB_TEST_CHILD"); dir != "" {
		appendForever(dir)
	}
	os.Exit(m.Run())
}

func childFrames(sec int64) []collector.Frame {
	frames := make([]collector.Frame, 50)
	for i := range frames {
		frames[i] = collector.Frame{Node: topology.NodeID("n" + string(rune('A'+i))),
			TimeMillis: (1_700_000_040 + sec) * 1000, Samples: []collector.Sample{
				{Metric: collector.ReadBytes, Value: float64(sec * int64(i%7))},
				{Metric: collector.MetaWait, Value: float64(sec) / 7},
			}}
	}
	return frames
}

func appendForever(dir string) {
	db, err := engine.Open(dir, engine.Options{SyncInterval: time.Microsecond})
	if err != nil {
		panic(err)
	}
	start := countSeconds(db)
	for sec := start; ; sec++ {
		if err := db.Append(context.Background(), childFrames(sec)); err != nil {
			panic(err)
		}
		os.Stdout.Write([]byte("."))
	}
}

func countSeconds(db *engine.DB) int64 {
	out, err := db.Select(context.Background(), tsdb.Query{Nodes: []topology.NodeID{"nA"}, Metric: collector.MetaWait,
		ToMillis: math.MaxInt64 / 2})
	if err != nil {
		panic(err)
	}
	if len(out) == 0 {
		return 0
	}
	return int64(len(out[0].Points))
}

func TestAnsweredAppendsSurviveKill(t *testing.T) {
	dir := t.TempDir()
	answered := int64(0)
	for round := range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TSDB_TEST_CHILD="+dir)
		out := filepath.Join(t.TempDir(), "out")
		f, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = f, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
			if at, err := f.Stat(); err == nil && at.Size() >= 2 {
				break // a busy machine starts it late
			}
		}
		time.Sleep(time.Duration(13*round) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		f.Close()
		dots, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		db, err := engine.Open(dir, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		have := countSeconds(db)
		answered += int64(len(dots))
		if have < answered {
			t.Fatalf("round %d: %d seconds were answered, %d are there", round, answered, have)
		}
		answered = have // what was written and not answered may be there too
		checkChild(t, db, have)
		if d := db.Damages(); len(d) > 0 {
			t.Fatalf("damaged: %v", d)
		}
		db.Close()
	}
	if answered < 20 {
		t.Errorf("the children were answered only %d times", answered)
	}
}

func checkChild(t *testing.T, db *engine.DB, secs int64) {
	t.Helper()
	if secs == 0 { // the child was killed before its first row
		return
	}
	for i := range 50 {
		node := topology.NodeID("n" + string(rune('A'+i)))
		out, err := db.Select(context.Background(),
			tsdb.Query{Nodes: []topology.NodeID{node}, Metric: collector.ReadBytes, ToMillis: math.MaxInt64 / 2})
		if err != nil || len(out) != 1 || int64(len(out[0].Points)) != secs {
			t.Fatalf("node %s: %v, want %d points", node, err, secs)
		}
		for sec, p := range out[0].Points {
			if p.Value != float64(sec*(i%7)) || p.TimeMillis != (1_700_000_040+int64(sec))*1000 {
				t.Fatalf("node %s second %d: %v", node, sec, p)
			}
		}
	}
}

// TestOccupancyOfRowsInTwoBlocks: a block counts the occupied seconds that it knows of; bytes written that came in
// a later block of the span make more.
func TestOccupancyOfRowsInTwoBlocks(t *testing.T) {
	db, err := engine.Open(t.TempDir(), engine.Options{SyncInterval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	peaks := map[topology.NodeID]float64{"f1": 1000}
	db.SetPeaks(peaks)
	put := func(m collector.Metric, secs int, v float64) {
		t.Helper()
		var frames []collector.Frame
		for s := range secs {
			frames = append(frames, collector.Frame{Node: "f1", Role: topology.Forwarder,
				TimeMillis: (damageStart + int64(s)) * 1000,
				Samples:    []collector.Sample{{Metric: m, Value: v + float64(s%2)}}})
		}
		if err := errors.Join(db.Append(context.Background(), frames), db.Flush(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
	want := func(occupied int64) {
		t.Helper()
		out, err := db.Occupancy(context.Background(), tsdb.OccupancyQuery{Nodes: []topology.NodeID{"f1"},
			FromMillis: damageStart * 1000, ToMillis: (damageStart + 120) * 1000, PeakBytesPerSec: peaks})
		if err != nil || len(out) != 1 || len(out[0].Buckets) != 1 || out[0].Buckets[0].Occupied != occupied ||
			out[0].Buckets[0].Seconds != 120 {
			t.Errorf("got %+v %v, want %d of 120", out, err, occupied)
		}
	}
	put(collector.ReadBytes, 120, 799)
	want(60)
	put(collector.WriteBytes, 40, 5)
	want(80)
}

// TestMoreMetricsThanColumns: a node that sends more metrics than a row has columns has the first ones kept, in one
// second and over seconds of a block, and nothing else is lost; no layer's nodes report as many.
func TestMoreMetricsThanColumns(t *testing.T) {
	db, err := engine.Open(t.TempDir(), engine.Options{SyncInterval: time.Microsecond, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	layers := map[topology.Role]int{}
	var all []collector.Sample
	for m := range collector.Metrics() {
		all = append(all, collector.Sample{Metric: m, Value: 1})
		for role, place := range map[topology.Role]collector.Place{topology.Forwarder: m.Info().Forwarder,
			topology.Compute: m.Info().Compute, topology.Storage: m.Info().Storage,
			topology.Metadata: m.Info().Metadata} {
			if place != 0 {
				layers[role]++
			}
		}
	}
	for role, n := range layers {
		if n > 64 {
			t.Errorf("a %s node reports up to %d metrics; a row has 64 columns", role, n)
		}
	}
	half := len(all) / 2
	for s, samples := range [][]collector.Sample{all, all[:half], all[half:]} {
		at := time.Unix(1_800_000_000+int64(s), 0).UnixMilli()
		frames := []collector.Frame{{Node: "much", Role: topology.Forwarder, TimeMillis: at, Samples: samples},
			{Node: "little", Role: topology.Forwarder, TimeMillis: at, Samples: all[:3]}}
		if err := db.Append(t.Context(), frames); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for _, s := range all {
		got, err := db.Select(t.Context(), tsdb.Query{Nodes: []topology.NodeID{"much"}, Metric: s.Metric,
			ToMillis: 1 << 50})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 && len(got[0].Points) == 2 {
			kept++
		}
	}
	if want := min(len(all), 64); kept != want {
		t.Errorf("%d metrics are kept of %d, want %d", kept, len(all), want)
	}
}
