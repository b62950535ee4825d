// Package drain has every node with LNet avoid excluded routers, and verifies that by the routers' traffic. It keeps
// the nodes so: one that comes back, or that was restarted, is ordered again.
package drain

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
)

// Config is what drains run on.
type Config struct {
	Agents driver.Orderer
	// Excluded are the forwarders that are to be avoided.
	Excluded func() map[topology.ForwarderID]string
	// Nodes are the machine's, by role.
	Nodes func() map[topology.NodeID]topology.Role
	// Routed is what each router passes now, bytes a second; absent where it is not known.
	Routed func() map[topology.ForwarderID]float64
	Log    *slog.Logger
}

// The rules of a drain.
const (
	every     = time.Second
	again     = time.Minute      // a node that has what it should is asked anew
	retry     = 5 * time.Second  // after a failure
	within    = 10 * time.Second // an order's answer
	parallel  = 64
	window    = 10               // s over which traffic is judged
	patience  = 20 * time.Second // what is queued goes the old way, and drains at the router's own speed
	drained   = 0.01
	leastSeen = 64 << 20 // bytes that the group must have moved in the window, for its shares to mean something
)

// node is what is known of one agent.
type node struct {
	asked   []topology.ForwarderID
	done    bool // it has what was asked
	foreign bool // it has no LNet routes to change
	err     string
	at      time.Time
	busy    bool
}

// Drains keeps the nodes' preferences as the exclusions say.
type Drains struct {
	cfg    Config
	agents *driver.Orders

	mu     sync.Mutex // guards everything that follows
	nodes  map[topology.NodeID]*node
	since  map[topology.ForwarderID]time.Time // of a drain's begin, and of its end
	routed []map[topology.ForwarderID]float64 // newest last, a second each
}

// New makes the drains; Run runs them.
func New(cfg Config) *Drains {
	return &Drains{cfg: cfg, agents: driver.NewOrders(cfg.Agents), nodes: map[topology.NodeID]*node{},
		since: map[topology.ForwarderID]time.Time{}}
}

// Run orders nodes until ctx ends, and returns when all orders have ended.
func (d *Drains) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, parallel)
	pace.Every(ctx, every, every, func(now time.Time) {
		for id, o := range d.due(now) {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				defer func() { <-room }()
				d.order(ctx, id, o)
			})
		}
	})
}

// due takes down what the routers pass, and lists the nodes that must be asked.
func (d *Drains) due(now time.Time) map[topology.NodeID]wire.AvoidOrder {
	want := slices.Sorted(maps.Keys(d.cfg.Excluded()))
	if want == nil {
		want = []topology.ForwarderID{}
	}
	roles, routed := d.cfg.Nodes(), d.cfg.Routed()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routed = append(d.routed, routed)
	d.routed = d.routed[max(0, len(d.routed)-window):]
	for _, f := range want {
		if _, ok := d.since[f]; !ok {
			d.since[f] = now
		}
	}
	maps.DeleteFunc(d.since, func(f topology.ForwarderID, _ time.Time) bool { return !slices.Contains(want, f) })
	out := map[topology.NodeID]wire.AvoidOrder{}
	for id, role := range roles {
		if role == topology.Forwarder {
			continue
		}
		n := d.nodes[id]
		if n == nil {
			n = &node{}
			d.nodes[id] = n
		}
		connected := d.cfg.Agents.Connected(id)
		if !connected {
			n.done, n.foreign, n.asked = false, false, nil // it may have been restarted
			n.err = "no agent is connected"
			continue
		}
		same := n.asked != nil && slices.Equal(n.asked, want)
		wait := retry
		if n.done || n.foreign {
			wait = again
		}
		if n.busy || n.foreign && now.Sub(n.at) < again || same && now.Sub(n.at) < wait {
			continue
		}
		n.busy, n.asked = true, want
		out[id] = wire.AvoidOrder{Forwarders: want}
	}
	return out
}

// order asks one node, and keeps its answer.
func (d *Drains) order(ctx context.Context, id topology.NodeID, o wire.AvoidOrder) {
	err := d.ask(ctx, id, o)
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[id]
	was := n.err
	n.busy, n.at, n.done, n.foreign, n.err = false, time.Now(), err == nil, false, ""
	switch {
	case err == nil:
	case ctx.Err() != nil:
		n.asked = nil
	case strings.Contains(err.Error(), "does not carry out orders of kind"):
		n.foreign = true
	default:
		if n.err = err.Error(); n.err != was && d.cfg.Log != nil {
			d.cfg.Log.Warn("a node does not avoid the excluded routers as it should", "node", id, "err", err)
		}
	}
}

// ask sends one order; its answer says no more than that it was carried out.
func (d *Drains) ask(ctx context.Context, id topology.NodeID, o wire.AvoidOrder) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := d.agents.Send(ctx, id, wire.OrderAvoid, "drain/"+string(id), o)
	return err
}

// Of says how far a router's drain has come; nil where it is not to be drained, or no node has routes to change.
func (d *Drains) Of(f topology.ForwarderID) *remap.Drain {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, ok := d.since[f]
	if !ok {
		return nil
	}
	out := &remap.Drain{Since: since.UTC()}
	roles := d.cfg.Nodes()
	for _, id := range slices.Sorted(maps.Keys(d.nodes)) {
		n := d.nodes[id]
		switch {
		case n.foreign:
			continue
		case n.done && slices.Contains(n.asked, f):
			out.Done++
		case roles[id] == topology.RoleUnknown:
			continue
		default:
			out.Missing = append(out.Missing, id)
			out.Why = cmp.Or(out.Why, n.err)
		}
		out.Nodes++
	}
	if out.Nodes == 0 {
		return nil
	}
	age := time.Since(since)
	if age >= window*time.Second {
		out.Share = d.share(f)
	}
	out.State = stateOf(out, age)
	return out
}

// stateOf names a drain's state: only traffic ends it.
func stateOf(d *remap.Drain, age time.Duration) remap.DrainState {
	gone := d.Share != nil && *d.Share < drained
	switch {
	case len(d.Missing) > 0 && age >= window*time.Second:
		return remap.DrainPartial
	case gone && len(d.Missing) == 0:
		return remap.Drained
	case age < patience || len(d.Missing) > 0:
		return remap.Draining
	case d.Share == nil:
		return remap.DrainQuiet
	}
	return remap.DrainFailed
}

// share is the router's part of what all routers passed in the window, if the window is whole and they passed enough.
func (d *Drains) share(f topology.ForwarderID) *float64 {
	if len(d.routed) < window {
		return nil
	}
	var mine, all float64
	for _, second := range d.routed {
		own, ok := second[f]
		if !ok {
			return nil
		}
		mine += own
		for _, v := range second {
			all += v
		}
	}
	if all < leastSeen {
		return nil
	}
	return new(mine / all)
}
