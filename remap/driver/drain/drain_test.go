package drain

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
)

// machine is three nodes with LNet, one without, and two routers.
type machine struct {
	mu       sync.Mutex // guards everything that follows
	gone     map[topology.NodeID]bool
	refuse   map[topology.NodeID]string
	avoids   map[topology.NodeID][]topology.ForwarderID
	orders   int
	excluded map[topology.ForwarderID]string
	routed   map[topology.ForwarderID]float64
}

func (m *machine) Connected(n topology.NodeID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.gone[n]
}

func (m *machine) Order(_ context.Context, n topology.NodeID, o wire.Order) (wire.OrderResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var body wire.AvoidOrder
	if err := json.Unmarshal(o.Body, &body); err != nil || o.Kind != wire.OrderAvoid {
		return wire.OrderResult{}, errors.New("not an order that a test knows")
	}
	m.orders++
	if why := m.refuse[n]; why != "" {
		return wire.OrderResult{Err: why}, nil
	}
	m.avoids[n] = body.Forwarders
	return wire.OrderResult{OK: true}, nil
}

func (m *machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// run runs f beside drains in fake time.
func run(t *testing.T, f func(t *testing.T, m *machine, d *Drains)) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{gone: map[topology.NodeID]bool{}, refuse: map[topology.NodeID]string{
			"cn9": `this agent does not carry out orders of kind "lnet-avoid"`},
			avoids:   map[topology.NodeID][]topology.ForwarderID{},
			excluded: map[topology.ForwarderID]string{}, routed: map[topology.ForwarderID]float64{"r1": 50e6,
				"r2": 50e6}}
		d := New(Config{Agents: m,
			Excluded: func() map[topology.ForwarderID]string {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.excluded
			},
			Nodes: func() map[topology.NodeID]topology.Role {
				return map[topology.NodeID]topology.Role{"cn1": topology.Compute, "cn9": topology.Compute,
					"oss1": topology.Storage, "mds1": topology.Metadata, "r1": topology.Forwarder,
					"r2": topology.Forwarder}
			},
			Routed: func() map[topology.ForwarderID]float64 {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.routed
			}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.Run(ctx); close(ended) }()
		f(t, m, d)
		stop()
		<-ended
	})
}

func wantState(t *testing.T, d *Drains, want remap.DrainState, words ...string) {
	t.Helper()
	got := d.Of("r2")
	if got == nil || got.State != want {
		t.Fatalf("%+v, want %s", got, want)
	}
	for _, w := range words {
		if !strings.Contains(got.String(), w) {
			t.Errorf("%q does not hold %q", got, w)
		}
	}
}

func TestDrainIsVerifiedByTraffic(t *testing.T) {
	run(t, func(t *testing.T, m *machine, d *Drains) {
		time.Sleep(3 * time.Second)
		if d.Of("r2") != nil {
			t.Error("a drain of a router that is not excluded")
		}
		m.set(func() { m.excluded = map[topology.ForwarderID]string{"r2": "slow"} })
		time.Sleep(3 * time.Second)
		wantState(t, d, remap.Draining, "3 of 3 nodes")
		for _, n := range []topology.NodeID{"cn1", "oss1", "mds1"} {
			if !slices.Equal(m.avoids[n], []topology.ForwarderID{"r2"}) {
				t.Errorf("%s avoids %v", n, m.avoids[n])
			}
		}
		time.Sleep(30 * time.Second)
		wantState(t, d, remap.DrainFailed, "50.0 %")
		m.set(func() { m.routed = map[topology.ForwarderID]float64{"r1": 100e6, "r2": 1e3} })
		time.Sleep(12 * time.Second)
		wantState(t, d, remap.Drained)
		m.set(func() { m.routed = map[topology.ForwarderID]float64{"r1": 1e3, "r2": 0} })
		time.Sleep(12 * time.Second)
		wantState(t, d, remap.DrainQuiet)
		m.set(func() { m.excluded = nil })
		time.Sleep(3 * time.Second)
		if d.Of("r2") != nil || len(m.avoids["oss1"]) != 0 {
			t.Errorf("after the return: %+v, oss1 avoids %v", d.Of("r2"), m.avoids["oss1"])
		}
	})
}

func TestANodeThatCannotBeOrderedIsNamed(t *testing.T) {
	run(t, func(t *testing.T, m *machine, d *Drains) {
		m.set(func() {
			m.excluded = map[topology.ForwarderID]string{"r2": "slow"}
			m.gone["oss1"] = true
			m.refuse["mds1"] = "drop_asym_route is 1"
		})
		time.Sleep(15 * time.Second)
		wantState(t, d, remap.DrainPartial, "1 of 3 nodes", "not mds1, oss1", "drop_asym_route is 1", "50.0 %")
		m.set(func() { delete(m.gone, "oss1"); delete(m.refuse, "mds1") })
		time.Sleep(10 * time.Second)
		if got := d.Of("r2"); got.Done != 3 {
			t.Errorf("%+v: those that came back were not ordered", got)
		}
		was, is := 0, 0
		m.set(func() { was = m.orders })
		time.Sleep(50 * time.Second)
		if m.set(func() { is = m.orders }); is > was+8 {
			t.Errorf("%d further orders to nodes that have what they should", is-was)
		}
	})
}
