package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"fairway/collector/source/mount"
	"fairway/collector/source/queue"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
	"fairway/remap/node/lnet"
	"fairway/remap/node/remount"
	"fairway/remap/node/tcpproxy"
)

// The ways in which a node changes its forwarder.
const (
	byFwdMount  = "fwdmount"
	byRelay     = "relay"
	byLNetRoute = "lnetroute"
	byMount     = "mount"
)

// Orders says what the daemon may have done here.
type Orders struct {
	Enabled bool     `toml:"enabled" help:"Carry out the daemon's remap orders."`
	By      string   `toml:"by" help:"How this node is moved: fwdmount, relay, lnetroute or mount."`
	Relay   RelayOpt `toml:"relay"`
	LNet    LNetOpt  `toml:"lnet"`
	Mount   MountOpt `toml:"mount"`
	// Forwarders are named in the mover's own words.
	Forwarders map[string]string `toml:"forwarders" help:"By forwarder, its gateway or export."`
}

// RelayOpt is for by = "relay".
type RelayOpt struct {
	Listen    string `toml:"listen" help:"HOST:PORT of this node that clients connect to."`
	Forwarder string `toml:"forwarder" help:"Name of the forwarder that it leads to at first."`
	Addr      string `toml:"addr" help:"That forwarder's file service, HOST:PORT."`
}

// LNetOpt is for by = "lnetroute".
type LNetOpt struct {
	Net string `toml:"net" help:"The file system's LNet network, such as o2ib1."`
}

// MountOpt is for by = "mount".
type MountOpt struct {
	Point   string `toml:"point" help:"Where the file system is mounted."`
	Type    string `toml:"type" help:"Type of the file system for mount -t: nfs, nfs4, 9p, dvs."`
	Options string `toml:"options" help:"Options for mount -o; empty: none."`
}

func (c *Config) validateOrders() error {
	o := &c.Orders
	if !o.Enabled {
		return nil
	}
	switch o.By {
	case byFwdMount:
		if !c.Source.FwdMount.Enabled {
			return errors.New(
				"orders.enabled by fwdmount needs source.fwdmount.enabled: it has the mount's control socket")
		}
	case byRelay:
		if o.Relay.Listen == "" || o.Relay.Forwarder == "" || o.Relay.Addr == "" {
			return errors.New("orders.relay: listen, forwarder and addr are required")
		}
	case byLNetRoute:
		if o.LNet.Net == "" || len(o.Forwarders) == 0 {
			return errors.New("orders.lnet.net and orders.forwarders are required")
		}
	case byMount:
		if o.Mount.Point == "" || o.Mount.Type == "" || len(o.Forwarders) == 0 {
			return errors.New("orders.mount.point, orders.mount.type and orders.forwarders are required")
		}
	default:
		return fmt.Errorf("orders.by = %q: want %s, %s, %s or %s", o.By, byFwdMount, byRelay, byLNetRoute, byMount)
	}
	return nil
}

func (o *Orders) forwarders() map[topology.ForwarderID]string {
	out := map[topology.ForwarderID]string{}
	for f, a := range o.Forwarders {
		out[topology.ForwarderID(f)] = a
	}
	return out
}

// startMover makes what carries orders out; nil where this node has nothing that could be asked.
func startMover(c Config, log *slog.Logger) (m node.Mover, stop io.Closer, err error) {
	o := &c.Orders
	switch {
	case o.Enabled && o.By == byRelay:
		r, err := tcpproxy.Start(tcpproxy.Options{Listen: o.Relay.Listen,
			Forwarder: topology.ForwarderID(o.Relay.Forwarder), Addr: o.Relay.Addr, Log: log})
		if err != nil {
			return nil, nil, err
		}
		return r, r, nil
	case o.Enabled && o.By == byLNetRoute:
		return &lnet.Mover{Net: o.LNet.Net, Gateways: o.forwarders()}, nil, nil
	case o.Enabled && o.By == byMount:
		return &remount.Mover{Point: o.Mount.Point, Type: o.Mount.Type, Options: o.Mount.Options,
			Sources: o.forwarders()}, nil, nil
	case c.Source.FwdMount.Enabled:
		return mountSocket(c.Source.FwdMount.Control), nil, nil
	}
	return nil, nil, nil
}

// mountSocket is a fairway-mount behind its control socket.
type mountSocket string

func (s mountSocket) Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error) {
	return mount.Remap(ctx, string(s), o)
}

func (s mountSocket) Route(ctx context.Context) (wire.RouteAnswer, error) {
	return mount.Route(ctx, string(s))
}

// handlers are the orders that this agent carries out.
func handlers(c Config, moves node.Mover) map[string]stream.OrderHandler {
	out := map[string]stream.OrderHandler{}
	if moves != nil {
		out = node.Handlers(moves, c.Orders.Enabled)
	}
	if r := c.Source.Relay; r.Tables {
		for kind, door := range map[string][2]string{
			wire.OrderShare:  {http.MethodPut, "/table"},
			wire.OrderGlobal: {http.MethodPut, "/global"},
			wire.OrderReport: {http.MethodGet, "/report"},
		} {
			out[kind] = func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
				answer, err := queue.Ask(ctx, r.Control, door[0], door[1], o.Body)
				if kind != wire.OrderReport {
					answer = nil
				}
				return answer, err
			}
		}
	}
	return out
}
