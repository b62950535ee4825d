package lnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"fairway/collector/topology"
	"fairway/collector/wire"
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
	routes, err := m.table(ctx)
	if err != nil {
		return wire.AvoidAnswer{}, err
	}
	var errs []error
	for _, f := range m.named() {
		gateway := m.Gateways[f]
		if slices.Contains(o.Forwarders, f) {
			err = m.lower(ctx, routes, gateway, o.Forwarders)
		} else {
			err = m.raise(ctx, routes, gateway)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f, err))
		}
	}
	return m.avoided(), errors.Join(errs...)
}

// named lists the forwarders of the table by name.
func (m *Mover) named() []topology.ForwarderID {
	var out []topology.ForwarderID
	for f := range m.Gateways {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// avoided is what the journal has.
func (m *Mover) avoided() wire.AvoidAnswer {
	a := wire.AvoidAnswer{Forwarders: []topology.ForwarderID{}}
	for _, f := range m.named() {
		if _, ok := m.kept.Routes[m.Gateways[f]]; ok {
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
		f, _ := m.forwarderOf(r.gateway)
		if r.gateway != gateway && !r.down && !slices.Contains(avoid, f) {
			another = true
			low = max(low, r.priority)
		}
	}
	if !another {
		return fmt.Errorf("the route over %s stays: the node has no other usable router to %s", gateway, m.Net)
	}
	drops, err := m.dropsAsymmetric(ctx)
	if err != nil {
		return err
	}
	if drops {
		return fmt.Errorf(
			"the route over %s stays: drop_asym_route is 1, so that messages that come over it while it is "+
				"replaced would be dropped; set it to 0 first", gateway)
	}
	entry := keptRoute{Hops: now.hops, Priority: now.priority, Lowered: low + away}
	if err := m.keep(func(k *kept) { k.Routes[gateway] = entry }); err != nil {
		return err
	}
	return m.replace(ctx, now, entry.Lowered)
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
		err = m.replace(ctx, now, was.Priority)
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

// replace gives a route another priority. The kernel has no command for that: it is deleted and added, and added as it
// was if that fails.
func (m *Mover) replace(ctx context.Context, r route, priority int) error {
	if _, err := m.lnetctl(ctx, "route", "del", "--net", m.Net, "--gateway", r.gateway); err != nil {
		return err
	}
	err := m.add(ctx, r.gateway, r.hops, priority)
	if err != nil {
		return errors.Join(err, m.add(context.WithoutCancel(ctx), r.gateway, r.hops, r.priority))
	}
	return nil
}

// add adds a route and looks whether it is there.
func (m *Mover) add(ctx context.Context, gateway string, hops, priority int) error {
	args := []string{"route", "add", "--net", m.Net, "--gateway", gateway, "--priority", strconv.Itoa(priority)}
	if hops > 0 {
		args = append(args, "--hop", strconv.Itoa(hops))
	}
	if _, err := m.lnetctl(ctx, args...); err != nil {
		return err
	}
	routes, err := m.table(ctx)
	if err != nil {
		return err
	}
	if r, ok := find(routes, gateway); !ok || r.priority != priority {
		return fmt.Errorf("lnetctl reported success, but the route over %s is not there at priority %d", gateway,
			priority)
	}
	return nil
}
