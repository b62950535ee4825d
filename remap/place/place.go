// Package place says where compute nodes are: by the site's fixed mapping, as observed, and where plans under way will
// have them. Policies, the desk, the shares of forwarders and every screen ask this one type.
package place

import (
	"maps"
	"slices"

	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Places is where the nodes of a machine are at one instant. It is immutable once made.
type Places struct {
	// Default is the site's fixed mapping.
	Default topology.Mapping `json:"-"`
	// Observed has the nodes with a fresh route over one forwarder.
	Observed topology.Mapping `json:"observed"`
	// Promised has the nodes that plans under way are bringing somewhere, with where that is.
	Promised topology.Mapping `json:"-"`
	// Used is Observed and, of nodes that nothing was ever observed of, Default: it is shown and judged.
	Used topology.Mapping `json:"-"`
	// Routes are the observed routes with their age and generation.
	Routes map[topology.NodeID]window.Route `json:"-"`
	// Clients counts the observed nodes of each forwarder, Assumed those by default, Sharing those that spread their
	// traffic over several.
	Clients, Assumed, Sharing map[topology.ForwarderID]int
}

// New returns the places of the nodes; the maps are taken over, not copied.
func New(byDefault topology.Mapping, routes map[topology.NodeID]window.Route, promised topology.Mapping) Places {
	p := Places{Default: byDefault, Observed: window.Mapping(routes), Promised: promised, Routes: routes,
		Clients: map[topology.ForwarderID]int{}, Assumed: map[topology.ForwarderID]int{},
		Sharing: map[topology.ForwarderID]int{}}
	p.assume()
	for _, f := range p.Observed {
		p.Clients[f]++
	}
	for _, r := range routes {
		if r.Stale {
			continue
		}
		for _, v := range r.Shares {
			p.Sharing[v.Forwarder]++
		}
	}
	return p
}

// assume puts the nodes that nothing was observed of where the site's fixed mapping has them.
func (p *Places) assume() {
	p.Used = p.Observed
	for n, f := range p.Default {
		if _, known := p.Routes[n]; known {
			continue
		}
		if len(p.Assumed) == 0 {
			p.Used = maps.Clone(p.Observed)
			if p.Used == nil {
				p.Used = topology.Mapping{}
			}
		}
		p.Used[n] = f
		p.Assumed[f]++
	}
}

// Over returns what a node's traffic goes over: one forwarder whole, or its share vector; nothing where that is not
// known. Of a node that nothing was ever observed of it is the default.
func (p *Places) Over(n topology.NodeID) []topology.Share {
	if f, ok := p.Used[n]; ok {
		return []topology.Share{{Forwarder: f, Part: 1}}
	}
	return p.SpreadOf(n)
}

// SpreadOf returns the share vector of a node that uses several forwarders; nil of any other.
func (p *Places) SpreadOf(n topology.NodeID) []topology.Share {
	if r, ok := p.Routes[n]; ok && !r.Stale {
		return r.Shares
	}
	return nil
}

// SpreadNodes returns the nodes that use several forwarders, by name.
func (p *Places) SpreadNodes() (nodes []topology.NodeID) {
	for n, r := range p.Routes {
		if !r.Stale && len(r.Shares) > 0 {
			nodes = append(nodes, n)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// On returns the forwarders that a decision finds a node on: those that a plan under way brings it to, else those that
// it is seen on, else its default.
func (p *Places) On(n topology.NodeID) []topology.ForwarderID {
	if f, ok := p.Promised[n]; ok {
		return []topology.ForwarderID{f}
	}
	return firstOf(p.seen(n), p.Default[n])
}

// Home returns the forwarders that a node uses when nobody moves it: its default, or where the site has none for it,
// those that it is seen on.
func (p *Places) Home(n topology.NodeID) []topology.ForwarderID {
	if f := p.Default[n]; f != "" {
		return []topology.ForwarderID{f}
	}
	return p.seen(n)
}

// seen returns the forwarders that a node's fresh routes go over.
func (p *Places) seen(n topology.NodeID) (out []topology.ForwarderID) {
	if f, ok := p.Observed[n]; ok {
		return []topology.ForwarderID{f}
	}
	for _, over := range p.SpreadOf(n) {
		out = append(out, over.Forwarder)
	}
	return out
}

func firstOf(seen []topology.ForwarderID, byDefault topology.ForwarderID) []topology.ForwarderID {
	if len(seen) == 0 && byDefault != "" {
		return []topology.ForwarderID{byDefault}
	}
	return seen
}

// Forwarders returns those that decisions find nodes on, each once, in the order of the nodes.
func (p *Places) Forwarders(nodes []topology.NodeID) (out []topology.ForwarderID) {
	have := map[topology.ForwarderID]bool{}
	for _, n := range nodes {
		for _, f := range p.On(n) {
			if !have[f] {
				have[f] = true
				out = append(out, f)
			}
		}
	}
	return out
}
