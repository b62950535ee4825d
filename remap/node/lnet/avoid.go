package lnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"fairway/collector/source/lnet"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// away is how far behind the site's own routes those of a router are put that is to be avoided.
const away = 10

// Avoid makes the node prefer its other routers to the ones that are named, and undoes that for all others: a route
// keeps its gateway and hops and gets a lower priority, so that it is used again if the others die. The last usable
// router of the net is never avoided. What it changes is in the journal before it is changed.
func (m *Mover) Avoid(ctx context.Context, o wire.AvoidOrder) (wire.AvoidAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(); err != nil {
		return wire.AvoidAnswer{}, err
	}
	if err := m.keep(func(k *kept) { k.Avoid = slices.Sorted(slices.Values(o.Forwarders)) }); err != nil {
		return wire.AvoidAnswer{}, err
	}
	err := errors.Join(m.settle(ctx), unsteer(ctx, m, o.Forwarders))
	return avoided(m.Gateways, &m.kept), err
}

// unsteer takes rules of ours for these routers away: LNet would prefer a router by a rule whatever its priority.
func unsteer(ctx context.Context, m *Mover, from []topology.ForwarderID) error {
	if len(m.kept.Rules) == 0 {
		return nil
	}
	var errs []error
	for _, f := range from {
		rte, err := m.primary(ctx, m.Gateways[f])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f, err))
			continue
		}
		for _, dst := range slices.Sorted(maps.Keys(m.kept.Rules)) {
			if m.kept.Rules[dst] != rte {
				continue
			}
			rules, err := m.rules(ctx)
			if err == nil {
				_, err = m.steerOne(ctx, rules, dst, "")
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", dst, err))
			}
		}
	}
	return errors.Join(errs...)
}

// settle makes the table what was ordered: the routers to avoid behind the others, and, of a node that was moved, all
// that it was not moved to. A router that is to be avoided is, whoever was moved to it. Routes rise before others fall.
func (m *Mover) settle(ctx context.Context) error {
	low := slices.Clone(m.kept.Avoid)
	if to := m.kept.To; to != "" && !slices.Contains(low, to) {
		for _, f := range slices.Sorted(maps.Keys(m.Gateways)) {
			if f != to && !slices.Contains(low, f) {
				low = append(low, f)
			}
		}
	}
	if err := m.dropAgain(ctx); err != nil { // a crash while a route was replaced
		return err
	}
	routes, err := m.table(ctx)
	if err != nil {
		return err
	}
	var errs []error
	each := func(in bool, do func(gateway string) error) {
		for _, f := range slices.Sorted(maps.Keys(m.Gateways)) {
			if slices.Contains(low, f) == in {
				if err := do(m.Gateways[f]); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", f, err))
				}
			}
		}
	}
	each(false, func(gateway string) error { return m.raise(ctx, routes, gateway) })
	each(true, func(gateway string) error { return m.lower(ctx, routes, gateway, low) })
	return errors.Join(errs...)
}

// prefer has the node use these routers: by its own table where that does so, else, of one, by putting
// the others behind.
func (m *Mover) prefer(ctx context.Context, want []topology.ForwarderID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(); err != nil {
		return err
	}
	routes, err := m.table(ctx)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(routes), func(r route) bool { return m.kept.Added[r.gateway] })
	for i := range own {
		if was, ours := m.kept.Routes[own[i].gateway]; ours {
			own[i].priority = was.Priority
		}
	}
	var added []string
	to := want[0]
	switch _, there := find(routes, m.Gateways[to]); {
	case slices.Equal(overOf(m.Gateways, own), want):
		to, added = "", slices.Sorted(maps.Keys(m.kept.Added))
	case len(want) > 1:
		return fmt.Errorf("its own table has it use %v, not %v: somebody else changed it, and it stays so",
			overOf(m.Gateways, own),
			want)
	case !there:
		if err := m.addRoute(ctx, routes, m.Gateways[to]); err != nil {
			return err
		}
	}
	ruled, err := m.rule(ctx, to)
	if err != nil {
		return err
	}
	if ruled {
		to = "" // no route is lowered
	}
	if err := m.keep(func(k *kept) { k.To = to }); err != nil {
		return err
	}
	if err := m.settle(ctx); err != nil {
		return err
	}
	for _, gateway := range added { // the node's own routes are what they were
		if _, err := m.lnetctl(ctx, "route", "del", "--net", m.Net, "--gateway", gateway); err != nil {
			return err
		}
		if err := m.keep(func(k *kept) { delete(k.Added, gateway) }); err != nil {
			return err
		}
	}
	return nil
}

