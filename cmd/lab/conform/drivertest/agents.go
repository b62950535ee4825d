package drivertest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// Agents carry out orders as nodes' agents do, without a network: what a driver that orders agents
// about needs to be tested with what those agents do.
type Agents struct {
	mu     sync.Mutex // guards everything that follows
	nodes  map[topology.NodeID]map[string]stream.OrderHandler
	broken map[topology.NodeID]bool
	hung   map[topology.NodeID]chan struct{}
}

// NewAgents returns agents with the handlers of each node.
func NewAgents(nodes map[topology.NodeID]map[string]stream.OrderHandler) *Agents {
	return &Agents{nodes: nodes, broken: map[topology.NodeID]bool{}, hung: map[topology.NodeID]chan struct{}{}}
}

// Connected says whether there is such a node.
func (a *Agents) Connected(n topology.NodeID) bool { return a.nodes[n] != nil }

// Order has a node's handler carry an order out.
func (a *Agents) Order(ctx context.Context, n topology.NodeID, o wire.Order) (wire.OrderResult, error) {
	a.mu.Lock()
	broken, hung, handle := a.broken[n], a.hung[n], a.nodes[n][o.Kind]
	a.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-ctx.Done():
		}
	}
	switch {
	case ctx.Err() != nil:
		return wire.OrderResult{}, ctx.Err()
	case broken:
		return wire.OrderResult{}, errors.New("the connection was lost before the answer")
	case handle == nil:
		return wire.OrderResult{ID: o.ID, Err: "no such order here"}, nil
	}
	body, err := handle(ctx, o)
	r := wire.OrderResult{ID: o.ID, OK: err == nil, Body: body}
	if err != nil {
		r.Err = err.Error()
	}
	return r, nil
}

// Break, Hang and Mend are those of a Subject.
func (a *Agents) Break(_ *testing.T, n topology.NodeID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken[n] = true
}

// Hang makes a node never answer until it is mended.
func (a *Agents) Hang(_ *testing.T, n topology.NodeID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hung[n] = make(chan struct{})
}

// Mend ends what Break and Hang began.
func (a *Agents) Mend(_ *testing.T, n topology.NodeID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.broken, n)
	if c := a.hung[n]; c != nil {
		close(c)
		delete(a.hung, n)
	}
}
