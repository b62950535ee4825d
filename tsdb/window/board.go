// Package window holds the newest second of the machine: every node's newest frame, layer by layer, and the observed
// routes, merged from the mounts' own reports and the forwarders' lists of clients. Every live reader of the daemon
// reads it; longer spans come from the store.
//
// A mount's report counts before a forwarder's list, because only the mount knows its generation; a forwarder that
// still lists a client whose mount reports another one is lingering, not the route. Where no mount reports, the
// forwarder that listed the client first of late is taken.
package window

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// layers is the number of roles that a node can have.
const layers = int(topology.Metadata) + 1

// Board holds every node's newest frame and the observed routes. All methods may be called concurrently; what
// they return belongs to the caller. A visitor's frame is only valid during the call, and a visitor must not
// call the board.
type Board struct {
	mu      sync.RWMutex // guards everything that follows
	tracker *tracker
	byName  map[topology.NodeID]*Node
	all     []*Node // by number
	layer   [layers][]*Node
}

// Node is a node's newest frame and what is known of its arrival.
type Node struct {
	// Number is the node's for the life of the board; numbers begin at 0 and have no holes, so that a reader can keep
	// what it knows of nodes in a slice. It is in front of the frame, in the cache line of its time and samples.
	Number int32
	place  int32 // in its layer
	collector.Frame
	Arrived time.Time
	// Came counts the frames that arrived, older ones than the newest included.
	Came uint64
	// Ahead is how far the end of the frame's second, by the node's own clock, was ahead of its arrival.
	Ahead time.Duration
	// Facts are how the node is set up, as it says now and then: name=value, with semicolons between them.
	Facts string
}

// maxAhead is how far a node's clock may be ahead before its frames are shown under the second in which
// they came: a wrong clock must not make a node look alive that is gone, nor, once set back, keep it silent.
const maxAhead = 5 * time.Second

// NewBoard returns an empty board; a route is stale after staleAfter, 0 is DefaultStaleAfter.
func NewBoard(staleAfter time.Duration) *Board {
	return &Board{tracker: newTracker(staleAfter), byName: map[topology.NodeID]*Node{}}
}

// Take puts frames that arrived at now on the board. The frames are copied. A frame older than the
// node's newest (a replayed spool) changes nothing there.
func (b *Board) Take(frames []collector.Frame, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tracker.sweep(now)
	for i := range frames {
		f := &frames[i]
		b.tracker.observe(f, now)
		n := b.byName[f.Node]
		if n == nil {
			n = b.add(f)
		}
		if f.TimeMillis != n.TimeMillis || n.Came == 0 { // the same second again counts once
			n.Came++
		}
		if f.TimeMillis < n.TimeMillis && n.TimeMillis <= now.Add(maxAhead).UnixMilli() {
			continue
		}
		if f.Role != n.Role {
			b.leave(n)
			b.join(n, f.Role)
		}
		copyFrame(&n.Frame, f)
		for k := range f.Sources {
			if src := &f.Sources[k]; src.Note != "" && src.Name == "procfs" {
				n.Facts = src.Note
			}
		}
		n.Arrived, n.Ahead = now, time.UnixMilli(f.TimeMillis+1000).Sub(now)
		if n.Ahead > maxAhead {
			n.TimeMillis = now.Add(-time.Second).Truncate(time.Second).UnixMilli()
		}
	}
}

// add lists a node that reports for the first time.
func (b *Board) add(f *collector.Frame) *Node {
	n := &Node{Frame: collector.Frame{Node: f.Node, Role: f.Role}, Number: int32(len(b.all))}
	b.byName[f.Node] = n
	b.all = append(b.all, n)
	b.join(n, f.Role)
	return n
}

func (b *Board) join(n *Node, r topology.Role) {
	l := &b.layer[layerOf(r)]
	n.place = int32(len(*l))
	*l = append(*l, n)
}

// leave takes a node out of its layer; the last one takes its place.
func (b *Board) leave(n *Node) {
	l := &b.layer[layerOf(n.Role)]
	last := (*l)[len(*l)-1]
	last.place, (*l)[n.place] = n.place, last
	*l = (*l)[:len(*l)-1]
}

func layerOf(r topology.Role) int {
	if int(r) < layers {
		return int(r)
	}
	return int(topology.RoleUnknown)
}

