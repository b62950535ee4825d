// Package ces moves compute nodes whose NFS servers have floating addresses, by moving the address: an order to the
// agent of a protocol node. What moves is an address with all its clients, so that a plan that leaves some of them out
// is refused.
//
// Where an address is, the nodes' kernels say; what mmces lists is only compared with it. A move is done when the moved
// nodes' operations end again and the new node's bytes show theirs.
package ces

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/tsdb/window"
)

// Config is what the driver runs on.
type Config struct {
	Agents     driver.Orderer
	Routes     func() map[topology.NodeID]window.Route
	Forwarders func() []topology.NodeID
	// Frame is a node's newest second.
	Frame func(topology.NodeID) (collector.Frame, bool)
	Fan   driver.Fan
}

// Driver moves addresses. Repeating a move is harmless: an order says which node must have the address.
type Driver struct {
	cfg    Config
	agents *driver.Orders
}

var _ remap.Driver = (*Driver)(nil)

// moveWithin is how long an order may take at least: mmces takes its cluster's lock and starts services anew.
const moveWithin = time.Minute

// New returns a driver.
func New(c Config) *Driver {
	c.Fan.Timeout = max(c.Fan.Timeout, moveWithin)
	return &Driver{cfg: c, agents: driver.NewOrders(c.Agents)}
}

// unit is an address that moves, with the nodes of a plan that use it.
type unit struct {
	address string
	to      topology.ForwarderID
	moves   []remap.Move
	result  remap.Result
}

// units are the addresses of moves, by address. refused are the nodes that cannot be moved, each with its reason.
func (d *Driver) units(moves []remap.Move) (all []*unit, refused map[topology.NodeID]error) {
	routes, refused := d.cfg.Routes(), map[topology.NodeID]error{}
	byAddress := map[string]*unit{}
	known := d.cfg.Forwarders()
	for _, m := range moves {
		a := routes[m.Node].Address
		switch {
		case a == "":
			refused[m.Node] = fmt.Errorf("%s -> %s: it has no one address that a protocol node is known to have "+
				"([routes] by = \"nfs\" there, by = \"addresses\" on protocol nodes)", m.Node, m.To)
			continue
		case !slices.Contains(known, m.To.Node()):
			refused[m.Node] = fmt.Errorf("%s -> %s: no such protocol node", m.Node, m.To)
			continue
		case byAddress[a] == nil:
			byAddress[a] = &unit{address: a, to: m.To}
		case byAddress[a].to != m.To:
			refused[m.Node] = fmt.Errorf("%s -> %s: %s uses %s, too, which cannot be on %s as well", m.Node, m.To,
				byAddress[a].moves[0].Node, a, byAddress[a].to)
			continue
		}
		byAddress[a].moves = append(byAddress[a].moves, m)
	}
	for _, a := range slices.Sorted(maps.Keys(byAddress)) {
		all = append(all, byAddress[a])
	}
	return all, refused
}

// others says who else uses a unit's address.
func (u *unit) others(routes map[topology.NodeID]window.Route) error {
	var more []string
	for n, r := range routes {
		if r.Address == u.address && !slices.ContainsFunc(u.moves, func(m remap.Move) bool { return m.Node == n }) {
			more = append(more, string(n))
		}
	}
	if len(more) == 0 {
		return nil
	}
	slices.Sort(more)
	return fmt.Errorf("%w: %s is the address of %s, too, and moves with all its clients: plan them together, or none",
		driver.ErrPermanent, u.address, strings.Join(more, ", "))
}

// Preview fails for the first node that cannot be moved, for an address whose clients are not all in the plan, and
// where the cluster's table is not what the nodes' kernels say.
func (d *Driver) Preview(ctx context.Context, p remap.Plan) ([]string, error) {
	units, refused := d.units(p.Moves)
	for _, m := range p.Moves {
		if err := refused[m.Node]; err != nil {
			return nil, err
		}
	}
	if len(units) == 0 {
		return nil, nil
	}
	table, err := d.look(ctx, units[0].to.Node())
	if err != nil {
		return nil, err
	}
	var how []string
	routes, gone := d.cfg.Routes(), map[string]bool{}
	for _, u := range units {
		if err := u.others(routes); err != nil {
			return nil, err
		}
		from := routes[u.moves[0].Node].Forwarder
		if says, ok := table.At[u.address]; !ok || says != from {
			return nil, fmt.Errorf("%s: mmces lists it at %q, and %s has it: look there before anything is moved",
				u.address, says, from)
		}
		if table.IsSuspended(u.to) {
			return nil, fmt.Errorf("%s is suspended and takes no addresses (mmces node list): roll back the plan that "+
				"has done it, or end it by mmces node resume", u.to)
		}
		gone[u.address] = true
		var names []string
		for _, m := range u.moves {
			names = append(names, string(m.Node))
		}
		how = append(how, fmt.Sprintf("%s moves from %s to %s with all its clients: %s, and any without an agent",
			u.address, from, u.to, strings.Join(names, ", ")))
	}
	for _, f := range leaves(p.Moves) {
		if _, says := d.suspends(&p, f, &table, gone); says != "" {
			how = append(how, says)
		}
	}
	return append(how, "NFSv3 clients repeat what was not answered, and go on; with NFSv4, I/O stops for up to 90 s, "+
		"until the new node's grace period is over, and open files and locks depend on the state that the nodes share",
		policySentence(table.Policy)), nil
}

