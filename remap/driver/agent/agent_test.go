package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/conform/drivertest"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
)

// agents stand for many agents: each keeps its node's route and answers orders.
type agents struct {
	mu      sync.Mutex // guards everything that follows
	at      topology.Mapping
	changes int
	broken  map[topology.NodeID]bool
	hung    map[topology.NodeID]chan struct{}
	seen    map[string]bool
}

func (a *agents) Connected(n topology.NodeID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.at[n]
	return ok
}

func (a *agents) Order(ctx context.Context, n topology.NodeID, o wire.Order) (wire.OrderResult, error) {
	a.mu.Lock()
	hung := a.hung[n]
	a.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-ctx.Done():
			return wire.OrderResult{}, ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.seen[o.ID]:
		return wire.OrderResult{}, errors.New("order id used twice: " + o.ID)
	case ctx.Err() != nil:
		return wire.OrderResult{}, ctx.Err()
	}
	a.seen[o.ID] = true
	if a.broken[n] {
		return wire.OrderResult{ID: o.ID, Err: "mount: connection refused"}, nil
	}
	if o.Kind == wire.OrderRemap {
		var r wire.RemapOrder
		if err := json.Unmarshal(o.Body, &r); err != nil {
			return wire.OrderResult{}, err
		}
		if r.Node != n {
			return wire.OrderResult{ID: o.ID, Err: "order for " + string(r.Node) + " came to " + string(n)}, nil
		}
		if r.Addr != "addr-of-"+string(r.Forwarder)+":564" {
			return wire.OrderResult{ID: o.ID, Err: "wrong address " + r.Addr}, nil
		}
		if a.at[n] != r.Forwarder {
			a.at[n] = r.Forwarder
			a.changes++
		}
	}
	body, err := json.Marshal(wire.RouteAnswer{Forwarder: a.at[n], Generation: 1})
	return wire.OrderResult{ID: o.ID, OK: true, Body: body}, err
}

func addr(f topology.ForwarderID) (string, bool) {
	return fmt.Sprintf("addr-of-%s:564", f), strings.HasPrefix(string(f), "fwd")
}

func newAgents(n int) (*agents, []remap.Move) {
	a := &agents{at: topology.Mapping{}, broken: map[topology.NodeID]bool{}, hung: map[topology.NodeID]chan struct{}{},
		seen: map[string]bool{}}
	var moves []remap.Move
	for i := range n {
		node := topology.NodeID(fmt.Sprintf("cn%d", i))
		a.at[node] = "fwd1"
		moves = append(moves, remap.Move{Node: node, From: "fwd1", To: "fwd2"})
	}
	return a, moves
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		a, moves := newAgents(40)
		lock := func(f func()) { a.mu.Lock(); defer a.mu.Unlock(); f() }
		return drivertest.Subject{
			Driver: New(a, addr, driver.Fan{Parallel: 8, Tries: 2, Backoff: time.Millisecond,
				Timeout: 5 * time.Second}),
			Moves:   moves,
			At:      func(*testing.T) (m topology.Mapping) { lock(func() { m = a.at.Clone() }); return m },
			Changes: func() (n int) { lock(func() { n = a.changes }); return n },
			Break:   func(_ *testing.T, n topology.NodeID) { lock(func() { a.broken[n] = true }) },
			Hang:    func(_ *testing.T, n topology.NodeID) { lock(func() { a.hung[n] = make(chan struct{}) }) },
			Mend: func(_ *testing.T, n topology.NodeID) {
				lock(func() {
					delete(a.broken, n)
					if c := a.hung[n]; c != nil {
						close(c)
						delete(a.hung, n)
					}
				})
			},
		}
	})
}

func TestPreviewNamesWhatCannotBe(t *testing.T) {
	a, moves := newAgents(2)
	d := New(a, addr, driver.DefaultFan())
	moves[1].Node = "cn77"
	_, err := d.Preview(t.Context(), remap.Plan{Moves: moves})
	if err == nil || !strings.Contains(err.Error(), "cn77 -> fwd2: no agent of cn77 is connected") {
		t.Errorf("error %v", err)
	}
}

// TestAgentsComeBackAfterARestart takes nodes back right after the daemon began: one agent comes after ten seconds, one
// never, and a plan of later does not wait for it.
func TestAgentsComeBackAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, moves := newAgents(3)
		delete(a.at, "cn1")
		delete(a.at, "cn2")
		time.AfterFunc(10*time.Second, func() { a.mu.Lock(); defer a.mu.Unlock(); a.at["cn1"] = "fwd1" })
		d := New(gone{a}, addr, driver.DefaultFan())
		begun := time.Now()
		var mu sync.Mutex
		for _, within := range []time.Duration{32 * time.Second, 2 * time.Second} {
			got := map[topology.NodeID]bool{}
			err := d.Apply(t.Context(), remap.Plan{ID: "P-000001", Moves: moves}, func(r remap.Result) {
				mu.Lock()
				defer mu.Unlock()
				got[r.Node] = r.OK
			})
			if err != nil || !got["cn0"] || !got["cn1"] || got["cn2"] {
				t.Errorf("moved %v, %v", got, err)
			}
			if took := time.Since(begun); took > within {
				t.Errorf("took %s, want %s at most", took, within)
			}
			begun = time.Now()
		}
	})
}

// gone has no answer of agents that are not connected.
type gone struct{ *agents }

func (g gone) Order(ctx context.Context, n topology.NodeID, o wire.Order) (wire.OrderResult, error) {
	if !g.Connected(n) {
		return wire.OrderResult{}, errors.New("no agent connected")
	}
	return g.agents.Order(ctx, n, o)
}

// TestManyNodesWithFailures orders 16,384 nodes, of which one in a hundred fails, and wants every
// one accounted for.
func TestManyNodesWithFailures(t *testing.T) {
	const n = 16384
	a, moves := newAgents(n)
	for i := 0; i < n; i += 100 {
		a.broken[moves[i].Node] = true
	}
	d := New(a, addr, driver.Fan{Parallel: 256, Tries: 2, Backoff: time.Millisecond, Timeout: 5 * time.Second})
	var mu sync.Mutex
	ok, failed := 0, 0
	begun := time.Now()
	err := d.Apply(t.Context(), remap.Plan{ID: "P-000001", Moves: moves}, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.OK:
			ok++
		case a.broken[r.Node] && r.Tries == 2 && strings.Contains(r.Error, "connection refused"):
			failed++
		default:
			t.Errorf("%+v", r)
		}
	})
	if want := (n + 99) / 100; err != nil || failed != want || ok != n-want {
		t.Errorf("ok %d, failed %d, %v", ok, failed, err)
	}
	t.Logf("%d nodes in %s", n, time.Since(begun).Round(time.Millisecond))
}
