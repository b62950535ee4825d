package lnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fairway/collector/source/lnet"
	"fairway/collector/wire"
)

// rules reads the kernel's list.
func (k *Kernel) rules(ctx context.Context) ([]lnet.Rule, error) {
	out, err := k.lnetctl(ctx, "udsp", "show")
	if err != nil {
		return nil, fmt.Errorf("this LNet has no rules for single nodes (Lustre 2.15 and later have): %w", err)
	}
	all, err := lnet.ParseRules(out)
	if err != nil {
		return nil, fmt.Errorf("lnetctl udsp show: %w", err)
	}
	return all, nil
}

// Steer makes the node send what goes to o.To over one forwarder, by a rule for each; without a forwarder it takes its
// own rules for them away. A destination that somebody else's rule covers is not touched: the kernel keeps one list of
// preferred routers a destination, and adding or deleting any rule of it clears the list.
func (m *Mover) Steer(ctx context.Context, o wire.SteerOrder) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steer(ctx, o)
}

func (m *Mover) steer(ctx context.Context, o wire.SteerOrder) error {
	if err := m.open(); err != nil {
		return err
	}
	rte := ""
	if o.Forwarder != "" {
		gateway, ok := m.Gateways[o.Forwarder]
		if !ok {
			return fmt.Errorf("no gateway for %s: set it in [orders.forwarders]", o.Forwarder)
		}
		var err error
		if rte, err = m.primary(ctx, gateway); err != nil {
			return err
		}
	}
	rules, err := m.rules(ctx)
	if err != nil {
		return err
	}
	for _, dst := range o.To {
		to := rte
		if o.Back {
			to = m.kept.Was[dst]
		} else if have := m.kept.Rules[dst]; have != rte {
			if err := m.keep(func(k *kept) { k.Was[dst] = have }); err != nil {
				return err
			}
		}
		again, err := m.steerOne(ctx, rules, dst, to)
		if err == nil && again {
			rules, err = m.rules(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", dst, err)
		}
		if _, has := m.kept.Was[dst]; has && o.Back {
			if err := m.keep(func(k *kept) { delete(k.Was, dst) }); err != nil {
				return err
			}
		}
	}
	if rules, err = m.rules(ctx); err != nil {
		return err
	}
	for _, dst := range o.To {
		if rte := m.kept.Rules[dst]; rte != "" &&
			!slices.ContainsFunc(rules, func(r lnet.Rule) bool { return r.To == dst && r.Preferred == rte }) {
			return fmt.Errorf("lnetctl reported success, but a rule for %s over %s is missing", dst, rte)
		}
	}
	return nil
}

// steerOne gives a destination its rule; rules are those of the kernel before, and again says that they are
// not any more.
func (m *Mover) steerOne(ctx context.Context, rules []lnet.Rule, dst, rte string) (again bool, err error) {
	have := m.kept.Rules[dst]
	there := false
	for _, r := range rules {
		switch ours := have != "" && r.To == dst && r.Preferred == have; {
		case ours && have == rte:
			there = true
		case ours:
			if _, err := m.lnetctl(ctx, "udsp", "del", "--idx", strconv.Itoa(r.Index)); err != nil {
				return true, err
			}
			again = true
		case covers(r.To, dst) && rte != "":
			return again, fmt.Errorf("rule %d (%s over %s) is somebody else's and covers it: nothing was changed",
				r.Index, r.To, r.Preferred)
		}
	}
	if there {
		return again, nil
	}
	if rte == "" {
		return again, m.keep(func(k *kept) { delete(k.Rules, dst) })
	}
	if err := m.keep(func(k *kept) { k.Rules[dst] = rte }); err != nil {
		return again, err
	}
	_, err = m.lnetctl(ctx, "udsp", "add", "--dst", dst, "--rte", rte)
	if err != nil && ctx.Err() != nil {
		return again, err // lnetctl may have done it: the rule stays known as ours, and the next order looks
	}
	if err != nil {
		return again, errors.Join(err, m.keep(func(k *kept) { delete(k.Rules, dst) }))
	}
	return again, nil
}

// covers says whether a rule's destination could stand for one of ours: the same, its whole net, or a pattern
// of its net.
func covers(pattern, dst string) bool {
	if pattern == dst || pattern == "" || pattern == "NA" {
		return pattern == dst
	}
	_, net, _ := strings.Cut(dst, "@")
	net = cmp.Or(net, dst)
	addr, itsNet, ok := strings.Cut(pattern, "@")
	if !ok {
		return pattern == net
	}
	return itsNet == net && strings.ContainsAny(addr, "[*")
}

// primary finds the identifier that rules know a gateway by: with discovery it may be one of another net.
func (k *Kernel) primary(ctx context.Context, gateway string) (string, error) {
	out, err := k.lnetctl(ctx, "peer", "show", "--nid", gateway)
	if err != nil {
		return "", err
	}
	peers, err := lnet.ParsePeerShow(out)
	if err != nil {
		return "", fmt.Errorf("lnetctl peer show of %s: %w", gateway, err)
	}
	for _, p := range peers {
		if p.NID == gateway || p.Primary == gateway {
			return p.Primary, nil
		}
	}
	return "", fmt.Errorf("lnetctl peer show has no primary nid of %s", gateway)
}

// Look answers what a plan has to know of this node's LNet.
func (m *Mover) Look(ctx context.Context) (wire.LookAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := wire.LookAnswer{Net: m.Net}
	out, err := m.lnetctl(ctx, "net", "show")
	if err != nil {
		return a, err
	}
	if a.NIDs, err = lnet.ParseNetShow(out); err != nil {
		return a, fmt.Errorf("lnetctl net show: %w", err)
	}
	_, err = m.rules(ctx)
	a.Rules = err == nil
	return a, nil
}

// Traffic counts the messages of peers of this node, a router: data that they sent or took, and their requests.
func (m *Mover) Traffic(ctx context.Context, o wire.TrafficOrder) (wire.TrafficAnswer, error) {
	a := wire.TrafficAnswer{Peers: map[string]wire.PeerTraffic{}}
	for _, nid := range o.NIDs {
		out, err := m.lnetctl(ctx, "peer", "show", "--nid", nid, "-v", "2")
		if err != nil {
			return a, err
		}
		if a.Peers[nid], err = received(out, nid); err != nil {
			return a, fmt.Errorf("lnetctl peer show of %s: %w", nid, err)
		}
	}
	return a, nil
}

// received are the messages that came from a peer's interface by kind. A REPLY carries written data and an ACK answers
// read data; a PUT is a request.
func received(out []byte, nid string) (t wire.PeerTraffic, err error) {
	peers, err := lnet.ParsePeerShow(out)
	if err != nil {
		return t, err
	}
	i := slices.IndexFunc(peers, func(p lnet.PeerInterface) bool { return p.NID == nid })
	switch {
	case i < 0:
		return t, errors.New("it is not among the peers that were printed")
	case !peers[i].ByKind:
		return t, errors.New("no counts by kind (Lustre 2.11 and later have them)")
	}
	return wire.PeerTraffic{Requests: peers[i].FromPut, Data: peers[i].FromReply + peers[i].FromAck}, nil
}
