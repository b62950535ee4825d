// Package lnet is the end of a remap on nodes that reach another net through LNet routers: clients, and the servers,
// which choose the router of all bulk data. There are three ways:
//
//   - Avoid puts the routes over a router behind the others, on every node that has one: the router drains.
//   - Steer prefers one router for what goes to single nodes or a net, by a rule (udsp, Lustre 2.15 and later).
//   - Move without rules puts the node's own routes over other routers behind the one that it is moved to. On a client
//     that moves its requests and what rides in them (up to 16 KiB); the servers still choose the router of the data.
//
// It speaks to the kernel through lnetctl, and keeps a journal of what it changed, so that exactly that is undone.
package lnet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"fairway/collector/source/lnet"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// Kernel is the node's tables of routes and rules, read and changed through lnetctl.
type Kernel struct {
	Net string // the file system's, such as o2ib1
	// Gateways are the forwarders' network ids, such as 10.0.0.1@tcp. Routes over others are left alone.
	Gateways map[topology.ForwarderID]string
	Run      node.Command // nil: node.Exec
}

// Mover changes this node's route to one net.
type Mover struct {
	Kernel
	Journal string // the file that says what was changed; empty: it is not kept

	mu    sync.Mutex // guards the kernel's tables and kept
	kept  kept
	ruled atomic.Pointer[ruled] // of kept, for who does not wait for an order; nil: the journal was not read yet
}

// ruled is the router that the node was moved to by a rule, and what the rule calls it.
type ruled struct {
	to  topology.ForwarderID
	rte string
}

// set makes something what is kept.
func (m *Mover) set(k *kept) {
	m.kept = *k
	m.ruled.Store(&ruled{k.Ruled, k.Rules[m.Net]})
}

var _ node.Mover = (*Mover)(nil)

// route is one line of the kernel's table.
type route struct {
	gateway  string
	hops     int
	priority int
	down     bool
}

func (k *Kernel) lnetctl(ctx context.Context, args ...string) ([]byte, error) {
	return k.Run.Do(ctx, append([]string{"lnetctl"}, args...)...)
}

// dropsAsymmetric says whether the node drops what comes over a router that it has no route over.
func dropsAsymmetric(ctx context.Context, lnetctl node.Command) (bool, error) {
	out, err := lnetctl(ctx, "global", "show")
	if err != nil {
		return false, err
	}
	value, has, err := lnet.ParseGlobal(out, "drop_asym_route")
	if err != nil {
		return false, fmt.Errorf("lnetctl global show: %w", err)
	}
	return has && value != "0", nil // older releases have no such setting
}

// table reads the routes over known gateways.
func (k *Kernel) table(ctx context.Context) ([]route, error) {
	out, err := k.lnetctl(ctx, "route", "show", "--net", k.Net, "--verbose")
	if err != nil {
		return nil, err
	}
	all, err := lnet.ParseRouteShow(out)
	if err != nil {
		return nil, fmt.Errorf("lnetctl route show: %w", err)
	}
	var known []route
	for _, r := range all {
		if _, ok := node.ByAddress(k.Gateways, r.Router); ok {
			known = append(known, route{gateway: r.Router, hops: r.Hops, priority: r.Priority, down: r.State == "down"})
		}
	}
	return known, nil
}

// far is how far a route's other end is: a route that says nothing is direct.
func (r *route) far() int { return max(1, r.hops) }

// used are the routes that LNet chooses among: of those that are up, or, where none is, of all, those of the lowest
// priority and, of these, the fewest hops.
func used(routes []route) (best []route) {
	for _, r := range routes {
		if len(best) > 0 {
			b := &best[0]
			order := cmp.Or(cmp.Compare(boolInt(r.down), boolInt(b.down)), cmp.Compare(r.priority, b.priority),
				cmp.Compare(r.far(), b.far()))
			if order > 0 {
				continue
			}
			if order < 0 {
				best = best[:0]
			}
		}
		best = append(best, r)
	}
	return best
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Way is how it moves the node.
func (*Mover) Way() string { return wire.WayLNet }

// Route says over which forwarder the net is reached, or over which several alike.
func (m *Mover) Route(ctx context.Context) (wire.RouteAnswer, error) {
	routes, err := m.table(ctx)
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	if to, err := m.byRule(ctx, routes); err != nil || to != "" {
		return wire.RouteAnswer{Forwarder: to}, err
	}
	over := overOf(m.Gateways, routes)
	switch len(over) {
	case 0:
		return wire.RouteAnswer{}, fmt.Errorf("%w: no route to %s over a known gateway", node.ErrNoRoute, m.Net)
	case 1:
		return wire.RouteAnswer{Forwarder: over[0]}, nil
	}
	return wire.RouteAnswer{Spread: over}, nil
}

// overOf names the forwarders of the routes that LNet chooses among, by name.
func overOf(gateways map[topology.ForwarderID]string, routes []route) (out []topology.ForwarderID) {
	for _, r := range used(routes) {
		f, _ := node.ByAddress(gateways, r.gateway)
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// Move has the node prefer o.Forwarder: the routes over its other routers go behind it and stay, so that the node loses
// no way; where no route may be replaced, a rule for the net does it. Where it has no route over o.Forwarder one is
// added. A node that would use it anyway, without what was changed here, has its own table back.
func (m *Mover) Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error) {
	if m.Gateways[o.Forwarder] == "" {
		return wire.RouteAnswer{},
			fmt.Errorf("no gateway for %s: set it in [orders.forwarders]", o.Forwarder)
	}
	if err := m.prefer(ctx, []topology.ForwarderID{o.Forwarder}); err != nil {
		return wire.RouteAnswer{}, err
	}
	return m.Route(ctx)
}

// Spread has the node use all of these routers again, which it did before it was moved.
func (m *Mover) Spread(ctx context.Context, over []topology.ForwarderID) (wire.RouteAnswer, error) {
	if err := m.prefer(ctx, over); err != nil {
		return wire.RouteAnswer{}, err
	}
	return m.Route(ctx)
}

// Handlers are the orders of nodes with LNet beside those that every mover has; without mayMove only those that
// change nothing.
func (m *Mover) Handlers(mayMove bool) map[string]stream.OrderHandler {
	out := map[string]stream.OrderHandler{
		wire.OrderLook: stream.Handler(func(ctx context.Context, _ struct{}) (any, error) { return m.Look(ctx) }),
		wire.OrderTraffic: stream.Handler(func(ctx context.Context, o wire.TrafficOrder) (any, error) {
			return m.Traffic(ctx, o)
		}),
	}
	if mayMove {
		out[wire.OrderAvoid] = stream.Handler(func(ctx context.Context, o wire.AvoidOrder) (any, error) {
			return m.Avoid(ctx, o)
		})
		out[wire.OrderSteer] = stream.Handler(func(ctx context.Context, o wire.SteerOrder) (any, error) {
			return nil, m.Steer(ctx, o)
		})
	}
	return out
}
