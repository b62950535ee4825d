package gather_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/gather"
	"fairway/collector/ingest"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/collector/wire/seal"
)

const aWhile = 2 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

func tokenOf(n topology.NodeID) string { return fmt.Sprintf("t.%s.proof-of-%s", n, n) }

// store counts how often each second came.
type store struct {
	mu      sync.Mutex
	seconds map[topology.NodeID]map[int64]int
	hold    chan struct{} // not nil: nothing is kept until it is closed
}

func (s *store) Append(ctx context.Context, frames []collector.Frame) error {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if s.seconds[f.Node] == nil {
			s.seconds[f.Node] = map[int64]int{}
		}
		s.seconds[f.Node][f.TimeMillis]++
	}
	return nil
}

func (s *store) has(n topology.NodeID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seconds[n])
}

// machine is a daemon's hub behind a gatherer.
type machine struct {
	t        *testing.T
	store    *store
	hub      *ingest.Hub
	daemon   string // addresses
	gatherer string
	ends     func() // of the gatherer
	// gathering is the newest gatherer.
	gathering *gather.Gatherer
	log       *slog.Logger
}

func ws(s *httptest.Server) string { return "ws" + strings.TrimPrefix(s.URL, "http") }

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, store: &store{seconds: map[topology.NodeID]map[int64]int{}}, log: quiet}
	m.hub = ingest.New(ingest.Config{Store: m.store})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer t.")
		name, _, _ = strings.Cut(name, ".")
		by := speaker(topology.NodeID(name))
		switch {
		case !ok:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == stream.GatherPath:
			if err := m.hub.Gather(w, r, by, topology.NodeID(r.URL.Query().Get("node")), prove); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
			}
		default:
			m.hub.Serve(w, r, by)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(m.hub.Close)
	m.daemon = ws(server)
	m.gatherer, m.ends = m.gather(8)
	return m
}

func speaker(n topology.NodeID) ingest.Speaker {
	s := ingest.Speaker{Name: "node " + string(n), Nodes: []string{string(n)}, Limits: ingest.DefaultLimits()}
	if n == "eager" {
		s.Limits.FramesPerSec, s.Limits.BurstSeconds = 1, 20
	}
	return s
}

func prove(o *seal.Offer) (string, ingest.Speaker, error) {
	n := topology.NodeID(strings.TrimPrefix(o.Head, "t."))
	if !o.Of(tokenOf(n)) {
		return "", ingest.Speaker{}, errors.New("the token is not a node's own")
	}
	return tokenOf(n), speaker(n), nil
}

// gather starts a gatherer, which is connected when it returns.
func (m *machine) gather(most int) (at string, ends func()) {
	m.t.Helper()
	g := gather.New(gather.Config{Node: "rack1", Daemons: []string{m.daemon}, Token: tokenOf("rack1"), Nodes: most,
		Log: m.log})
	m.gathering = g
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(g)
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	ends = sync.OnceFunc(func() { cancel(); server.Close(); running.Wait() })
	m.t.Cleanup(ends)
	until(m.t, "the gatherer is connected", func() bool { return g.State().Connected })
	return ws(server), ends
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(aWhile); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// node is an agent with a spool.
type node struct {
	*stream.Client
	spool *stream.Spool
	name  topology.NodeID
	next  int64
}

func (m *machine) node(name topology.NodeID, change func(*stream.Client)) *node {
	m.t.Helper()
	spool, err := stream.OpenSpool(filepath.Join(m.t.TempDir(), string(name)), 0, quiet)
	if err != nil {
		m.t.Fatal(err)
	}
	n := &node{spool: spool, name: name, next: time.Now().Add(-time.Hour).Truncate(time.Second).UnixMilli()}
	n.Client = &stream.Client{URL: m.daemon, Gatherers: []string{m.gatherer}, Token: tokenOf(name), Node: name,
		Role: topology.Compute, Spool: spool, Log: quiet, Orders: map[string]stream.OrderHandler{}}
	if change != nil {
		change(n.Client)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			m.t.Error(err)
		}
	})
	m.t.Cleanup(func() { cancel(); running.Wait(); spool.Close() })
	return n
}

func (n *node) seconds(t *testing.T, many int) {
	t.Helper()
	for range many {
		if err := n.spool.Append([]collector.Frame{{Node: n.name, Role: topology.Compute, TimeMillis: n.next,
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: float64(n.next)}}}}); err != nil {
			t.Fatal(err)
		}
		n.next += 1000
	}
}

