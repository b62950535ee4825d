package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"

	"fairway/collector/rootfs"
	"fairway/collector/source/queue"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
	"fairway/remap/node/ces"
	"fairway/remap/node/lnet"
	"fairway/remap/node/mount9p"
	"fairway/remap/node/remount"
	"fairway/remap/node/tcpproxy"
)

// The ways in which a node changes its forwarder.
const (
	byMount9p  = "mount9p"
	byTCPProxy = "tcpproxy"
	byLNet     = "lnet"
	byRemount  = "remount"
	byCES      = "ces"
)

// Orders says what the daemon may have done here.
type Orders struct {
	Enabled bool       `toml:"enabled" help:"Carry out the daemon's remap orders."`
	By      string     `toml:"by" help:"How this node is moved: mount9p, tcpproxy, lnet, remount; or ces."`
	Allow   []string   `toml:"allow" help:"Networks and names of forwarders, by ces of addresses; empty: none."`
	Proxy   ProxyOpt   `toml:"tcpproxy"`
	Remount RemountOpt `toml:"remount"`
	// Forwarders are named in the mover's own words.
	Forwarders map[string]string `toml:"forwarders" help:"By forwarder, its gateway, export or name in CES."`
}

// ProxyOpt is for by = "tcpproxy".
type ProxyOpt struct {
	Listen    string `toml:"listen" help:"HOST:PORT of this node that clients connect to."`
	Forwarder string `toml:"forwarder" help:"Name of the forwarder that it leads to at first."`
	Addr      string `toml:"addr" help:"That forwarder's file service, HOST:PORT."`
}

// RemountOpt is for by = "remount".
type RemountOpt struct {
	Point   string `toml:"point" help:"Where the file system is mounted."`
	Type    string `toml:"type" help:"Type of the file system for mount -t: nfs, nfs4, 9p, dvs."`
	Options string `toml:"options" help:"Options for mount -o; empty: none."`
	Path    string `toml:"path" help:"For dvs, the servers' path; forwarders are their names."`
}

func (c *Config) validateOrders() error {
	o := &c.Orders
	if !o.Enabled {
		return nil
	}
	allowed, err := topology.ParseAllowed(o.Allow)
	if err != nil {
		return fmt.Errorf("orders.allow: %w", err)
	}
	switch o.By {
	case byMount9p:
		if !c.Source.Mount.Enabled {
			return errors.New(
				"orders.enabled by mount9p needs source.mount.enabled: it has the mount's control socket")
		}
	case byTCPProxy:
		if o.Proxy.Listen == "" || o.Proxy.Forwarder == "" || o.Proxy.Addr == "" {
			return errors.New("orders.tcpproxy: listen, forwarder and addr are required")
		}
	case byLNet:
		if c.Routes.Net == "" || len(o.Forwarders) == 0 {
			return errors.New("orders.by = \"lnet\": routes.net and orders.forwarders are required")
		}
	case byRemount:
		if o.Remount.Type == remount.DVS && o.Remount.Path == "" {
			return errors.New("orders.remount.path is empty: want the path on the DVS servers")
		}
		if o.Remount.Point == "" || o.Remount.Type == "" || len(o.Forwarders) == 0 {
			return errors.New("orders.remount.point, orders.remount.type and orders.forwarders are required")
		}
	case byCES:
		if c.Role != topology.Forwarder.String() || len(o.Forwarders) == 0 {
			return errors.New("orders.by = \"ces\" is for protocol nodes (role = \"forwarder\"), and " +
				"orders.forwarders is required: by forwarder, its name in CES")
		}
		if allowed.Names() {
			return errors.New("orders.allow has a host name: by ces it takes networks of the addresses that may be " +
				"moved; the nodes that they may be moved to are those of orders.forwarders")
		}
	default:
		was := map[string]string{"fwdmount": byMount9p, "relay": byTCPProxy, "lnetroute": byLNet, "mount": byRemount}
		if is := was[o.By]; is != "" {
			return fmt.Errorf("orders.by = %q: it is called %q now", o.By, is)
		}
		return fmt.Errorf("orders.by = %q: want %s, %s, %s, %s or %s", o.By, byMount9p, byTCPProxy, byLNet, byRemount,
			byCES)
	}
	return nil
}

// allowsNone says, by name and with the remedy, that orders may lead nowhere; empty where they may, or where forwarders
// are named in the settings themselves.
func (o *Orders) allowsNone() string {
	if !o.Enabled || len(o.Allow) > 0 || o.By == byLNet || o.By == byRemount {
		return ""
	}
	return "orders.allow is empty, so that no order is carried out: name where they may lead, such as allow = " +
		"[\"10.1.0.0/16\"] ('fairwayd init' writes it)"
}

// beside is the folder where a move by remount is tried.
func (*Orders) beside(s *SpoolConfig) string { return filepath.Join(s.Dir, "beside") }

func (o *Orders) forwarders() map[topology.ForwarderID]string { return byForwarder(o.Forwarders) }

func byForwarder(names map[string]string) map[topology.ForwarderID]string {
	out := map[topology.ForwarderID]string{}
	for f, a := range names {
		out[topology.ForwarderID(f)] = a
	}
	return out
}

