package ces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// flags are what "mmces node list" says of nodes that take no addresses now: "" of those that do.
//
//	Node Number   Node Name   Node Groups   Node Flags
//	------------- ----------- ------------- ------------
//	1             ces1                      none
//	2             ces2                      Suspended
//
// A node may have no group, and columns are as wide as what they hold, so that flags are the last word of a line.
func (m *Mover) flags(ctx context.Context) (map[topology.ForwarderID]string, error) {
	out, err := m.run(ctx, "mmces", "node", "list")
	if err != nil {
		return nil, err
	}
	found := map[topology.ForwarderID]string{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		if _, err := strconv.ParseUint(f[0], 10, 32); err != nil {
			continue // the head
		}
		at, flags := m.forwarder(f[1]), f[len(f)-1]
		if _, twice := found[at]; twice {
			return nil, fmt.Errorf("mmces node list: %s is listed twice", at)
		}
		if strings.EqualFold(flags, "none") {
			flags = ""
		}
		found[at] = flags
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("mmces node list: no node in %.200q", out)
	}
	return found, nil
}

// suspendedFor is what this node was suspended for; the file is there while it is, or may be.
type suspendedFor struct {
	Plan string `json:"plan"`
}

// hold notes for which plan the node is suspended, on disk first; "" for none any more.
func (m *Mover) hold(plan string) error {
	if plan == "" {
		if err := os.Remove(m.Journal); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return node.WriteNote(m.Journal, suspendedFor{plan})
}

// Suspend has the node take no addresses any more, or take them again. It suspends a node that has none, so that no
// client notices, and ends only what it has begun itself.
func (m *Mover) Suspend(ctx context.Context, o wire.SuspendOrder) (a wire.AddressesAnswer, err error) {
	name, ok := m.Nodes[o.Forwarder]
	switch {
	case !ok:
		return a, fmt.Errorf("no name of %s in CES: set it in [orders.forwarders]", o.Forwarder)
	case m.Journal == "" || o.Plan == "":
		return a, fmt.Errorf("%s: no plan %q, or no place to note it", o.Forwarder, o.Plan)
	}
	var held suspendedFor
	err = node.ReadNote(m.Journal, &held, "for which plan this node is suspended: look at mmces node list")
	if err != nil {
		return a, err
	}
	plan := held.Plan
	if err := m.tables(ctx, &a); err != nil {
		return a, err
	}
	flags, listed := a.Flags[o.Forwarder]
	// Another release may have another word: of a node that was suspended for a plan any flag is it.
	switch is := a.IsSuspended(o.Forwarder) || plan != "" && flags != ""; {
	case !listed:
		return a, fmt.Errorf("mmces node list does not have %s (%s)", o.Forwarder, name)
	case is && plan == "":
		return a, fmt.Errorf("%s is suspended, and not by fairway: it is left so; mmces node resume -N %s ends it",
			o.Forwarder, name)
	case is == o.Suspended:
		if !is {
			return a, m.hold("") // somebody else has ended it, or it never was
		}
		return a, nil
	}
	verb := "resume"
	if o.Suspended {
		verb = "suspend"
		if err := mayLeave(&a, o.Forwarder); err != nil {
			return a, err
		}
		if err := m.hold(o.Plan); err != nil {
			return a, err
		}
	}
	_, ran := m.run(ctx, "mmces", "node", verb, "-N", name)
	was := a
	if err := m.tables(ctx, &a); err != nil {
		return a, errors.Join(ran, err) // it may be suspended: the note stays
	}
	now := a.Flags[o.Forwarder]
	if is := a.IsSuspended(o.Forwarder) || o.Suspended && now != "" && now != flags; is != o.Suspended {
		if ran == nil {
			ran = fmt.Errorf("mmces node %s reported success, and mmces node list has %s with the flags %q", verb,
				o.Forwarder, now)
		}
		if !is {
			err = m.hold("")
		}
		return a, errors.Join(ran, err)
	}
	if !o.Suspended {
		return a, m.hold("")
	}
	for address, at := range was.At {
		if a.At[address] != at {
			err = errors.Join(err, fmt.Errorf("%s is suspended, and the system has moved %s from %s to %q meanwhile",
				o.Forwarder, address, at, a.At[address]))
		}
	}
	return a, err
}

// tables reads the cluster's tables of addresses and of nodes.
func (m *Mover) tables(ctx context.Context, a *wire.AddressesAnswer) (err error) {
	if a.At, err = m.table(ctx); err != nil {
		return err
	}
	a.Flags, err = m.flags(ctx)
	return err
}

// mayLeave refuses to suspend a node that has an address, and where a node that has one takes none now, or no two
// others are left.
func mayLeave(a *wire.AddressesAnswer, f topology.ForwarderID) error {
	if left := a.OthersLeft(f); left < wire.FewestLeft {
		return fmt.Errorf("%s is not suspended: %d other nodes take addresses, at least %d must be left", f, left,
			wire.FewestLeft)
	}
	for address, at := range a.At {
		switch {
		case at == f:
			return fmt.Errorf("%s is not suspended: it has %s, which would move to where the system likes", f, address)
		case at == "" || a.Flags[at] != "":
			return fmt.Errorf("%s is not suspended: %s is at %q with the flags %q: mend that first", f, address, at,
				a.Flags[at])
		}
	}
	return nil
}
