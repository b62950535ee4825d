package state

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
)

// arriving stores the seconds of many nodes one after the other until it is stopped.
type arriving struct {
	db    *engine.DB
	nodes int
	every time.Duration // 0: as fast as the store takes them
	first int64         // Unix ms
	done  atomic.Int64  // seconds that are acknowledged
}

var arrivingMetrics = []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps,
	collector.WriteOps, collector.MetaOps, collector.QueueLen, collector.MetaQueueLen, collector.MetaWait}

func arrivingNode(i int) topology.NodeID { return topology.NodeID(fmt.Sprintf("cn%05d", i)) }

func (a *arriving) run(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(1, 2))
	frames := make([]collector.Frame, a.nodes)
	for i := range frames {
		frames[i] = collector.Frame{Node: arrivingNode(i), Role: topology.Compute,
			Samples: make([]collector.Sample, len(arrivingMetrics))}
	}
	next := time.Now()
	for ctx.Err() == nil {
		for i := range frames {
			frames[i].TimeMillis = a.first + 1000*a.done.Load()
			for k, m := range arrivingMetrics {
				frames[i].Samples[k] = collector.Sample{Metric: m, Value: float64(rng.IntN(1000))}
			}
		}
		if err := a.db.Append(context.WithoutCancel(ctx), frames); err != nil {
			return err
		}
		a.done.Add(1)
		next = next.Add(a.every)
		time.Sleep(time.Until(next))
	}
	return nil
}

// TestBackupWhileSecondsArrive: a copy that is made meanwhile, restored elsewhere, gives the same answers to 1,000
// random questions about what was acknowledged before it was begun. FAIRWAY_BACKUP=60s is the layer's full size,
// 332,000 samples a second for so long before the copy.
func TestBackupWhileSecondsArrive(t *testing.T) {
	c := stateOf(t)
	a := &arriving{nodes: 50, first: time.Now().Add(-time.Hour).Truncate(time.Second).UnixMilli()}
	before := int64(30)
	if long, err := time.ParseDuration(os.Getenv("FAIRWAY_BACKUP")); err == nil {
		a.nodes, a.every, before = 41_500, time.Second, int64(long/time.Second)
	}
	open := func(dir string) *engine.DB {
		db, err := engine.Open(filepath.Join(dir, "store"), engine.Options{SyncInterval: 2 * time.Millisecond,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	a.db = open(c.StateDir)
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- a.run(ctx) }()
	reach := func(n int64) {
		for a.done.Load() < n {
			select {
			case err := <-failed:
				t.Fatal(err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	begun := time.Now()
	reach(before)
	rate := float64(a.done.Load()) * float64(a.nodes*len(arrivingMetrics)) / time.Since(begun).Seconds()
	known := a.done.Load()
	dir := filepath.Join(t.TempDir(), "copy")
	begun = time.Now()
	if _, err := backUp(t.Context(), c, dir, "dev", begun); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f samples/s of %d nodes; the copy took %s, %d seconds came meanwhile", rate, a.nodes,
		time.Since(begun).Round(time.Millisecond), a.done.Load()-known)
	reach(a.done.Load() + 2) // goes on
	stop()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	other := *c
	other.StateDir = filepath.Join(t.TempDir(), "state")
	begun = time.Now()
	if _, _, err := restore(&other, dir); err != nil {
		t.Fatal(err)
	}
	restored := open(other.StateDir)
	t.Logf("restored and opened in %s", time.Since(begun).Round(time.Millisecond))
	rng := rand.New(rand.NewPCG(3, 4))
	points := 0
	for range 1000 {
		from := a.first + 1000*rng.Int64N(known)
		q := tsdb.Query{Metric: arrivingMetrics[rng.IntN(len(arrivingMetrics))], FromMillis: from,
			ToMillis:   min(a.first+1000*known, from+1000*(1+rng.Int64N(known))),
			StepMillis: []int64{0, 0, 10_000}[rng.IntN(3)], Agg: []tsdb.Agg{"", tsdb.AggMax, tsdb.AggSum}[rng.IntN(3)]}
		if q.StepMillis == 0 {
			q.Agg = ""
		}
		for range 1 + rng.IntN(3) {
			q.Nodes = append(q.Nodes, arrivingNode(rng.IntN(a.nodes)))
		}
		want, err := a.db.Select(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := restored.Select(t.Context(), q)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: %v, %v\nwant %v", q, got, err, want)
		}
		for _, s := range got {
			points += len(s.Points)
		}
	}
	if points < 1000 {
		t.Errorf("1,000 answers have %d points", points)
	}
}
