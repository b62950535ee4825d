// Package lnet is the end of a remap on nodes that reach another net through LNet routers: clients, and the servers,
// which choose the router of all bulk data. There are three ways:
//
//   - Avoid puts the routes over a router behind the others, on every node that has one: the router drains.
//   - Steer prefers one router for what goes to single nodes or a net, by a rule (udsp, Lustre 2.15 and later).
//   - Move without rules replaces the node's own route. On a client that moves its requests and what rides in them (up
//     to 16 KiB); the servers still choose the router of the data.
//
// It speaks to the kernel through lnetctl, and keeps a journal of what it changed, so that exactly that is undone.
package lnet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// Mover changes this node's route to one net.
type Mover struct {
	Net string // the file system's, such as o2ib1
	// Gateways are the forwarders' network ids, such as 10.0.0.1@tcp. Routes over others are left alone.
	Gateways map[topology.ForwarderID]string
	Run      node.Command // nil: mover.Exec
	Journal  string       // the file that says what was changed; empty: it is not kept

	mu   sync.Mutex // guards the kernel's tables and kept
	kept kept
}

var _ node.Mover = (*Mover)(nil)

// route is one line of the kernel's table.
type route struct {
	gateway  string
	hops     int
	priority int
	down     bool
}

func (m *Mover) lnetctl(ctx context.Context, args ...string) ([]byte, error) {
	run := m.Run
	if run == nil {
		run = node.Exec
	}
	return run(ctx, append([]string{"lnetctl"}, args...)...)
}

func (m *Mover) forwarderOf(gateway string) (topology.ForwarderID, bool) {
	return node.ByAddress(m.Gateways, gateway)
}

// dropsAsymmetric says whether the node drops what comes over a router that it has no route over.
func (m *Mover) dropsAsymmetric(ctx context.Context) (bool, error) {
	out, err := m.lnetctl(ctx, "global", "show")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(out)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key == "drop_asym_route" {
			return strings.TrimSpace(value) != "0", nil
		}
	}
	return false, nil // older releases have no such setting
}

// table reads the routes over known gateways.
func (m *Mover) table(ctx context.Context) ([]route, error) {
	out, err := m.lnetctl(ctx, "route", "show", "--net", m.Net, "--verbose")
	if err != nil {
		return nil, err
	}
	all, err := parseRoutes(string(out))
	if err != nil {
		return nil, fmt.Errorf("lnetctl route show: %w", err)
	}
	var known []route
	for _, r := range all {
		if _, ok := node.ByAddress(m.Gateways, r.gateway); ok {
			known = append(known, r)
		}
	}
	return known, nil
}

// parseRoutes reads the routes of lnetctl's YAML: entries under "route:", each a list of "key: value".
func parseRoutes(text string) (routes []route, err error) {
	var r *route
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if entry, ok := strings.CutPrefix(line, "- "); ok {
			routes = append(routes, route{})
			r, line = &routes[len(routes)-1], entry
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || r == nil {
			continue
		}
		switch value = strings.TrimSpace(value); key {
		case "gateway":
			r.gateway = value
		case "hop", "priority":
			v, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("line %d: %s %q is not a number", n+1, key, value)
			}
			if key == "hop" {
				r.hops = v
			} else {
				r.priority = v
			}
		case "state":
			r.down = value == "down"
		}
	}
	return routes, nil
}

// best is the route that LNet prefers: up before down, then the lowest priority, then the first.
func best(routes []route) (b route, ok bool) {
	for _, r := range routes {
		if !ok || b.down && !r.down || b.down == r.down && r.priority < b.priority {
			b, ok = r, true
		}
	}
	return b, ok
}

// Way is how it moves the node.
func (*Mover) Way() string { return wire.WayLNet }

// Route says over which forwarder the net is reached.
func (m *Mover) Route(ctx context.Context) (wire.RouteAnswer, error) {
	routes, err := m.table(ctx)
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	b, ok := best(routes)
	if !ok {
		return wire.RouteAnswer{}, fmt.Errorf("%w: no route to %s over a known gateway", node.ErrNoRoute, m.Net)
	}
	f, _ := node.ByAddress(m.Gateways, b.gateway)
	return wire.RouteAnswer{Forwarder: f}, nil
}

// Move adds the route over o.Forwarder at the best priority and then removes the other known ones. If
// the new one cannot be added the old ones stay.
func (m *Mover) Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error) {
	want, ok := m.Gateways[o.Forwarder]
	if !ok {
		return wire.RouteAnswer{},
			fmt.Errorf("no gateway for %s: set it in [orders.forwarders]", o.Forwarder)
	}
	routes, err := m.table(ctx)
	if err != nil {
		return wire.RouteAnswer{}, err
	}
	there := false
	for _, r := range routes {
		there = there || r.gateway == want && r.priority == 0
	}
	if !there {
		// A route's priority cannot be changed: one over the same gateway goes first.
		for _, r := range routes {
			if r.gateway == want {
				if _, err := m.lnetctl(ctx, "route", "del", "--net", m.Net, "--gateway", want); err != nil {
					return wire.RouteAnswer{}, err
				}
			}
		}
		if _, err := m.lnetctl(ctx, "route", "add", "--net", m.Net, "--gateway", want, "--priority", "0"); err != nil {
			return wire.RouteAnswer{}, err
		}
	}
	var errs []error
	for _, r := range routes {
		if r.gateway != want {
			if _, err := m.lnetctl(ctx, "route", "del", "--net", m.Net, "--gateway", r.gateway); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return wire.RouteAnswer{}, fmt.Errorf("the new route is there, and an old one stays: %w", err)
	}
	return m.Route(ctx)
}