// startMover makes what carries orders out; nil where this node has nothing that could be asked.
func startMover(c Config, log *slog.Logger) (m node.Mover, stop io.Closer, err error) {
	o := &c.Orders
	switch {
	case o.Enabled && o.By == byTCPProxy:
		r, err := tcpproxy.Start(tcpproxy.Options{Listen: o.Proxy.Listen,
			Forwarder: topology.ForwarderID(o.Proxy.Forwarder), Addr: o.Proxy.Addr, Log: log})
		if err != nil {
			return nil, nil, err
		}
		return r, r, nil
	case o.Enabled && o.By == byLNet:
		return &lnet.Mover{Kernel: lnet.Kernel{Net: c.Routes.Net, Gateways: o.forwarders()},
			Journal: filepath.Join(c.Spool.Dir, "lnet-changes.json")}, nil, nil
	case o.Enabled && o.By == byRemount:
		return &remount.Mover{Point: o.Remount.Point, Type: o.Remount.Type, Options: o.Remount.Options,
			Path: o.Remount.Path, Root: rootfs.At(c.Root), Sources: o.forwarders(),
			Foreign: c.Root != "/",
			Beside:  o.beside(&c.Spool),
			Journal: filepath.Join(c.Spool.Dir, "remount-last.json")}, nil, nil
	case c.Source.Mount.Enabled:
		return mount9p.Mover{Socket: c.Source.Mount.Control}, nil, nil
	}
	return nil, nil, nil
}

// handlers are the orders that this agent carries out.
func handlers(c Config, moves node.Mover) map[string]stream.OrderHandler {
	out := map[string]stream.OrderHandler{}
	if moves != nil {
		out = node.Handlers(moves, c.Orders.Enabled)
		if move := out[wire.OrderRemap]; move != nil {
			out[wire.OrderRemap] = c.Orders.checked(move)
		}
		for kind, do := range out {
			out[kind] = c.forThisNode(do)
		}
	}
	router, _ := moves.(*lnet.Mover)
	if router == nil && c.Source.LNet.Enabled {
		router = &lnet.Mover{} // it counts peers' messages, which verifies the moves of others
	}
	if router != nil {
		maps.Copy(out, router.Handlers(c.Orders.Enabled && c.Orders.By == byLNet))
	}
	if c.Orders.Enabled && c.Orders.By == byCES {
		moves := (&ces.Mover{Nodes: c.Orders.forwarders(),
			Journal: filepath.Join(c.Spool.Dir, "ces-suspended.json")}).Handlers()
		moves[wire.OrderMoveAddress] = c.Orders.checkedAddress(moves[wire.OrderMoveAddress])
		moves[wire.OrderSuspend] = c.forThisNode(moves[wire.OrderSuspend])
		maps.Copy(out, moves)
	}
	if r := c.Source.Queue; r.Enabled {
		for kind, at := range map[string][2]string{
			wire.OrderShare:  {http.MethodPut, "/table"},
			wire.OrderGlobal: {http.MethodPut, "/global"},
			wire.OrderReport: {http.MethodGet, "/report"},
		} {
			out[kind] = func(ctx context.Context, o wire.Order) (json.RawMessage, error) {
				answer, err := queue.Ask(ctx, r.Control, at[0], at[1], o.Body)
				if kind != wire.OrderReport {
					answer = nil
				}
				return answer, err
			}
		}
	}
	return out
}

// forThisNode refuses orders that are for another node: a mover knows no other than its own, and would move that.
func (c *Config) forThisNode(do stream.OrderHandler) stream.OrderHandler {
	return stream.Checked(do, func(r wire.RouteOrder) error { // a RemapOrder names its node alike
		if r.Node == "" || r.Node == topology.NodeID(c.Node) {
			return nil
		}
		return fmt.Errorf("it is for node %q, and this agent is of %q; start an agent there",
			topology.Clean(string(r.Node)), c.Node)
	})
}

// checked refuses orders to addresses that are not forwarders of this node's. LNet's gateways and exports to mount are
// named in the settings themselves.
func (o *Orders) checked(move stream.OrderHandler) stream.OrderHandler {
	if o.By != byMount9p && o.By != byTCPProxy {
		return move
	}
	allowed, _ := topology.ParseAllowed(o.Allow) // validated
	return stream.Checked(move, func(r wire.RemapOrder) error { return o.why(allowed.Check(r.Addr)) })
}

// why is a refusal, or that any is refused.
func (o *Orders) why(refused error) error {
	if none := o.allowsNone(); refused != nil && none != "" {
		return errors.New(none)
	}
	return refused
}

// checkedAddress refuses to move addresses that are not among those that may be: a protocol node can move each of the
// cluster's, also those of others than fairway's clients.
func (o *Orders) checkedAddress(move stream.OrderHandler) stream.OrderHandler {
	allowed, _ := topology.ParseAllowed(o.Allow) // validated
	return stream.Checked(move, func(m wire.MoveAddressOrder) error {
		if allowed.Check(m.Address) == nil {
			return nil
		}
		return o.why(fmt.Errorf("%.60q is not among the addresses that may be moved (orders.allow)", m.Address))
	})
}
