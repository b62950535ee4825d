// Package agent moves compute nodes by an order to the agent of each: the agent moves the node in the way that it is
// configured for.
package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/collector/pace"
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
	first := p.Moves[:min(len(p.Moves), previewed)]
	routes := once(ctx, d, remap.NodesOf(first),
		func(ctx context.Context, n topology.NodeID) (wire.RouteAnswer, error) {
			return d.order(ctx, n, wire.OrderRoute, "way", wire.RouteOrder{Node: n})
		})
	ways, err := waysOf(first, routes)
	if err != nil {
		return nil, err
	}
	says, err := d.try(ctx, &p, first, routes)
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

// once asks nodes for what a plan has to know of them, one time each; those that do not answer are absent.
func once[A any](ctx context.Context, d *Driver, nodes []topology.NodeID,
	ask func(context.Context, topology.NodeID) (A, error)) map[topology.NodeID]A {
	fan := d.fan
	fan.Tries, fan.Timeout = 1, max(fan.Timeout, time.Second)
	got, _ := driver.Gather(ctx, fan, nodes, ask)
	return got
}

// try has those of a plan's first nodes that are moved by mounting anew try it as far as nothing changes, and returns
// what the moves would do to programs there.
func (d *Driver) try(ctx context.Context, p *remap.Plan, first []remap.Move,
	routes map[topology.NodeID]wire.RouteAnswer) (says []string, err error) {
	first = slices.DeleteFunc(slices.Clone(first), func(m remap.Move) bool {
		return routes[m.Node].Way != wire.WayRemount || m.To == ""
	})
	type tried struct {
		wire.TryAnswer
		err error
	}
	to := map[topology.NodeID]topology.ForwarderID{}
	for _, m := range first {
		to[m.Node] = m.To
	}
	all := once(ctx, d, remap.NodesOf(first), func(ctx context.Context, n topology.NodeID) (t tried, _ error) {
		addr, _ := d.addr(to[n])
		t.TryAnswer, t.err = driver.Ask[wire.TryAnswer](ctx, d.agents, n, wire.OrderTry, p.ID,
			wire.RemapOrder{Node: n, Forwarder: to[n], Addr: addr, Force: p.Force})
		return t, nil
	})
	for _, n := range slices.Sorted(maps.Keys(all)) {
		switch t := all[n]; {
		case t.err != nil:
			return says, fmt.Errorf("%s -> %s: tried: %w", n, to[n], t.err)
		case t.Says != "":
			says = append(says, fmt.Sprintf("%s: %s", n, t.Says))
		}
	}
	return says, nil
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
		pace.Wait(ctx, look)
	}
}

// order sends one order about a route and reads its answer.
func (d *Driver) order(ctx context.Context, n topology.NodeID, kind, plan string, body any) (wire.RouteAnswer, error) {
	return driver.Ask[wire.RouteAnswer](ctx, d.agents, n, kind, plan, body)
}

// Observe asks the nodes' mounts; a node that does not answer is absent, and the error names one.
func (d *Driver) Observe(ctx context.Context, nodes []topology.NodeID) (topology.Mapping, error) {
	found := topology.Mapping{}
	route := func(ctx context.Context, n topology.NodeID) (wire.RouteAnswer, error) {
		return d.order(ctx, n, wire.OrderRoute, "route", wire.RouteOrder{Node: n})
	}
	all, err := driver.Gather(ctx, d.fan, nodes, route)
	for n, a := range all {
		found[n] = a.Forwarder
	}
	return found, err
}
