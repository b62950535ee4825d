// Package agent moves compute nodes by an order to the agent of each: the agent moves the node in the way that it is
// configured for.
package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
)

// Driver orders agents about. It is safe to repeat: an order says which forwarder the node must
// use, and a mount that uses it already changes nothing.
type Driver struct {
	agents *driver.Orders
	// addr returns where a forwarder's file service listens, HOST:PORT.
	addr func(topology.ForwarderID) (string, bool)
	fan  driver.Fan
	made time.Time
	// routers are those whose messages verify the moves of nodes with LNet; nil: they are not verified here.
	routers func() []topology.NodeID
	// servers are those that choose the routers of such nodes' data; nil: they are left alone.
	servers func() []topology.NodeID
}

var _ remap.Driver = (*Driver)(nil)

// New returns a driver over agents; addr returns the forwarders' addresses.
func New(agents driver.Orderer, addr func(topology.ForwarderID) (string, bool), fan driver.Fan) *Driver {
	return &Driver{agents: driver.NewOrders(agents), addr: addr, fan: fan, made: time.Now()}
}

// Preview fails for the first move whose node has no agent or whose target has no address.
func (d *Driver) Preview(ctx context.Context, p remap.Plan) ([]string, error) {
	for _, m := range p.Moves {
		if _, ok := d.addr(m.To); !ok {
			return nil, fmt.Errorf("%s -> %s: the address of %s is not configured (set addr of its [[node]])", m.Node,
				m.To, m.To)
		}
		if !d.agents.Connected(m.Node) {
			return nil, fmt.Errorf("%s -> %s: no agent of %s is connected", m.Node, m.To, m.Node)
		}
	}
	ways, err := d.ways(ctx, p.Moves)
	if err != nil {
		return nil, err
	}
	says, err := d.try(ctx, &p)
	if err != nil {
		return nil, err
	}
	var how []string
	for _, way := range ways {
		how = append(how, sentenceOf(way, p.Force))
		if way == wire.WayLNet {
			if s := d.steerSentence(ctx); s != "" {
				how[len(how)-1] = s
			}
		}
	}
	return append(how, says...), nil
}

// try has the first nodes of a plan that are moved by mounting anew try it as far as nothing changes, and returns what
// the moves would do to programs there.
func (d *Driver) try(ctx context.Context, p *remap.Plan) (says []string, err error) {
	var mu sync.Mutex
	once := d.fan
	once.Tries = 1
	_ = once.Each(ctx, p.Moves[:min(len(p.Moves), previewed)], func(ctx context.Context, m remap.Move) error {
		at, e := d.order(ctx, m.Node, wire.OrderRoute, "way", wire.RouteOrder{Node: m.Node})
		if e != nil || at.Way != wire.WayRemount || m.To == "" {
			return nil
		}
		addr, _ := d.addr(m.To)
		got, e := driver.Ask[wire.TryAnswer](ctx, d.agents, m.Node, wire.OrderTry, p.ID,
			wire.RemapOrder{Node: m.Node, Forwarder: m.To, Addr: addr, Force: p.Force})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case e != nil && (err == nil || err.Error() > e.Error()): // the same one each time
			err = fmt.Errorf("%s -> %s: tried: %w", m.Node, m.To, e)
		case e == nil && got.Says != "":
			says = append(says, fmt.Sprintf("%s: %s", m.Node, got.Says))
		}
		return nil
	}, func(remap.Result) {})
	slices.Sort(says)
	return says, err
}

// Apply orders every node of p to its new forwarder.
func (d *Driver) Apply(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	if d.routers == nil {
		return d.each(ctx, p, p.Moves, report, nil)
	}
	var mu sync.Mutex
	var lnet []*moved
	to := map[topology.NodeID]remap.Move{}
	for _, m := range p.Moves {
		to[m.Node] = m
	}
	ways := map[topology.NodeID]string{}
	alone := spread(d.steer(ctx, p.Moves, false))
	err := d.each(ctx, p, p.Moves, func(r remap.Result) {
		mu.Lock()
		if r.OK && ways[r.Node] == wire.WayLNet {
			lnet = append(lnet, &moved{move: to[r.Node], result: r})
			mu.Unlock()
			return
		}
		mu.Unlock()
		report(r)
	}, func(n topology.NodeID, way string) {
		mu.Lock()
		defer mu.Unlock()
		ways[n] = way
	})
	if len(lnet) > 0 {
		d.verify(ctx, lnet, func(r remap.Result) {
			if !r.OK {
				r.Error += alone
			}
			report(r)
		})
	}
	return err
}

