package main

import (
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/driver/drain"
	"fairway/tsdb/window"
)

// newDrains makes what has nodes avoid excluded routers; nil where that is switched off.
func (d *daemon) newDrains() *drain.Drains {
	if !d.conf.Driver.Drain {
		return nil
	}
	return drain.New(drain.Config{Agents: d.agents, Log: d.log,
		Excluded: func() map[topology.ForwarderID]string { return d.desk.Excluded() },
		Nodes: func() map[topology.NodeID]topology.Role {
			out := map[topology.NodeID]topology.Role{}
			for _, n := range d.situation.Situation().Machine.Nodes {
				out[n.ID] = n.Role
			}
			return out
		},
		Routed: func() map[topology.ForwarderID]float64 {
			out := map[topology.ForwarderID]float64{}
			d.board.Layer(topology.Forwarder, func(n *window.Node) {
				if v, ok := n.Frame.Value(collector.RoutedBytes); ok {
					out[topology.ForwarderID(n.Frame.Node)] = v
				}
			})
			return out
		}})
}

// drainOf is what the desk asks about an excluded forwarder; nil without drains.
func drainOf(d *drain.Drains) func(topology.ForwarderID) *remap.Drain {
	if d == nil {
		return nil
	}
	return d.Of
}