// policySentence says whether an address stays where it is put.
func policySentence(policy string) string {
	switch policy {
	case "none":
		return "the distribution policy moves nothing (none): the address stays until somebody moves it"
	case "node-affinity":
		return "the distribution policy is node-affinity: the system keeps the address at its new node from now on"
	}
	return fmt.Sprintf("the distribution policy is %s: the system may move the address back by itself, for one when a "+
		"protocol node leaves or comes", policy)
}

// Apply moves each address, watches its clients' traffic, and suspends a node that has no address left.
func (d *Driver) Apply(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	report, suspend := d.keepOff(ctx, &p, report)
	moved, err := d.each(ctx, p, p.Moves, true, report)
	d.verify(ctx, moved, report)
	suspend()
	return err
}

// Restore has the nodes that were suspended take addresses again, and moves each address back.
func (d *Driver) Restore(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	was, again, refused := d.takeBack(ctx, &p)
	p.Moves = slices.DeleteFunc(slices.Clone(p.Moves), func(m remap.Move) bool {
		why := refused[m.From]
		if why != nil {
			report(remap.Result{Node: m.Node, Error: why.Error(), At: time.Now(), Tries: 1})
		}
		return why != nil
	})
	moved, err := d.each(ctx, p, driver.Back(p.Moves), false, report)
	own := map[string]topology.ForwarderID{}
	for _, u := range moved {
		own[u.address] = u.to
	}
	why := ""
	if settled := d.settle(ctx, &p, &was, again, own); settled != nil {
		why = settled.Error()
	}
	for _, u := range moved {
		u.report(report, why)
	}
	return err
}

// report says what became of the unit's nodes; why is empty for those that are moved.
func (u *unit) report(report func(remap.Result), why string) {
	for _, m := range u.moves {
		r := u.result
		r.Node, r.OK, r.Error = m.Node, why == "", why
		report(r)
	}
}

// each orders the addresses of moves to their nodes, and returns those that were answered as done; all others are
// reported. With whole an address is only moved with all its clients.
func (d *Driver) each(ctx context.Context, p remap.Plan, moves []remap.Move, whole bool,
	report func(remap.Result)) (moved []*unit, err error) {
	units, refused := d.units(moves)
	for _, m := range moves {
		if why := refused[m.Node]; why != nil && ctx.Err() == nil {
			report(remap.Result{Node: m.Node, Error: why.Error(), At: time.Now(), Tries: 1})
		}
	}
	byAddress := map[topology.NodeID]*unit{}
	var orders []remap.Move
	for _, u := range units {
		byAddress[topology.NodeID(u.address)] = u
		orders = append(orders, remap.Move{Node: topology.NodeID(u.address), To: u.to})
	}
	var mu sync.Mutex
	err = d.cfg.Fan.Each(ctx, orders, func(ctx context.Context, m remap.Move) error {
		u := byAddress[m.Node]
		routes := d.cfg.Routes()
		if at := routes[u.moves[0].Node].Forwarder; whole && at != u.to {
			if err := u.others(routes); err != nil {
				return err
			}
		}
		_, err := d.ask(ctx, u.to.Node(), wire.OrderMoveAddress, p.ID,
			wire.MoveAddressOrder{Address: u.address, Forwarder: u.to})
		return err
	}, func(r remap.Result) {
		mu.Lock()
		defer mu.Unlock()
		u := byAddress[r.Node]
		if u.result = r; r.OK {
			moved = append(moved, u)
			return
		}
		u.report(report, r.Error)
	})
	return moved, err
}

// look asks a protocol node, best the one named, for the cluster's table.
func (d *Driver) look(ctx context.Context, best topology.NodeID) (wire.AddressesAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Fan.Timeout)
	defer cancel()
	return d.ask(ctx, best, wire.OrderAddresses, "look", struct{}{})
}

// ask sends one order to a protocol node, or, where its agent is away, to another one: each can move every address.
func (d *Driver) ask(ctx context.Context, best topology.NodeID, kind, plan string, body any) (a wire.AddressesAnswer,
	err error) {
	to := best
	if !d.cfg.Agents.Connected(to) {
		i := slices.IndexFunc(d.cfg.Forwarders(), d.cfg.Agents.Connected)
		if i < 0 {
			return a, errors.New("no agent of a protocol node is connected ([orders] by = \"ces\" there)")
		}
		to = d.cfg.Forwarders()[i]
	}
	return d.askOf(ctx, to, kind, plan, body)
}

func (d *Driver) askOf(ctx context.Context, n topology.NodeID, kind, plan string, body any) (wire.AddressesAnswer,
	error) {
	return driver.Ask[wire.AddressesAnswer](ctx, d.agents, n, kind, plan, body)
}

// Observe asks the cluster's table where the nodes' addresses are. A node without an address is absent, and the error
// names it.
func (d *Driver) Observe(ctx context.Context, nodes []topology.NodeID) (topology.Mapping, error) {
	routes, found := d.cfg.Routes(), topology.Mapping{}
	if len(nodes) == 0 {
		return found, nil
	}
	table, err := d.look(ctx, routes[nodes[0]].Forwarder.Node())
	if err != nil {
		return found, err
	}
	for _, n := range nodes {
		at, ok := table.At[routes[n].Address]
		if !ok || at == "" {
			err = fmt.Errorf("%s: mmces lists no node that has its address %q", n, routes[n].Address)
			continue
		}
		found[n] = at
	}
	return found, err
}
