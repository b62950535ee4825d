package lnet

import (
	"fmt"
	"maps"

	"fairway/collector/topology"
	"fairway/remap/node"
)

// kept is what the mover has changed and has to give back.
type kept struct {
	// Routes are the routes whose priority was lowered, by gateway.
	Routes map[string]keptRoute `json:"routes"`
	// Avoid are the routers that the node was ordered to avoid, To the one that it was moved to; empty: none.
	Avoid []topology.ForwarderID `json:"avoid,omitempty"`
	To    topology.ForwarderID   `json:"to,omitempty"`
	// Ruled is the router that the node was moved to by a rule, where routes must not be replaced; empty: none.
	Ruled topology.ForwarderID `json:"ruled,omitempty"`
	// Added are the gateways of routes that were not there before.
	Added map[string]bool `json:"added"`
	// Rules are the rules that were added, by their destination; the value is the router's.
	Rules map[string]string `json:"rules"`
	// Accepts says that drop_asym_route is 0 by us while a route is replaced, and was 1.
	Accepts bool `json:"accepts,omitempty"`
	// Was are the routers that rules of ours named before the newest order; empty: none did.
	Was map[string]string `json:"was,omitempty"`
}

// keptRoute is a route as it was, and its priority since.
type keptRoute struct {
	Hops     int `json:"hops"`
	Priority int `json:"priority"`
	Lowered  int `json:"lowered"`
}

// open reads the journal at the first order.
func (m *Mover) open() error {
	if m.kept.Routes != nil {
		return nil
	}
	k := kept{Routes: map[string]keptRoute{}, Rules: map[string]string{}, Added: map[string]bool{}}
	if m.Journal != "" {
		err := node.ReadNote(m.Journal, &k, "which routes were changed: compare it with lnetctl route show")
		if err != nil {
			return err
		}
	}
	m.set(&k)
	return nil
}

// keep changes the journal, on disk first.
func (m *Mover) keep(change func(*kept)) error {
	next := m.kept
	next.Routes, next.Rules, next.Added = maps.Clone(next.Routes), maps.Clone(next.Rules), maps.Clone(next.Added)
	if next.Was = maps.Clone(next.Was); next.Was == nil {
		next.Was = map[string]string{}
	}
	change(&next)
	if m.Journal != "" {
		if err := node.WriteNote(m.Journal, next); err != nil {
			return fmt.Errorf("the journal of changed routes: %w; nothing was changed", err)
		}
	}
	m.set(&next)
	return nil
}