// TestThroughAGatherer has nodes' seconds, orders and names arrive through a gatherer, and the node go to the daemon
// itself when the gatherer ends, without a second lost or stored under another's name.
func TestThroughAGatherer(t *testing.T) {
	m := newMachine(t)
	nodes := []*node{}
	for i := range 3 {
		name := topology.NodeID(fmt.Sprintf("cn%d", i+1))
		nodes = append(nodes, m.node(name, func(c *stream.Client) {
			c.Orders["echo"] = func(_ context.Context, o wire.Order) (json.RawMessage, error) {
				return json.Marshal(string(name) + string(o.Body))
			}
		}))
		nodes[i].seconds(t, 300)
	}
	for _, n := range nodes {
		until(t, "all seconds are acknowledged", func() bool { return n.spool.Pending() == 0 })
		way, ok := m.hub.Way(n.name)
		if !ok || way.Gatherer != "rack1" || way.Address != m.gatherer || n.State().Via != m.gatherer {
			t.Errorf("%s: %+v, %v, and it says %q", n.name, way, ok, n.State().Via)
		}
	}
	if all := m.hub.Gatherers(); len(all) != 1 || all[0].Node != "rack1" || all[0].Nodes != 3 ||
		all[0].Late < time.Minute {
		t.Errorf("gatherers are %+v", all)
	}
	for _, n := range nodes { // each order reaches its node, and large ones come whole
		body := fmt.Sprintf("%q", strings.Repeat("x", 300<<10))
		ctx, cancel := context.WithTimeout(t.Context(), aWhile)
		res, err := m.hub.Order(ctx, n.name, wire.Order{ID: "o-" + string(n.name), Kind: "echo",
			Body: json.RawMessage(body)})
		cancel()
		var got string
		if err == nil {
			err = json.Unmarshal(res.Body, &got)
		}
		if err != nil || got != string(n.name)+body {
			t.Errorf("order to %s: %d bytes, %s: %v", n.name, len(got), res.Err, err)
		}
	}
	m.ends()
	for _, n := range nodes {
		n.seconds(t, 100)
		until(t, "all seconds are acknowledged", func() bool { return n.spool.Pending() == 0 })
		if way, ok := m.hub.Way(n.name); !ok || way.Gatherer != "" || m.store.has(n.name) != 400 {
			t.Errorf("%s: %+v, %v; %d seconds", n.name, way, ok, m.store.has(n.name))
		}
	}
}

// large appends seconds of some kilobytes each.
func (n *node) large(t *testing.T, many int) {
	t.Helper()
	samples := make([]collector.Sample, 200)
	for i := range samples {
		samples[i] = collector.Sample{Metric: collector.ReadBytes, Value: float64(i) + 0.3}
	}
	for range many {
		if err := n.spool.Append([]collector.Frame{{Node: n.name, Role: topology.Compute, TimeMillis: n.next,
			Samples: samples}}); err != nil {
			t.Fatal(err)
		}
		n.next += 1000
	}
}

// TestASlowDaemonHoldsNodesBack has a store that keeps nothing for a while: what is on its way is bounded, the rest
// stays in the spools, and everything arrives afterwards.
func TestASlowDaemonHoldsNodesBack(t *testing.T) {
	m := newMachine(t)
	hold := make(chan struct{})
	m.store.hold = hold
	nodes := []*node{m.node("cn1", nil), m.node("cn2", nil)}
	for _, n := range nodes {
		until(t, "the node is connected", func() bool { _, ok := m.hub.Way(n.name); return ok })
		n.large(t, 1000)
	}
	// The daemon takes 64 messages of each, and parks what the window lets through.
	until(t, "the gatherer waits for the daemon", func() bool { return m.gathering.State().Bytes > 2*100<<10 })
	for range 20 {
		if s := m.gathering.State(); s.Waiting > 1<<20 || s.Bytes > 2*(64*2000+4*wire.Window) {
			t.Fatalf("%d bytes wait in the gatherer, %d have passed", s.Waiting, s.Bytes)
		}
		time.Sleep(5 * time.Millisecond)
	}
	close(hold)
	for _, n := range nodes {
		until(t, "all seconds are acknowledged", func() bool { return n.spool.Pending() == 0 })
		if way, _ := m.hub.Way(n.name); m.store.has(n.name) != 1000 || n.spool.Dropped() > 0 || way.Gatherer == "" {
			t.Errorf("%s: %d seconds, %d dropped, %+v", n.name, m.store.has(n.name), n.spool.Dropped(), way)
		}
	}
}

// TestOneNodeHoldsUpNoOther has a node that brings more than its token may: only its own seconds wait.
func TestOneNodeHoldsUpNoOther(t *testing.T) {
	m := newMachine(t)
	eager, other := m.node("eager", nil), m.node("cn1", nil)
	eager.seconds(t, 400)
	for _, n := range []*node{eager, other} {
		until(t, "the node is connected", func() bool { _, ok := m.hub.Way(n.name); return ok })
	}
	other.seconds(t, 100)
	until(t, "the other's seconds are acknowledged", func() bool { return other.spool.Pending() == 0 })
	if eager.spool.Pending() == 0 {
		t.Error("the eager node was not held up: the test shows nothing")
	}
}