// rule has a node that drops what comes over a router that it has no route over prefer one router by a rule for the
// whole net: a route that is replaced is missing for a moment, and what comes over it then would be lost. Elsewhere,
// and with to empty, the node has no such rule.
func (m *Mover) rule(ctx context.Context, to topology.ForwarderID) (ruled bool, err error) {
	if to != "" {
		if ruled, err = dropsAsymmetric(ctx, m.lnetctl); err != nil {
			return false, err
		}
	}
	order := wire.SteerOrder{To: []string{m.Net}}
	if ruled {
		order.Forwarder = to
	} else if m.kept.Ruled == "" {
		return false, nil
	}
	if err := m.steer(ctx, order); err != nil {
		return false, fmt.Errorf("no route may be replaced while drop_asym_route is 1, and no rule stands in: %w", err)
	}
	return ruled, m.keep(func(k *kept) { k.Ruled = order.Forwarder })
}

// byRule is the router that a rule of ours has the node use, empty where none does: the rule is there, and its router
// is not down.
func (m *Mover) byRule(ctx context.Context, routes []route) (topology.ForwarderID, error) {
	if m.mu.TryLock() { // an order under way does not delay a second's report
		err := m.open()
		m.mu.Unlock()
		if err != nil {
			return "", err
		}
	}
	by := m.ruled.Load()
	if by == nil || by.to == "" {
		return "", nil
	}
	if r, there := find(routes, m.Gateways[by.to]); !there || r.down {
		return "", nil
	}
	rules, err := m.rules(ctx)
	if !slices.ContainsFunc(rules, func(r lnet.Rule) bool { return r.To == m.Net && r.Preferred == by.rte }) {
		return "", err
	}
	return by.to, err
}

// addRoute adds a route over a router that the node has none over, as good as its best one.
func (m *Mover) addRoute(ctx context.Context, routes []route, gateway string) error {
	like := route{}
	if best := used(routes); len(best) > 0 {
		like = best[0]
	}
	if err := m.keep(func(k *kept) { k.Added[gateway] = true }); err != nil {
		return err
	}
	if err := m.add(ctx, gateway, like.hops, like.priority); err != nil {
		return errors.Join(err, m.keep(func(k *kept) { delete(k.Added, gateway) }))
	}
	return nil
}

// avoided is what the journal has.
func avoided(gateways map[topology.ForwarderID]string, k *kept) wire.AvoidAnswer {
	a := wire.AvoidAnswer{Forwarders: []topology.ForwarderID{}}
	for _, f := range slices.Sorted(maps.Keys(gateways)) {
		if _, ok := k.Routes[gateways[f]]; ok && slices.Contains(k.Avoid, f) {
			a.Forwarders = append(a.Forwarders, f)
		}
	}
	return a
}

func find(routes []route, gateway string) (route, bool) {
	i := slices.IndexFunc(routes, func(r route) bool { return r.gateway == gateway })
	if i < 0 {
		return route{}, false
	}
	return routes[i], true
}

// lower puts the route over a gateway behind all others.
func (m *Mover) lower(ctx context.Context, routes []route, gateway string, avoid []topology.ForwarderID) error {
	now, there := find(routes, gateway)
	was, ours := m.kept.Routes[gateway]
	switch {
	case ours && there && now.priority == was.Lowered:
		return nil
	case ours && there && now.priority != was.Priority:
		return m.foreign(gateway, was, now)
	case ours && !there: // a crash between the two commands
		return m.add(ctx, gateway, was.Hops, was.Lowered)
	case !there:
		return nil // the node does not use it
	}
	low, another := 0, false
	for _, r := range routes {
		f, _ := node.ByAddress(m.Gateways, r.gateway)
		if r.gateway != gateway && !r.down && !slices.Contains(avoid, f) {
			another = true
			low = max(low, r.priority)
		}
	}
	if !another {
		return fmt.Errorf("the route over %s stays: the node has no other usable router to %s", gateway, m.Net)
	}
	entry := keptRoute{Hops: now.hops, Priority: now.priority, Lowered: low + away}
	return m.accepting(ctx, gateway, func() error {
		if err := m.keep(func(k *kept) { k.Routes[gateway] = entry }); err != nil {
			return err
		}
		return m.replace(ctx, now, entry.Lowered)
	})
}