// Restore orders every node of p back to its old forwarder.
func (d *Driver) Restore(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	alone := spread(d.steer(ctx, p.Moves, true))
	return d.each(ctx, p, driver.Back(p.Moves), func(r remap.Result) {
		if r.OK && alone != "" {
			r.OK, r.Error = false, "the node is back"+alone
		}
		report(r)
	}, nil)
}

// each orders nodes; answered, unless nil, gets the way in which each was moved.
func (d *Driver) each(ctx context.Context, p remap.Plan, moves []remap.Move, report func(remap.Result),
	answered func(topology.NodeID, string)) error {
	d.awaitAgents(ctx, moves)
	var mu sync.Mutex
	left := map[topology.NodeID]string{}
	return d.fan.Each(ctx, moves, func(ctx context.Context, m remap.Move) error {
		if m.To == "" && m.Spread != "" {
			over := (&remap.Move{Spread: m.Spread}).Sources()
			got, err := d.order(ctx, m.Node, wire.OrderRemap, p.ID, wire.RemapOrder{Node: m.Node, Spread: over})
			if err == nil && !slices.Equal(got.Spread, over) {
				err = fmt.Errorf("%s says that it spreads over %v, not over %v", m.Node, got.Spread, over)
			}
			return err
		}
		addr, ok := d.addr(m.To)
		if !ok {
			return fmt.Errorf("%w: the address of %s is not configured", driver.ErrPermanent, m.To)
		}
		got, err := d.order(ctx, m.Node, wire.OrderRemap, p.ID, wire.RemapOrder{Node: m.Node, Forwarder: m.To,
			Addr: addr, Force: p.Force})
		if err == nil && got.Forwarder != m.To {
			err = fmt.Errorf("the mount of %s says that it uses %s, not %s", m.Node, got.Forwarder, m.To)
		}
		if err == nil && answered != nil {
			answered(m.Node, got.Way)
		}
		if err == nil && got.Left != "" {
			mu.Lock()
			left[m.Node] = got.Left
			mu.Unlock()
		}
		return err
	}, func(r remap.Result) {
		mu.Lock()
		r.Left = left[r.Node]
		mu.Unlock()
		if r.OK && r.Left != "" {
			r.OK, r.Error = false, fmt.Sprintf("moved, but programs go on with what it was moved from (%s): complete "+
				"the plan when they have ended", r.Left)
		}
		report(r)
	})
}

// awaitAgents waits until the nodes' agents are connected, if the daemon has just begun: they come back one after
// another, and until then a gateway may report where a node is whose agent is still missing.
func (d *Driver) awaitAgents(ctx context.Context, moves []remap.Move) {
	const back, look = 30 * time.Second, 100 * time.Millisecond // an agent's longest pause between two tries is 22.5 s
	missing := func(m remap.Move) bool { return !d.agents.Connected(m.Node) }
	for time.Since(d.made) < back && ctx.Err() == nil && slices.ContainsFunc(moves, missing) {
		select {
		case <-time.After(look):
		case <-ctx.Done():
		}
	}
}

// order sends one order about a route and reads its answer.
func (d *Driver) order(ctx context.Context, n topology.NodeID, kind, plan string, body any) (wire.RouteAnswer, error) {
	return driver.Ask[wire.RouteAnswer](ctx, d.agents, n, kind, plan, body)
}

// Observe asks the nodes' mounts; a node that does not answer is absent, and the error names one.
func (d *Driver) Observe(ctx context.Context, nodes []topology.NodeID) (topology.Mapping, error) {
	moves := make([]remap.Move, len(nodes))
	for i, n := range nodes {
		moves[i].Node = n
	}
	var mu sync.Mutex
	found := topology.Mapping{}
	var failed error
	err := d.fan.Each(ctx, moves, func(ctx context.Context, m remap.Move) error {
		got, err := d.order(ctx, m.Node, wire.OrderRoute, "route", wire.RouteOrder{Node: m.Node})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			found[m.Node] = got.Forwarder
		}
		return err
	}, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		if !r.OK && failed == nil {
			failed = fmt.Errorf("%s: %s", r.Node, r.Error)
		}
	})
	if err == nil {
		err = failed
	}
	return found, err
}
