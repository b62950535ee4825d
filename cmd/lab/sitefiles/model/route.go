package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Route is one line of a node's table: a net that is reached over a gateway.
type Route struct {
	Net, Gateway string
	Hops         int // -1: not given
	Priority     int
	Down         bool
	router       *Node
	seq          uint64
}

// Rule is a selection policy of the user: messages to Dst prefer the router Rte.
type Rule struct{ Src, Dst, Rte string }

// Table is what a node sends by.
type Table struct {
	Routes   []*Route
	Rules    []Rule
	DropAsym bool
	// preferred are the routers of a destination, by its NID. There is one list a destination: adding a rule that
	// matches clears it first, and deleting any such rule clears it.
	preferred map[string][]string
	next      uint64
}

// Clone copies a table; the copy is in force nowhere.
func (t *Table) Clone() *Table {
	c := *t
	c.Routes, c.Rules, c.preferred = nil, slices.Clone(t.Rules), maps.Clone(t.preferred)
	for _, r := range t.Routes {
		copied := *r
		c.Routes = append(c.Routes, &copied)
	}
	return &c
}

// Primary is the identifier by which a node knows a router: its first, or the far one where peers
// discover each other.
func (n *Node) Primary(router *Node) string {
	if n.site.cfg.Discovery {
		return router.NIs[len(router.NIs)-1].NID
	}
	return router.NIOf(n.NIs[0].Net).NID
}

// choose is LNet's choice of the router of one message: a preferred one, then the lower priority, fewer hops, fewer
// bytes queued to it, more credits, and the one that was used longest ago.
func (n *Node) choose(dst *Node) *Node {
	net := n.NIs[0].Net
	pref := n.Table.preferred[dst.NID()]
	var best *Route
	var bestPeer *Peer
	bestPref := false
	for _, r := range n.Table.Routes {
		if r.Down || r.Net != dst.NIs[0].Net {
			continue
		}
		p := n.peerOf(r.router, net)
		isPref := len(pref) > 0 && slices.Contains(pref, n.Primary(r.router))
		if best == nil || better(r, p, isPref, best, bestPeer, bestPref) {
			best, bestPeer, bestPref = r, p, isPref
		}
	}
	if best == nil {
		return nil
	}
	n.Table.next++
	best.seq = n.Table.next
	return best.router
}

func better(a *Route, ap *Peer, aPref bool, b *Route, bp *Peer, bPref bool) bool {
	switch {
	case aPref != bPref:
		return aPref
	case a.Priority != b.Priority:
		return a.Priority < b.Priority
	case a.Hops != b.Hops:
		return a.hops() < b.hops()
	case ap.Queued != bp.Queued:
		return ap.Queued < bp.Queued
	case ap.Tx.Now != bp.Tx.Now:
		return ap.Tx.Now > bp.Tx.Now
	}
	return a.seq < b.seq
}

// hops takes a number that was not given for one.
func (r *Route) hops() int {
	if r.Hops < 0 {
		return 1
	}
	return r.Hops
}

func (n *Node) hasRoute(to, via *Node) bool {
	for _, r := range n.Table.Routes {
		if r.Net == to.NIs[0].Net && r.router == via {
			return true
		}
	}
	return false
}

// Errors of a node's LNet, by the number of its kernel.
const (
	NotThere    = -2
	Exists      = -17
	Invalid     = -22
	Unreachable = -113
	Busy        = -16
)

// Errno is a refusal of the kernel.
type Errno int

func (e Errno) Error() string { return fmt.Sprintf("errno: %d", int(e)) }

// AddRoute adds a route over a gateway that the node can reach.
func (n *Node) AddRoute(net, gateway string, hops, priority int) error {
	router := n.site.byNID[gateway]
	switch {
	case router == nil || router.Role != Router || router.NIOf(n.NIs[0].Net) == nil ||
		router.NIOf(n.NIs[0].Net).NID != gateway:
		return Errno(Unreachable)
	case n.NIOf(net) != nil:
		return Errno(Exists)
	}
	for _, r := range n.Table.Routes {
		if r.Net == net && r.Gateway == gateway {
			return Errno(Exists)
		}
	}
	n.Table.Routes = append(n.Table.Routes,
		&Route{Net: net, Gateway: gateway, Hops: hops, Priority: priority, router: router})
	return nil
}

// DelRoute deletes a route. What is queued goes the old way.
func (n *Node) DelRoute(net, gateway string) error {
	i := slices.IndexFunc(n.Table.Routes, func(r *Route) bool { return r.Net == net && r.Gateway == gateway })
	if i < 0 {
		return Errno(NotThere)
	}
	n.Table.Routes = slices.Delete(n.Table.Routes, i, i+1)
	return nil
}

// AddRule adds a rule at an index, at the end where idx is below 0.
func (n *Node) AddRule(r Rule, idx int) error {
	if r.Dst == "" || r.Rte == "" {
		return Errno(Invalid)
	}
	if slices.Contains(n.Table.Rules, r) {
		return Errno(Exists)
	}
	if idx < 0 || idx > len(n.Table.Rules) {
		idx = len(n.Table.Rules)
	}
	n.Table.Rules = slices.Insert(n.Table.Rules, idx, r)
	for _, nid := range n.site.matching(r.Dst) {
		n.Table.preferred[nid] = []string{r.Rte}
	}
	return nil
}

// DelRule deletes the rule at an index; the indexes behind it move up.
func (n *Node) DelRule(idx int) error {
	if idx < 0 || idx >= len(n.Table.Rules) {
		return Errno(NotThere)
	}
	for _, nid := range n.site.matching(n.Table.Rules[idx].Dst) {
		delete(n.Table.preferred, nid)
	}
	n.Table.Rules = slices.Delete(n.Table.Rules, idx, idx+1)
	return nil
}

// matching lists the NIDs that a pattern stands for: an address with ranges in brackets, or a net.
func (s *Site) matching(pattern string) []string {
	var out []string
	for _, n := range s.Nodes {
		for _, ni := range n.NIs {
			if nidMatches(pattern, ni.NID) {
				out = append(out, ni.NID)
			}
		}
	}
	return out
}

func nidMatches(pattern, nid string) bool {
	addr, net, ok := strings.Cut(nid, "@")
	wantAddr, wantNet, hasAddr := strings.Cut(pattern, "@")
	if !ok || !hasAddr {
		return ok && pattern == net
	}
	if wantNet != net {
		return false
	}
	have, want := strings.Split(addr, "."), strings.Split(wantAddr, ".")
	if len(have) != len(want) {
		return false
	}
	for i := range have {
		if !fieldMatches(want[i], have[i]) {
			return false
		}
	}
	return true
}

// fieldMatches matches one number of an address with *, a number, or [A-B,C].
func fieldMatches(want, have string) bool {
	inside, ok := strings.CutPrefix(want, "[")
	if !ok {
		return want == "*" || want == have
	}
	var v int
	if _, err := fmt.Sscan(have, &v); err != nil {
		return false
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(inside, "]"), ",") {
		var lo, hi int
		if n, _ := fmt.Sscanf(part, "%d-%d", &lo, &hi); n == 1 {
			hi = lo
		}
		if lo <= v && v <= hi {
			return true
		}
	}
	return false
}
