package window

import (
	"cmp"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// DefaultStaleAfter is the age from which a route is stale.
const DefaultStaleAfter = 10 * time.Second

// Route is what is known of one compute node's way to storage.
type Route struct {
	// Forwarder is the one that the node uses; empty where it spreads its traffic over several.
	Forwarder topology.ForwarderID `json:"forwarder"`
	// Shares are those of a node that uses several forwarders, by name; no part reaches topology.OneFrom. Assumed says
	// that they were not measured: the node may use all of them alike.
	Shares  []topology.Share `json:"shares,omitempty"`
	Assumed bool             `json:"assumed,omitempty"`
	// Generation counts the remaps of the node's mount; 0 where only forwarders report it.
	Generation uint64    `json:"generation,omitempty"`
	At         time.Time `json:"at"`    // of the newest evidence
	Since      time.Time `json:"since"` // of the first evidence for this forwarder
	ByMount    bool      `json:"by_mount"`
	// ByForwarder says that the forwarder itself lists the client too.
	ByForwarder bool `json:"by_forwarder"`
	// Lost says that the mount gets no answer from the forwarder. It is still the way the node is set
	// to, so that it can be moved off it.
	Lost  bool `json:"lost,omitempty"`
	Stale bool `json:"stale,omitempty"`
	// Address is the one floating address by which the node reaches its forwarder: where that moves, the node does.
	Address string `json:"address,omitempty"`
	// Lingering lists other forwarders that still hold a connection of the node.
	Lingering []topology.ForwarderID `json:"lingering,omitempty"`
}

// tracker merges frames into routes. The board's lock guards it; the time is an argument.
type tracker struct {
	staleAfter time.Duration
	nodes      map[topology.NodeID]*evidence
	list       []*evidence                                            // those of nodes
	clients    map[topology.ForwarderID]map[topology.NodeID]*evidence // those with a listed claim
	holders    map[string][]claim                                     // of each floating address
	held       map[topology.ForwarderID]map[string]bool               // the addresses among them of each forwarder
	swept      time.Time
}

// Evidence that is older than forgetAfter is dropped, every sweepEvery.
const (
	forgetAfter = time.Hour
	sweepEvery  = time.Minute
)

// sweep forgets what was not reported for long: names that a sender made up must not stay.
func (t *tracker) sweep(now time.Time) {
	if now.Sub(t.swept) < sweepEvery && !now.Before(t.swept) {
		return
	}
	t.swept = now
	old := func(c *claim) bool { return now.Sub(c.at) > forgetAfter }
	for i := len(t.list) - 1; i >= 0; i-- { // forget puts the last one, which was looked at, in the place of another
		e := t.list[i]
		e.listed = slices.DeleteFunc(e.listed, func(c claim) bool {
			if !old(&c) {
				return false
			}
			delete(t.clients[c.forwarder], e.node)
			if len(t.clients[c.forwarder]) == 0 {
				delete(t.clients, c.forwarder)
			}
			return true
		})
		if len(e.listed) == 0 && old(&e.mount) {
			t.forget(e)
		}
	}
	for address := range t.holders {
		t.drop(address, old)
	}
}

// evidence is everything that was reported of one compute node's route.
type evidence struct {
	node   topology.NodeID
	place  int // in the tracker's list
	mount  claim
	listed []claim // one of each forwarder that lists the node: one, or two after a move
}

// by finds a forwarder's claim.
func (e *evidence) by(f topology.ForwarderID) int {
	return slices.IndexFunc(e.listed, func(c claim) bool { return c.forwarder == f })
}

// claim is one observer's newest report; a zero at means that it never reported.
type claim struct {
	forwarder  topology.ForwarderID
	shares     []topology.Share // of a node that uses several; then without a forwarder
	vias       []via            // of a node that reports addresses instead of forwarders
	assumed    bool
	generation uint64
	lost       bool
	first, at  time.Time
}

func newTracker(staleAfter time.Duration) *tracker {
	if staleAfter <= 0 {
		staleAfter = DefaultStaleAfter
	}
	return &tracker{staleAfter: staleAfter, nodes: map[topology.NodeID]*evidence{},
		clients: map[topology.ForwarderID]map[topology.NodeID]*evidence{}, holders: map[string][]claim{},
		held: map[topology.ForwarderID]map[string]bool{}}
}

// observe takes the routes of one frame that arrived at now. Evidence is as old as the frame's
// second, so that a replayed spool does not look fresh, and never newer than now; what is newer than now
// was kept before this clock was set back, and gives way.
func (t *tracker) observe(f *collector.Frame, now time.Time) {
	at := time.UnixMilli(f.TimeMillis + 1000)
	if at.After(now) {
		at = now
	}
	if f.Role != topology.Forwarder {
		if c, ok := ownClaim(f.Routes); ok {
			t.of(f.Routes[0].Client).report(c, at, now)
		}
		return
	}
	for _, r := range f.Routes {
		if r.Client == "" || r.Forwarder == "" {
			continue
		}
		e := t.of(r.Client)
		e.list(r.Forwarder, at, now)
		if t.clients[r.Forwarder] == nil {
			t.clients[r.Forwarder] = map[topology.NodeID]*evidence{}
		}
		t.clients[r.Forwarder][r.Client] = e
	}
	t.holds(f, at, now)
	if f.RoutesComplete {
		t.dropUnlisted(f, at, now)
	}
}

func (t *tracker) of(n topology.NodeID) *evidence {
	e := t.nodes[n]
	if e == nil {
		e = &evidence{node: n, place: len(t.list)}
		t.nodes[n] = e
		t.list = append(t.list, e)
	}
	return e
}

// forget drops a node of which nothing is known any more.
func (t *tracker) forget(e *evidence) {
	last := t.list[len(t.list)-1]
	last.place, t.list[e.place] = e.place, last
	t.list = t.list[:len(t.list)-1]
	delete(t.nodes, e.node)
}

// ownClaim is what a compute node's own frame says of its way: one forwarder, shares of several, or addresses that
// forwarders have. Of several sources that name one each the last one counts.
func ownClaim(routes []collector.Route) (c claim, ok bool) {
	for _, r := range routes {
		if r.Client != "" && r.Client == routes[0].Client && r.Forwarder == "" && r.Address != "" {
			v := via{r.Address, r.Share}
			if v.part <= 0 {
				v.part = 1
			}
			if len(c.vias) < maxVias {
				c.vias = append(c.vias, v)
			}
			c.assumed, ok = c.assumed || r.Assumed, true
			continue
		}
		if r.Client == "" || r.Client != routes[0].Client || r.Forwarder == "" {
			continue
		}
		if r.Share <= 0 || r.Share >= topology.OneFrom {
			return claim{forwarder: r.Forwarder, generation: r.Generation, lost: r.Lost}, true
		}
		c.shares = append(c.shares, topology.Share{Forwarder: r.Forwarder, Part: r.Share})
		c.assumed, ok = c.assumed || r.Assumed, true
	}
	if len(c.vias) > 0 {
		c.shares = nil // those are made anew for every reader
	}
	slices.SortFunc(c.shares, func(a, b topology.Share) int { return cmp.Compare(a.Forwarder, b.Forwarder) })
	return c, ok
}

// report takes the node's own report. An older second changes nothing. A lower generation is a mount
// that was started anew, which its newer second proves.
func (e *evidence) report(c claim, at, now time.Time) {
	if at.Before(e.mount.at) && !e.mount.at.After(now) || at.Equal(e.mount.at) && c.generation < e.mount.generation {
		return
	}
	c.first, c.at = e.mount.first, at
	same := func(a, b topology.Share) bool { return a.Forwarder == b.Forwarder }
	if e.mount.forwarder != c.forwarder || !slices.EqualFunc(e.mount.shares, c.shares, same) || c.first.IsZero() ||
		!slices.EqualFunc(e.mount.vias, c.vias, func(a, b via) bool { return a.address == b.address }) {
		c.first = at
	}
	e.mount = c
}

func (e *evidence) list(f topology.ForwarderID, at, now time.Time) {
	i := e.by(f)
	if i < 0 {
		e.listed = append(e.listed, claim{forwarder: f, first: at, at: at})
	} else if at.After(e.listed[i].at) || e.listed[i].at.After(now) {
		e.listed[i].at = at
	}
}

// dropUnlisted forgets the clients that a forwarder's complete list no longer shows.
func (t *tracker) dropUnlisted(f *collector.Frame, at, now time.Time) {
	me := topology.ForwarderID(f.Node)
	for n, e := range t.clients[me] {
		if i := e.by(me); e.listed[i].at.Before(at) || e.listed[i].at.After(now) {
			e.listed = slices.Delete(e.listed, i, i+1)
			delete(t.clients[me], n)
		}
		if len(e.listed) == 0 && e.mount.at.IsZero() {
			t.forget(e)
		}
	}
}

// routes visits the state of every compute node at now, in no order.
func (t *tracker) routes(now time.Time, visit func(topology.NodeID, Route)) {
	for _, e := range t.list {
		if r, ok := t.resolve(e, now); ok {
			visit(e.node, r)
		}
	}
}

// resolve decides between the observers: the mount while it is fresh, else the newest connection,
// else the newest report of anybody, marked stale.
func (t *tracker) resolve(e *evidence, now time.Time) (Route, bool) {
	staleAfter := t.staleAfter
	own, address := e.mount, ""
	if len(own.vias) > 0 {
		var known bool
		if address, known = t.settle(&own); !known {
			own = claim{}
		}
	}
	best, byMount := own, !own.at.IsZero()
	if !byMount || now.Sub(best.at) > staleAfter {
		if c, ok := e.newestConnection(now, staleAfter); ok && (!byMount || now.Sub(c.at) <= staleAfter) {
			best, byMount = c, false
		}
	}
	if best.at.IsZero() {
		return Route{}, false
	}
	if !byMount {
		address = ""
	}
	r := Route{Forwarder: best.forwarder, Generation: best.generation, At: best.at, Since: best.first,
		Address: address,
		Shares:  best.shares, Assumed: best.assumed,
		ByMount: byMount, Lost: best.lost, Stale: now.Sub(best.at) > staleAfter}
	for i := range e.listed {
		c := &e.listed[i]
		switch {
		case now.Sub(c.at) > staleAfter:
		case c.forwarder == best.forwarder, slices.ContainsFunc(best.shares, func(s topology.Share) bool {
			return s.Forwarder == c.forwarder
		}):
			r.ByForwarder = true
			if c.at.After(r.At) {
				r.At = c.at
			}
		default:
			r.Lingering = append(r.Lingering, c.forwarder)
		}
	}
	slices.Sort(r.Lingering)
	return r, true
}

// newestConnection returns the connection that began last among the fresh ones: a client that was
// moved connects to its new forwarder after the old one. Without a fresh one, the one seen last.
func (e *evidence) newestConnection(now time.Time, staleAfter time.Duration) (claim, bool) {
	var best claim
	better := func(c claim) bool {
		cf, bf := now.Sub(c.at) <= staleAfter, now.Sub(best.at) <= staleAfter
		switch {
		case best.at.IsZero() || cf != bf:
			return best.at.IsZero() || cf
		case cf && !c.first.Equal(best.first):
			return c.first.After(best.first)
		case !cf && !c.at.Equal(best.at):
			return c.at.After(best.at)
		}
		return c.forwarder < best.forwarder // the same answer in whatever order they came
	}
	for _, c := range e.listed {
		if better(c) {
			best = c
		}
	}
	return best, !best.at.IsZero()
}

// Mapping reduces routes to the fresh ones' forwarders. A node that uses several has none.
func Mapping(routes map[topology.NodeID]Route) topology.Mapping {
	m := make(topology.Mapping, len(routes))
	for n, r := range routes {
		if !r.Stale && r.Forwarder != "" {
			m[n] = r.Forwarder
		}
	}
	return m
}
