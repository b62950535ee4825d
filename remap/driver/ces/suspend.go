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

	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
)

// Rules of suspended nodes.
const (
	// strayFor is for how long after a node takes addresses again those are watched for that the system gives it.
	strayFor, strayEvery = 15 * time.Second, 3 * time.Second
)

// leaves are the protocol nodes from which moves take addresses, by name.
func leaves(moves []remap.Move) (out []topology.ForwarderID) {
	for _, m := range moves {
		if m.From != "" && m.From != m.To && !slices.Contains(out, m.From) {
			out = append(out, m.From)
		}
	}
	slices.Sort(out)
	return out
}

// lasting says whether a plan takes nodes away from a forwarder for good: what is moved for a job is back at its end.
func lasting(p *remap.Plan) bool { return p.Job == "" && p.Ledger == nil }

// returns says whether the system may give a node addresses by itself.
func returns(policy string) bool { return policy == "even-coverage" || policy == "balanced-load" }

// suspends says what a plan does with a node that it leaves without any of the addresses that table has, besides gone:
// it is suspended, or why not. "" is of a node that keeps an address or that no policy gives one.
func (d *Driver) suspends(p *remap.Plan, f topology.ForwarderID, table *wire.AddressesAnswer,
	gone map[string]bool) (do bool, says string) {
	for address, at := range table.At {
		if at == f && !gone[address] {
			return false, ""
		}
	}
	_, known := table.Flags[f]
	left := table.OthersLeft(f)
	has := fmt.Sprintf("%s has no address left", f)
	switch {
	case !lasting(p) || !returns(table.Policy):
		return false, ""
	case !known:
		return false, has + ", and is not suspended: whether it is, mmces node list does not say"
	case table.IsSuspended(f):
		return true, has + ", and is suspended already: if another one has done it, it stays so after a roll back"
	case left < wire.FewestLeft:
		return false, fmt.Sprintf("%s, and is not suspended: %d other nodes take addresses, at least %d must be left",
			has, left, wire.FewestLeft)
	case !d.cfg.Agents.Connected(f.Node()):
		return false, has + ", and is not suspended: its agent is not connected"
	}
	return true, fmt.Sprintf("%s, and is suspended (mmces node suspend): the system gives it none until the plan is "+
		"rolled back, and its services go on", has)
}

// keepOff suspends the nodes that the plan has left without an address, when all that it moved away from one is
// verified. It wraps report: results of these nodes wait, and say what kept a node from being suspended. What it
// returns reports them.
func (d *Driver) keepOff(ctx context.Context, p *remap.Plan,
	report func(remap.Result)) (waits func(remap.Result), end func()) {
	if !lasting(p) {
		return report, func() {}
	}
	var mu sync.Mutex
	came := map[topology.ForwarderID][]remap.Result{}
	failed := map[topology.ForwarderID]bool{}
	from := map[topology.NodeID]topology.ForwarderID{}
	for _, m := range p.Moves {
		if slices.Contains(leaves([]remap.Move{m}), m.From) {
			from[m.Node] = m.From
		}
	}
	waits = func(r remap.Result) {
		f, leaves := from[r.Node]
		if !leaves || !r.OK {
			report(r)
		}
		mu.Lock()
		defer mu.Unlock()
		if r.OK && leaves {
			came[f] = append(came[f], r)
		}
		failed[f] = failed[f] || !r.OK
	}
	return waits, func() {
		for _, f := range slices.Sorted(maps.Keys(came)) {
			var why error
			if !failed[f] {
				why = d.keep(ctx, p, f)
			}
			if ctx.Err() != nil {
				return // the next run asks again
			}
			for _, r := range came[f] {
				if why != nil {
					r.OK, r.Error = false, fmt.Sprintf("its address has moved and its data crosses the new node, but "+
						"the system may move it back: %s: %v; complete the plan to try again", f, why)
				}
				report(r)
			}
		}
	}
}