// raise gives the route over a gateway its own priority back.
func (m *Mover) raise(ctx context.Context, routes []route, gateway string) error {
	was, ours := m.kept.Routes[gateway]
	if !ours {
		return nil
	}
	now, there := find(routes, gateway)
	var err error
	switch {
	case !there:
		err = m.add(ctx, gateway, was.Hops, was.Priority)
	case now.priority == was.Lowered:
		err = m.accepting(ctx, gateway, func() error { return m.replace(ctx, now, was.Priority) })
	case now.priority != was.Priority:
		err = m.foreign(gateway, was, now)
	}
	if err != nil {
		return err
	}
	return m.keep(func(k *kept) { delete(k.Routes, gateway) })
}

// foreign forgets a route that somebody else has changed since: it is left as it is.
func (m *Mover) foreign(gateway string, was keptRoute, now route) error {
	if err := m.keep(func(k *kept) { delete(k.Routes, gateway) }); err != nil {
		return err
	}
	return fmt.Errorf(
		"the route over %s has priority %d, not the %d that it was given: somebody else changed it, and it "+
			"stays so", gateway, now.priority, was.Lowered)
}

// accepting does what leaves the node without a route over a gateway for a moment. A node that drops what comes over a
// router that it has no route over accepts everything meanwhile, so that nothing is lost.
func (m *Mover) accepting(ctx context.Context, gateway string, do func() error) error {
	drops, err := dropsAsymmetric(ctx, m.lnetctl)
	if err != nil {
		return err
	}
	if !drops {
		return do()
	}
	if err := m.keep(func(k *kept) { k.Accepts = true }); err != nil {
		return err
	}
	if err = m.dropAsymmetric(ctx, false); err != nil {
		err = fmt.Errorf("the route over %s stays: drop_asym_route is 1, so that messages that come over it while it "+
			"is replaced would be dropped, and it cannot be set to 0: %w", gateway, err)
	} else {
		err = do()
	}
	return errors.Join(err, m.dropAgain(context.WithoutCancel(ctx)))
}

// dropAgain has the node drop what it dropped before, if it accepts everything by us.
func (m *Mover) dropAgain(ctx context.Context) error {
	if !m.kept.Accepts {
		return nil
	}
	if err := m.dropAsymmetric(ctx, true); err != nil {
		return fmt.Errorf("drop_asym_route is not 1 again, as it was: %w; the next order tries again", err)
	}
	return m.keep(func(k *kept) { k.Accepts = false })
}

// dropAsymmetric sets drop_asym_route and looks whether it is set.
func (k *Kernel) dropAsymmetric(ctx context.Context, drop bool) error {
	value := "0"
	if drop {
		value = "1"
	}
	if _, err := k.lnetctl(ctx, "set", "drop_asym_route", value); err != nil {
		return err
	}
	is, err := dropsAsymmetric(ctx, k.lnetctl)
	if err == nil && is != drop {
		err = fmt.Errorf("lnetctl reported success, but drop_asym_route is not %s", value)
	}
	return err
}

// replace gives a route another priority. The kernel has no command for that: it is deleted and added, and added as it
// was if that fails.
func (k *Kernel) replace(ctx context.Context, r route, priority int) error {
	if _, err := k.lnetctl(ctx, "route", "del", "--net", k.Net, "--gateway", r.gateway); err != nil {
		return err
	}
	err := k.add(ctx, r.gateway, r.hops, priority)
	if err != nil {
		return errors.Join(err, k.add(context.WithoutCancel(ctx), r.gateway, r.hops, r.priority))
	}
	return nil
}

// add adds a route and looks whether it is there.
func (k *Kernel) add(ctx context.Context, gateway string, hops, priority int) error {
	args := []string{"route", "add", "--net", k.Net, "--gateway", gateway, "--priority", strconv.Itoa(priority)}
	if hops > 0 {
		args = append(args, "--hop", strconv.Itoa(hops))
	}
	if _, err := k.lnetctl(ctx, args...); err != nil {
		return err
	}
	routes, err := k.table(ctx)
	if err != nil {
		return err
	}
	if r, ok := find(routes, gateway); !ok || r.priority != priority {
		return fmt.Errorf("lnetctl reported success, but the route over %s is not there at priority %d", gateway,
			priority)
	}
	return nil
}
