package gather_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
)

// TestMain lets the test's own binary be many nodes, in a process of their own: one process may not have as many files
// open as both ends need.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("FAIRWAY_TEST_NODES")); err == nil {
		beNodes(n, os.Getenv("FAIRWAY_TEST_DAEMON"), strings.Fields(os.Getenv("FAIRWAY_TEST_GATHERERS")))
		return
	}
	os.Exit(m.Run())
}

func nodeOf(i int) topology.NodeID { return topology.NodeID(fmt.Sprintf("cn%05d", i)) }

// refuses is one node in a hundred.
func refuses(i int) bool { return i%100 == 7 }

// silence is a spool in which nothing ever is.
type silence struct{}

func (silence) Instance() string                               { return "one" }
func (silence) Acked() uint64                                  { return 0 }
func (silence) Ack(uint64)                                     {}
func (silence) Pending() uint64                                { return 0 }
func (silence) Next(_ uint64, b []byte) (uint64, []byte, bool) { return 0, b, false }
func (silence) More() <-chan struct{}                          { return nil }

// remapped carries out the orders of one node.
func remapped(i int) stream.OrderHandler {
	return func(_ context.Context, o wire.Order) (json.RawMessage, error) {
		var q wire.RemapOrder
		if err := json.Unmarshal(o.Body, &q); err != nil || refuses(i) {
			return nil, errors.Join(err, errors.New("mount: connection refused"))
		}
		return json.Marshal(wire.RouteAnswer{Forwarder: q.Forwarder, Generation: 2})
	}
}

// beNodes connects nodes and carries orders out until standard input ends.
func beNodes(n int, daemon string, gatherers []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range n {
		c := &stream.Client{URL: daemon, Gatherers: []string{gatherers[i*len(gatherers)/n], gatherers[0]},
			Token: tokenOf(nodeOf(i)), Node: nodeOf(i), Role: topology.Compute, Spool: silence{}, Log: quiet,
			Orders: map[string]stream.OrderHandler{wire.OrderRemap: remapped(i)}}
		all.Go(func() { _ = c.Run(ctx) })
		if i%64 == 63 { // handshakes come a few at a time
			time.Sleep(10 * time.Millisecond)
		}
	}
	_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
	cancel()
	all.Wait()
}

// TestManyNodesAreOrderedThroughGatherers moves a plan of as many nodes as there are, each through a gatherer; one in a
// hundred refuses, and every one is accounted for. FAIRWAY_AGENTS=16384 for the size of the bar.
func TestManyNodesAreOrderedThroughGatherers(t *testing.T) {
	n, gatherers := 256, 4
	if text := os.Getenv("FAIRWAY_AGENTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		gatherers = max(n/512, 1)
	}
	m := newMachine(t)
	var addresses []string
	for range gatherers {
		at, _ := m.gather(2*n/gatherers + 8)
		addresses = append(addresses, at)
	}
	cmd := exec.Command(os.Args[0])
	// The nodes are not what is measured: their process takes memory instead of time.
	cmd.Env = append(os.Environ(), "GOGC=800", fmt.Sprint("FAIRWAY_TEST_NODES=", n), "FAIRWAY_TEST_DAEMON="+m.daemon,
		"FAIRWAY_TEST_GATHERERS="+strings.Join(addresses, " "))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the nodes' process: %v", err)
		}
	})
	plan, direct := remap.Plan{ID: "P-000001"}, 0
	for i := range n {
		until(t, string(nodeOf(i))+" is connected", func() bool { _, ok := m.hub.Way(nodeOf(i)); return ok })
		if way, _ := m.hub.Way(nodeOf(i)); way.Gatherer == "" {
			direct++
		}
		plan.Moves = append(plan.Moves, remap.Move{Node: nodeOf(i), From: "fwd1", To: "fwd2"})
	}
	d := agent.New(m.hub, func(topology.ForwarderID) (string, bool) { return "10.0.0.2:564", true },
		driver.DefaultFan())
	var mu sync.Mutex
	got := map[topology.NodeID]remap.Result{}
	twice := 0
	begun := time.Now()
	err = d.Apply(t.Context(), plan, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		if _, known := got[r.Node]; known {
			twice++
		}
		got[r.Node] = r
	})
	took := time.Since(begun)
	if err != nil || len(got) != n || twice > 0 {
		t.Fatalf("%d of %d accounted for, %d twice: %v", len(got), n, twice, err)
	}
	failed := 0
	for i := range n {
		r := got[nodeOf(i)]
		if r.OK {
			continue
		}
		failed++
		if !refuses(i) || !strings.Contains(r.Error, "connection refused") {
			t.Errorf("%+v", r)
		}
	}
	if want := (n + 92) / 100; failed != want {
		t.Errorf("%d nodes refused, want %d", failed, want)
	}
	t.Logf("%d nodes (%d not through a gatherer) ordered through %d gatherers in %s, %d of them refused", n, direct,
		gatherers, took.Round(time.Millisecond), failed)
}
