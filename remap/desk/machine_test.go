package desk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
)

// testMachine is a machine in memory and its driver: compute nodes with a forwarder each, nodes
// that refuse, and a count of the changes that really happened.
type testMachine struct {
	mu      sync.Mutex // guards everything that follows
	at      topology.Mapping
	start   topology.Mapping
	gen     map[topology.NodeID]uint64
	changes map[topology.NodeID]int
	orders  int
	fails   map[topology.NodeID]int // that many orders still fail
	blind   map[topology.NodeID]bool
	late    time.Duration // how old the forwarders' data is
	exclude map[topology.ForwarderID]string
	unknown topology.ForwarderID // whose load nobody knows
	gate    chan struct{}        // when set, each order waits for one token
}

func newTestMachine(nodes, forwarders int) *testMachine {
	m := &testMachine{at: topology.Mapping{}, gen: map[topology.NodeID]uint64{}, changes: map[topology.NodeID]int{},
		fails: map[topology.NodeID]int{}, blind: map[topology.NodeID]bool{}, exclude: map[topology.ForwarderID]string{}}
	for i := range nodes {
		m.at[node(i)] = forwarder(i * forwarders / nodes)
	}
	m.start = m.at.Clone()
	return m
}

func node(i int) topology.NodeID           { return topology.NodeID(fmt.Sprintf("cn%d", i)) }
func forwarder(i int) topology.ForwarderID { return topology.ForwarderID(fmt.Sprintf("fwd%d", i)) }

func nodes(ids ...int) (out []topology.NodeID) {
	for _, i := range ids {
		out = append(out, node(i))
	}
	return out
}

func (m *testMachine) topology() *topology.Machine {
	t := &topology.Machine{Name: "test", Default: m.start}
	fwds := map[topology.ForwarderID]bool{}
	for n, f := range m.start {
		t.Nodes = append(t.Nodes, topology.Node{ID: n, Role: topology.Compute})
		if !fwds[f] {
			fwds[f] = true
			t.Nodes = append(t.Nodes, topology.Node{ID: f.Node(), Role: topology.Forwarder})
		}
	}
	return t
}

// situation is what a collector would see now.
func (m *testMachine) situation() *remap.Situation {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	p := remap.SituationParts{At: now, Machine: m.topology(), Routes: map[topology.NodeID]window.Route{},
		Load: map[topology.ForwarderID]remap.Load{}, Excluded: map[topology.ForwarderID]string{}}
	for f, why := range m.exclude {
		p.Excluded[f] = why
	}
	for _, f := range m.start {
		p.Load[f] = remap.Load{LastSeen: now.Add(-m.late), ReadBytesPerSec: new(0.0),
			WriteBytesPerSec: new(0.0), MetaOpsPerSec: new(0.0)}
	}
	if m.unknown != "" {
		p.Load[m.unknown] = remap.Load{LastSeen: now}
	}
	for n, f := range m.at {
		if !m.blind[n] {
			p.Routes[n] = window.Route{Forwarder: f, Generation: m.gen[n], At: now, ByMount: true}
		}
	}
	return remap.BuildSituation(p)
}

func (m *testMachine) use(ctx context.Context, n topology.NodeID, f topology.ForwarderID) error {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders++
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.fails[n] > 0:
		m.fails[n]--
		return errors.New("the node does not answer")
	case m.at[n] != f:
		m.at[n] = f
		m.gen[n]++
		m.changes[n]++
	}
	return nil
}

func (m *testMachine) Preview(context.Context, remap.Plan) ([]string, error) { return nil, nil }

func (m *testMachine) Apply(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.each(ctx, p.Moves, func(mv remap.Move) topology.ForwarderID { return mv.To }, report)
}

func (m *testMachine) Restore(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.each(ctx, p.Moves, func(mv remap.Move) topology.ForwarderID { return mv.From }, report)
}

func (m *testMachine) each(ctx context.Context, moves []remap.Move, want func(remap.Move) topology.ForwarderID,
	report func(remap.Result)) error {
	for _, mv := range moves {
		err := m.use(ctx, mv.Node, want(mv))
		r := remap.Result{Node: mv.Node, OK: err == nil, Tries: 1, At: time.Now()}
		if err != nil {
			r.Error = err.Error()
		}
		report(r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (m *testMachine) Observe(_ context.Context, nodes []topology.NodeID) (topology.Mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Clone(), nil
}

func (m *testMachine) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *testMachine) where(n topology.NodeID) topology.ForwarderID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[n]
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
