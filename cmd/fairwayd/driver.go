package main

import (
	"fmt"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
	"fairway/remap/driver/ces"
	"fairway/remap/driver/drain"
	"fairway/remap/driver/exec"
	"fairway/tsdb/window"
	"fairway/webui/live"
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

// observer is the driver for those who only ask; nil without one.
func observer(d remap.Driver, kind string) live.Observer {
	if kind == config.DriverNone {
		return nil
	}
	return d
}

func (d *daemon) newDriver() (remap.Driver, error) {
	c := d.conf.Driver
	fan := driver.DefaultFan()
	fan.Timeout = c.Timeout
	switch c.Kind {
	case config.DriverAgents:
		a := agent.New(d.agents, d.conf.ForwarderAddrs(), fan)
		a.SetRouters(d.nodesOf(topology.Forwarder))
		a.SetServers(d.nodesOf(topology.Storage, topology.Metadata))
		return a, nil
	case config.DriverExec:
		e, err := exec.New(c.Command, fan)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", program.ErrSettings, err)
		}
		return e, nil
	case config.DriverCES:
		return ces.New(ces.Config{Agents: d.agents, Frame: d.board.Frame, Fan: fan,
			Routes:     func() map[topology.NodeID]window.Route { return d.situation.Situation().Routes },
			Forwarders: d.nodesOf(topology.Forwarder)}), nil
	}
	return driver.Unassigned{}, nil
}

// nodesOf lists the machine's nodes of some layers, as they are when it is asked.
func (d *daemon) nodesOf(roles ...topology.Role) func() []topology.NodeID {
	return func() (out []topology.NodeID) {
		for _, role := range roles {
			for _, n := range d.situation.Situation().Machine.ByRole(role) {
				out = append(out, n.ID)
			}
		}
		return out
	}
}
