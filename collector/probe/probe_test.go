package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
)

// slowWay takes its time, and counts how many run together.
type slowWay struct {
	mu            sync.Mutex
	running, most int
	starts        []time.Time
	takes         time.Duration
}

func (w *slowWay) Bytes() int { return 100 }

func (w *slowWay) Probe(ctx context.Context) (Took, error) {
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	w.starts = append(w.starts, time.Now())
	w.mu.Unlock()
	defer func() { w.mu.Lock(); w.running--; w.mu.Unlock() }()
	select {
	case <-time.After(w.takes):
		return Took{Read: w.takes}, nil
	case <-ctx.Done():
		return Took{Write: w.takes}, ctx.Err()
	}
}

func TestRunnerKeepsItsLimits(t *testing.T) {
	for _, c := range []struct {
		name                 string
		suspect              bool
		takes, least, atMost time.Duration
	}{
		{"idle", false, time.Second, time.Minute, time.Minute},
		{"suspect", true, time.Second, 10 * time.Second, 10 * time.Second},
		{"slower than its pace", true, 25 * time.Second, 10 * time.Second, 11 * time.Second}, // the timeout ends it
	} {
		synctest.Test(t, func(t *testing.T) {
			ways := map[topology.NodeID]*slowWay{}
			var all []Result
			var mu sync.Mutex
			r := NewRunner(DefaultLimits(), func(n topology.NodeID) (Way, bool) {
				if n == "unknown" {
					return nil, false
				}
				if ways[n] == nil {
					ways[n] = &slowWay{takes: c.takes}
				}
				return ways[n], true
			}, func(res Result) { mu.Lock(); all = append(all, res); mu.Unlock() })
			nodes := []topology.NodeID{"unknown", "fwd1", "fwd2", "fwd1"}
			for range 300 { // everybody is asked for every second
				if c.suspect {
					r.Step(t.Context(), time.Now(), nodes, nodes)
				} else {
					r.Step(t.Context(), time.Now(), nil, nodes)
				}
				time.Sleep(time.Second)
			}
			r.Wait()
			for n, w := range ways {
				if w.most != 1 {
					t.Errorf("%s: %d probes of %s at once", c.name, w.most, n)
				}
				if want := int(300 * time.Second / c.atMost); len(w.starts) < want ||
					len(w.starts) > int(300*time.Second/c.least)+1 {
					t.Errorf("%s: %d probes of %s in 300 s", c.name, len(w.starts), n)
				}
				for i := 1; i < len(w.starts); i++ {
					if gap := w.starts[i].Sub(w.starts[i-1]); gap < c.least {
						t.Errorf("%s: two probes of %s within %s", c.name, n, gap)
					}
				}
			}
			if c.takes > DefaultLimits().Timeout && !errors.Is(all[0].Err, context.DeadlineExceeded) {
				t.Errorf("%s: a probe that takes too long answered %+v", c.name, all[0])
			}
			var b strings.Builder
			r.WriteMetrics(&b)
			if !strings.Contains(b.String(), fmt.Sprintf("fairway_probes_total %d\n", len(all))) {
				t.Errorf("%s: %d results, but\n%s", c.name, len(all), &b)
			}
		})
	}
}

func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWay{takes: 5 * time.Second}
		r := NewRunner(DefaultLimits(), func(topology.NodeID) (Way, bool) { return w, true }, func(Result) {})
		var nodes []topology.NodeID
		for i := range 100 {
			nodes = append(nodes, topology.NodeID(fmt.Sprint(i)))
		}
		begun := map[topology.NodeID]int{}
		for range 150 {
			for _, n := range r.Step(t.Context(), time.Now(), nil, nodes) {
				begun[n]++
			}
			time.Sleep(time.Second)
		}
		r.Wait()
		if w.most != 4 {
			t.Errorf("%d probes at once, want 4", w.most)
		}
		for _, n := range nodes { // those that were never probed come first
			if begun[n] == 0 {
				t.Errorf("%s had no turn in 150 s", n)
			}
		}
	})
}

func TestByFile(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		took, err := ByFile{Dir: dir, File: ".canary", Size: 4096}.Probe(t.Context())
		if err != nil || took.Read <= 0 || took.Write <= 0 || took.Meta <= 0 {
			t.Errorf("%+v, %v", took, err)
		}
	}
	if _, err := (ByFile{Dir: dir + "/none", File: "x", Size: 1}).Probe(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// TestBy9P probes a real diod, healthy and with its data calls delayed.
func TestBy9P(t *testing.T) {
	cfg := testbed.Config{Forwarders: 1, ComputeNodes: 1, Loopback: true}
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("not installed: %v", missing)
	}
	tb, err := testbed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	way := By9P{Addr: tb.ForwarderAddr("fwd000"), Export: tb.Attach(), File: ".canary", UID: uint32(os.Geteuid()),
		Size: 64 << 10}
	for range 2 { // the second one finds the file
		took, err := way.Probe(t.Context())
		if err != nil || took.Read <= 0 || took.Write <= 0 || took.Meta <= 0 {
			t.Fatalf("%+v, %v", took, err)
		}
	}
	if err := tb.Inject(t.Context(), testbed.Fault{Kind: testbed.SlowData, Node: "fwd000",
		Amount: 0.05}); err != nil {
		t.Skipf("no fault: %v", err)
	}
	took, err := way.Probe(t.Context())
	if err != nil || took.Read < 50*time.Millisecond || took.Write < 50*time.Millisecond {
		t.Errorf("with its data calls delayed by 50 ms: %+v, %v", took, err)
	}
	way.Export = "/nowhere"
	if _, err := way.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("an export that is not there: %v", err)
	}
}
