package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
)

// SetServers has these nodes, the storage and metadata servers, prefer the router that a node with LNet is moved to for
// what goes to it: they choose the router of its data.
func (d *Driver) SetServers(servers func() []topology.NodeID) { d.servers = servers }

// A server has so long for its rules: a program start for each.
const within, perRule = 5 * time.Second, 50 * time.Millisecond

// looks asks the nodes of moves for their LNet; those that have none are absent.
func (d *Driver) looks(ctx context.Context, nodes []topology.NodeID) map[topology.NodeID]wire.LookAnswer {
	looks := once(ctx, d, nodes, func(ctx context.Context, n topology.NodeID) (wire.LookAnswer, error) {
		return ask[wire.LookAnswer](ctx, d, n, wire.OrderLook, struct{}{})
	})
	maps.DeleteFunc(looks, func(_ topology.NodeID, a wire.LookAnswer) bool { return len(a.NIDs) == 0 })
	return looks
}

// steer has every server prefer the routers that nodes are moved to, or, with back, what it preferred before. It
// returns the reason of each server that did not.
func (d *Driver) steer(ctx context.Context, moves []remap.Move, back bool) map[topology.NodeID]string {
	if d.servers == nil {
		return nil
	}
	all := d.servers()
	can := d.looks(ctx, all)
	maps.DeleteFunc(can, func(_ topology.NodeID, a wire.LookAnswer) bool { return !a.Rules })
	if len(can) == 0 {
		return nil // where the data goes shows by the traffic
	}
	looks := d.looks(ctx, remap.NodesOf(moves))
	to := map[topology.ForwarderID][]string{}
	for _, m := range moves {
		if look, ok := looks[m.Node]; ok {
			to[m.To] = append(to[m.To], look.NIDs...)
		}
	}
	if len(to) == 0 {
		return nil
	}
	var orders []wire.SteerOrder
	for f, nids := range to {
		slices.Sort(nids)
		o := wire.SteerOrder{To: nids, Forwarder: f}
		if back {
			o.Forwarder, o.Back = "", true
		}
		orders = append(orders, o)
	}
	failed := map[topology.NodeID]string{}
	for _, s := range all {
		if _, ok := can[s]; !ok {
			failed[s] = "it has no agent that could give it a rule, or no rules"
		}
	}
	long := d.fan
	long.Timeout = max(long.Timeout, within+time.Duration(len(moves))*perRule)
	var mu sync.Mutex
	servers := slices.Collect(maps.Keys(can))
	_ = long.Each(ctx, remap.MoveAll(servers, ""), func(ctx context.Context, s remap.Move) error {
		for _, o := range orders {
			if _, err := d.agents.Send(ctx, s.Node, wire.OrderSteer, wire.OrderSteer, o); err != nil {
				return err
			}
		}
		return nil
	}, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		if !r.OK {
			failed[r.Node] = r.Error
		}
	})
	return failed
}

// spread says in words which servers did not take a rule, so that the data of the moved nodes stays spread there.
func spread(failed map[topology.NodeID]string) string {
	if len(failed) == 0 {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(failed)))
	return fmt.Sprintf("; %d servers go on to choose by themselves (%s: %s)", len(failed), first, failed[first])
}

// steerSentence says what the servers of nodes with LNet will do.
func (d *Driver) steerSentence(ctx context.Context) string {
	if d.servers == nil {
		return ""
	}
	all := d.servers()
	can := 0
	for _, look := range d.looks(ctx, all) {
		if look.Rules {
			can++
		}
	}
	if can == 0 {
		return ""
	}
	s := fmt.Sprintf("%d of %d servers get a rule that prefers the new router for the data of these nodes; open files "+
		"stay open, what is queued goes the old way, and if the new router dies LNet uses the others", can, len(all))
	if can < len(all) {
		s += "; the data of the other servers stays spread"
	}
	return s
}