// keep suspends one node, if the plan does. The plan's own addresses have left it, as the kernels say; its agent looks
// anew before it does anything.
func (d *Driver) keep(ctx context.Context, p *remap.Plan, f topology.ForwarderID) error {
	table, err := d.look(ctx, f.Node())
	if err != nil {
		return err
	}
	gone, routes := map[string]bool{}, d.cfg.Routes()
	for _, m := range p.Moves {
		gone[routes[m.Node].Address] = true
	}
	do, _ := d.suspends(p, f, &table, gone)
	if !do || table.IsSuspended(f) {
		return nil
	}
	_, err = d.suspend(ctx, p, f, true)
	return err
}

// suspend gives the order to the node's own agent.
func (d *Driver) suspend(ctx context.Context, p *remap.Plan, f topology.ForwarderID,
	on bool) (wire.AddressesAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Fan.Timeout)
	defer cancel()
	return d.askOf(ctx, f.Node(), wire.OrderSuspend, p.ID, wire.SuspendOrder{Node: f.Node(), Forwarder: f, Plan: p.ID,
		Suspended: on})
}

// takeBack has the nodes that the plan has left take addresses again. was is the table before; refused are the nodes
// that stay suspended, each with the reason.
func (d *Driver) takeBack(ctx context.Context, p *remap.Plan) (was wire.AddressesAnswer,
	again []topology.ForwarderID, refused map[topology.ForwarderID]error) {
	refused = map[topology.ForwarderID]error{}
	left := leaves(p.Moves)
	if len(left) == 0 || !lasting(p) {
		return was, nil, refused
	}
	was, err := d.look(ctx, left[0].Node())
	if err != nil {
		return was, nil, refused // the moves themselves will say so
	}
	for _, f := range left {
		if was.Flags[f] == "" {
			continue // its agent knows whether it was suspended for a plan
		}
		if _, err := d.suspend(ctx, p, f, false); err != nil {
			refused[f] = err
			continue
		}
		again = append(again, f)
	}
	return was, again, refused
}

// settle moves back what the system has given to the nodes that take addresses again, until it gives no more: no
// address but the plan's own is elsewhere than before.
func (d *Driver) settle(ctx context.Context, p *remap.Plan, was *wire.AddressesAnswer,
	again []topology.ForwarderID, own map[string]topology.ForwarderID) error {
	if len(again) == 0 {
		return nil
	}
	var why error
	for begun, quiet := time.Now(), 0; quiet < 2; {
		if !pace.Wait(ctx, strayEvery) {
			return ctx.Err()
		}
		table, err := d.look(ctx, again[0].Node())
		if err != nil {
			return err
		}
		stray := strays(&table, was, again, own)
		if len(stray) == 0 {
			quiet++
			continue
		}
		if time.Since(begun) > strayFor {
			return errors.Join(fmt.Errorf("the system keeps moving %s since %s takes addresses again: look at mmces "+
				"address list", stray[0].Address, again[0]), why)
		}
		quiet = 0
		for _, m := range stray {
			_, why = d.ask(ctx, m.Forwarder.Node(), wire.OrderMoveAddress, p.ID, m)
		}
	}
	return nil
}

// strays are the addresses that are not where they were, with where they were: the plan's own ones, and others that a
// node has now that takes addresses again.
func strays(table, was *wire.AddressesAnswer, again []topology.ForwarderID,
	own map[string]topology.ForwarderID) (out []wire.MoveAddressOrder) {
	for address, at := range table.At {
		to, mine := own[address]
		if !mine {
			to = was.At[address]
		}
		if at != to && to != "" && (mine || slices.Contains(again, at)) {
			out = append(out, wire.MoveAddressOrder{Address: address, Forwarder: to})
		}
	}
	slices.SortFunc(out, func(a, b wire.MoveAddressOrder) int { return strings.Compare(a.Address, b.Address) })
	return out
}