// copyFrame makes dst an independent copy of src and reuses dst's memory. Jobs and targets are rare and copied anew.
func copyFrame(dst, src *collector.Frame) {
	samples, routes, sources := dst.Samples[:0], dst.Routes[:0], dst.Sources[:0]
	*dst = *src
	dst.Samples = append(samples, src.Samples...)
	dst.Routes = append(routes, src.Routes...)
	dst.Sources = append(sources, src.Sources...)
	dst.Jobs = slices.Clone(src.Jobs)
	for i := range dst.Jobs {
		dst.Jobs[i].Samples = slices.Clone(dst.Jobs[i].Samples)
	}
	dst.Targets = slices.Clone(src.Targets)
	for i := range dst.Targets {
		dst.Targets[i].Samples = slices.Clone(dst.Targets[i].Samples)
	}
}

// Frame returns a copy of a node's newest frame; ok is false for a node that never reported.
func (b *Board) Frame(id topology.NodeID) (f collector.Frame, ok bool) {
	b.Nodes([]topology.NodeID{id}, func(_ int, n *Node) {
		copyFrame(&f, &n.Frame)
		ok = true
	})
	return f, ok
}

// Nodes visits those of ids that have reported; i is the place in ids.
func (b *Board) Nodes(ids []topology.NodeID, visit func(i int, n *Node)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for i, id := range ids {
		if n := b.byName[id]; n != nil {
			visit(i, n)
		}
	}
}

// Layer visits the nodes of one role.
func (b *Board) Layer(r topology.Role, visit func(*Node)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, n := range b.layer[layerOf(r)] {
		visit(n)
	}
}

// All visits every node.
func (b *Board) All(visit func(*Node)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, n := range b.all {
		visit(n)
	}
}

// Visit visits every node's newest frame.
func (b *Board) Visit(visit func(*collector.Frame)) { b.All(func(n *Node) { visit(&n.Frame) }) }

// Members counts the nodes that have reported; while it stays, so does the list of nodes.
func (b *Board) Members() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.all)
}

// Routes returns the observed mapping at now, with the age and origin of each route.
func (b *Board) Routes(now time.Time) map[topology.NodeID]Route {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make(map[topology.NodeID]Route, len(b.tracker.list))
	b.tracker.routes(now, func(n topology.NodeID, r Route) {
		if at := b.byName[n]; at == nil || at.Role != topology.Storage && at.Role != topology.Metadata {
			out[n] = r // servers choose routers, too, and are nobody's clients
		}
	})
	return out
}

// Learn completes the configured part of a machine with the nodes that have reported and the ends of routes, sorted
// by name after it.
func (b *Board) Learn(configured topology.Machine, now time.Time) *topology.Machine {
	m := &topology.Machine{Name: configured.Name, Nodes: slices.Clone(configured.Nodes),
		Default: configured.Default.Clone()}
	if m.Default == nil {
		m.Default = topology.Mapping{}
	}
	known := make(map[topology.NodeID]bool, len(m.Nodes))
	for _, n := range m.Nodes {
		known[n.ID] = true
	}
	add := func(id topology.NodeID, role topology.Role) {
		if !known[id] {
			known[id] = true
			m.Nodes = append(m.Nodes, topology.Node{ID: id, Role: role})
		}
	}
	b.All(func(n *Node) { add(n.Node, n.Role) })
	b.mu.RLock()
	b.tracker.routes(now, func(n topology.NodeID, r Route) {
		add(n, topology.Compute)
		if r.Forwarder != "" {
			add(r.Forwarder.Node(), topology.Forwarder)
		}
		for _, s := range r.Shares {
			add(s.Forwarder.Node(), topology.Forwarder)
		}
	})
	b.mu.RUnlock()
	slices.SortFunc(m.Nodes[len(configured.Nodes):],
		func(a, b topology.Node) int { return compareNames(string(a.ID), string(b.ID)) })
	return m
}

// compareNames orders cn2 before cn10: digits by their number, the rest by bytes.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		da, db := len(a)-len(strings.TrimLeft(a, digits)), len(b)-len(strings.TrimLeft(b, digits))
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(len(na)-len(nb), strings.Compare(na, nb)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

const digits = "0123456789"
