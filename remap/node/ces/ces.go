// Package ces moves floating addresses between the protocol nodes of IBM Storage Scale (GPFS), by mmces on one of
// them, as root. An address moves with all its clients.
//
//	mmces address list
//	mmces address move --ces-ip 10.2.3.1 --ces-node ces2
//	mmces node list
//	mmces node suspend -N ces2
//	mmlscluster --ces
//
// Commands and output are those of IBM's manual and of published samples; no real cluster was at hand.
package ces

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// installed is where the programs are where PATH does not have them.
const installed = "/usr/lpp/mmfs/bin"

// Mover changes which protocol node has an address.
type Mover struct {
	// Nodes are by forwarder what CES calls it.
	Nodes map[topology.ForwarderID]string
	Run   node.Command // nil: node.Exec
	// Journal is the file that says for which plan this node is suspended; "": it never is.
	Journal string
}

// lookedFor is how long an answer of the cluster stands for others who ask: everybody who looks at a plan does, and
// each look runs two commands that take seconds on a large cluster.
const lookedFor = 2 * time.Second

// Handlers are its orders; CES takes one change at a time.
func (m *Mover) Handlers() map[string]stream.OrderHandler {
	one := make(chan struct{}, 1)
	var newest wire.AddressesAnswer // that the cluster gave, and when; who holds one has them
	var looked time.Time
	return map[string]stream.OrderHandler{
		wire.OrderAddresses: node.Handler(one, func(ctx context.Context, _ struct{}) (any, error) {
			if time.Since(looked) < lookedFor {
				return newest, nil
			}
			a, err := m.Look(ctx)
			if err == nil {
				newest, looked = a, time.Now()
			}
			return a, err
		}),
		wire.OrderMoveAddress: node.Handler(one, func(ctx context.Context, o wire.MoveAddressOrder) (any, error) {
			looked = time.Time{}
			return m.Move(ctx, o)
		}),
		wire.OrderSuspend: node.Handler(one, func(ctx context.Context, o wire.SuspendOrder) (any, error) {
			looked = time.Time{}
			return m.Suspend(ctx, o)
		}),
	}
}

func (m *Mover) run(ctx context.Context, argv ...string) (string, error) {
	run := m.Run
	if run == nil {
		run = node.Exec
		if _, err := exec.LookPath(argv[0]); err != nil {
			argv[0] = filepath.Join(installed, argv[0])
		}
	}
	out, err := run(ctx, argv...)
	return string(out), err
}

// Look reads the cluster's table and policy.
func (m *Mover) Look(ctx context.Context) (a wire.AddressesAnswer, err error) {
	if a.At, err = m.table(ctx); err != nil {
		return a, err
	}
	out, err := m.run(ctx, "mmlscluster", "--ces")
	if err != nil {
		return a, err
	}
	for line := range strings.Lines(out) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "Address distribution policy" {
			a.Policy = strings.TrimSpace(value)
		}
	}
	if a.Policy == "" {
		return a, fmt.Errorf("mmlscluster --ces: no line \"Address distribution policy\" in %.200q: "+
			"whether the system moves addresses by itself is not known", out)
	}
	if a.Flags, err = m.flags(ctx); err != nil && ctx.Err() == nil {
		err = nil // not known: nothing is suspended then, and addresses can be moved as well
	}
	return a, err
}

// table is what mmces lists. A node that is not among the forwarders is under its own name.
func (m *Mover) table(ctx context.Context) (map[string]topology.ForwarderID, error) {
	out, err := m.run(ctx, "mmces", "address", "list")
	if err != nil {
		return nil, err
	}
	at := map[string]topology.ForwarderID{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(f[0])
		if err != nil {
			continue // the head
		}
		name := addr.Unmap().String()
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("mmces address list: %s is listed twice", name)
		}
		if at[name] = m.forwarder(f[1]); f[1] == "unassigned" {
			at[name] = ""
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("mmces address list: no address in %.200q", out)
	}
	return at, nil
}

// forwarder finds who CES calls so; it prints some names without their domain.
func (m *Mover) forwarder(name string) topology.ForwarderID {
	if f, ok := node.ByAddress(m.Nodes, name); ok {
		return f
	}
	short, _, _ := strings.Cut(name, ".")
	for f, n := range m.Nodes {
		if s, _, _ := strings.Cut(n, "."); s == short && (s == n || short == name) {
			return f
		}
	}
	return topology.ForwarderID(name)
}

// Move gives an address to a forwarder, and reads the table again: that mmces reports success is not enough.
func (m *Mover) Move(ctx context.Context, o wire.MoveAddressOrder) (a wire.AddressesAnswer, err error) {
	to, ok := m.Nodes[o.Forwarder]
	if !ok {
		return a, fmt.Errorf("no name of %s in CES: set it in [orders.forwarders]", o.Forwarder)
	}
	if a.At, err = m.table(ctx); err != nil {
		return a, err
	}
	switch at, ok := a.At[o.Address]; {
	case !ok:
		return a, fmt.Errorf("%.60q is not an address of CES", o.Address)
	case at == o.Forwarder:
		return a, nil
	}
	if _, err := m.run(ctx, "mmces", "address", "move", "--ces-ip", o.Address, "--ces-node", to); err != nil {
		return a, err
	}
	if a.At, err = m.table(ctx); err == nil && a.At[o.Address] != o.Forwarder {
		err = fmt.Errorf("mmces reported that %s has moved to %s, and lists it at %q", o.Address, o.Forwarder,
			a.At[o.Address])
	}
	return a, err
}
