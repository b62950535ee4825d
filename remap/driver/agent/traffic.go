package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
)

// sentences say what a move does to what a node has under way, by the way in which its agent moves it: as it
// is and forced.
var sentences = map[string][2]string{
	wire.WayMount: {"each mount finishes what is in flight, reopens its files at the new forwarder, and goes on",
		"forced: each mount drops its forwarder at once and repeats what it had asked of it; a hung forwarder " +
			"must be fenced first"},
	wire.WayProxy: {
		"each node's proxy drops its connections and makes new ones to the new forwarder; clients repeat what was " +
			"not answered", ""},
	wire.WayRemount: {"each node mounts anew beside the old mount and puts that in its place; a busy mount is refused",
		"forced: each node detaches a busy mount; programs with open files stay with the old server, and are named"},
	wire.WayLNet: {
		"requests of each node and its I/O up to 16 KiB go over the new router at once, open files stay open; the " +
			"servers still choose the router of its other data, and by that data it is verified", ""},
}

// previewed is how many of a plan's nodes are asked how they would be moved.
const previewed = 64

// waysOf lists how nodes are moved, by what the first of them have answered; an agent that does not say is taken for a
// mount's. A node that uses several forwarders and is moved in a way that knows one at a time cannot be moved: there
// would be no way back.
func waysOf(first []remap.Move, routes map[topology.NodeID]wire.RouteAnswer) (ways []string, err error) {
	seen := map[string]bool{}
	for _, m := range first {
		way := routes[m.Node].Way
		if sentences[way] == [2]string{} {
			way = wire.WayMount
		}
		if seen[way] = true; m.Spread != "" && way != wire.WayLNet {
			return nil, fmt.Errorf("%s uses %s, and is moved in a way that could not give them back (%s)", m.Node,
				m.Spread, way)
		}
	}
	for _, way := range []string{wire.WayMount, wire.WayProxy, wire.WayRemount, wire.WayLNet} {
		if seen[way] {
			ways = append(ways, way)
		}
	}
	return ways, nil
}

func sentenceOf(way string, force bool) string {
	s := sentences[way]
	if force && s[1] != "" {
		return s[1]
	}
	return s[0]
}

// The rules of verification by traffic.
const (
	fewest    = 200 // messages with data from one node that show where it goes
	crossed   = 0.95
	watchFor  = 30 * time.Second
	lookEvery = time.Second
)

// SetRouters has moves of nodes with LNet verified by the messages at these routers: the node's own table says nothing
// of the servers, which choose the router of its data.
func (d *Driver) SetRouters(routers func() []topology.NodeID) { d.routers = routers }

// moved is one move that its node has answered as done.
type moved struct {
	move   remap.Move
	result remap.Result
	nids   []string
}

// verify watches the routers until they have shown where the nodes' data goes, and reports each move.
func (d *Driver) verify(ctx context.Context, all []*moved, report func(remap.Result)) {
	for _, m := range all {
		look, err := ask[wire.LookAnswer](ctx, d, m.move.Node, wire.OrderLook, struct{}{})
		if m.nids = look.NIDs; err != nil {
			m.result.OK, m.result.Error = false, "moved, but its traffic cannot be watched: "+err.Error()
		}
	}
	before := d.traffic(ctx, all)
	for end := time.Now().Add(watchFor); ctx.Err() == nil; {
		pace.Wait(ctx, lookEvery)
		after, last := d.traffic(ctx, all), time.Now().After(end)
		all = slices.DeleteFunc(all, func(m *moved) bool {
			if m.result.OK && !judge(m, before, after, last) {
				return false
			}
			report(m.result)
			return true
		})
		if len(all) == 0 {
			return
		}
	}
	for _, m := range all {
		m.result.OK, m.result.Error = false, "moved, but watching its traffic was cut off"
		report(m.result)
	}
}

// byRouter is the messages with data of each peer at each router.
type byRouter map[topology.NodeID]wire.TrafficAnswer

func (d *Driver) traffic(ctx context.Context, all []*moved) byRouter {
	var nids []string
	for _, m := range all {
		nids = append(nids, m.nids...)
	}
	return once(ctx, d, d.routers(), func(ctx context.Context, n topology.NodeID) (wire.TrafficAnswer, error) {
		return ask[wire.TrafficAnswer](ctx, d, n, wire.OrderTraffic, wire.TrafficOrder{NIDs: nids})
	})
}

// judge says whether a move's traffic has shown where it goes, and puts that into its result. A count is 32 bits wide.
func judge(m *moved, before, after byRouter, last bool) (known bool) {
	counts, sum := map[topology.NodeID]uint64{}, uint64(0)
	for r, now := range after {
		for _, nid := range m.nids {
			b, ok := before[r].Peers[nid]
			if a, there := now.Peers[nid]; ok && there {
				n := uint64(uint32(a.Data) - uint32(b.Data))
				counts[r] += n
				sum += n
			}
		}
	}
	to := topology.NodeID(m.move.To)
	switch _, watched := counts[to]; {
	case sum < fewest && !last:
		return false
	case sum < fewest:
		m.result.OK = false
		m.result.Error = fmt.Sprintf(
			"quiet: its table is right, but only %d messages with data crossed the routers in %s; "+
				"complete the plan when the node does I/O", sum, watchFor)
	case !watched:
		m.result.OK, m.result.Error = false, fmt.Sprintf("the agent of %s does not count its peers' messages", to)
	case float64(counts[to]) < crossed*float64(sum):
		var others []string
		for _, r := range slices.Sorted(maps.Keys(counts)) {
			if r != to && counts[r] > 0 {
				others = append(others, fmt.Sprintf("%s (%.0f %%)", r, 100*float64(counts[r])/float64(sum)))
			}
		}
		m.result.OK = false
		m.result.Error = fmt.Sprintf(
			"data still crosses %s: the servers choose its router; to empty a router exclude it "+
				"(driver.drain)", strings.Join(others, ", "))
	}
	return true
}

// ask sends an order that has an answer of its own kind.
func ask[A any](ctx context.Context, d *Driver, n topology.NodeID, kind string, body any) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, max(d.fan.Timeout, time.Second))
	defer cancel()
	return driver.Ask[A](ctx, d.agents, n, kind, kind, body)
}
