package window

import (
	"slices"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Board is the newest picture of the machine: every node's newest frame and the observed mapping.
// All methods may be called concurrently; what they return belongs to the caller.
type Board struct {
	mu      sync.RWMutex // guards everything that follows
	tracker *Tracker
	frames  map[topology.NodeID]*newest
	// members counts the nodes that were seen for the first time, so that a reader knows when the
	// list of nodes is another one.
	members uint64
}

// newest is a node's newest frame, when it came, and how far its second's end was ahead of that.
type newest struct {
	collector.Frame
	arrived time.Time
	ahead   time.Duration
}

// maxAhead is how far a node's clock may be ahead before its frames are shown under the second in which
// they came: a wrong clock must not make a node look alive that is gone, nor, once set back, keep it silent.
const maxAhead = 5 * time.Second

// NewBoard returns an empty board; staleAfter is as for New.
func NewBoard(staleAfter time.Duration) *Board {
	return &Board{tracker: New(staleAfter), frames: map[topology.NodeID]*newest{}}
}

// Take puts frames that arrived at now on the board. The frames are copied. A frame older than the
// node's newest (a replayed spool) changes nothing there.
func (b *Board) Take(frames []collector.Frame, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		b.tracker.Observe(f, now)
		have := b.frames[f.Node]
		if have == nil {
			have = &newest{}
			b.frames[f.Node] = have
			b.members++
		}
		if f.TimeMillis >= have.TimeMillis || have.TimeMillis > now.Add(maxAhead).UnixMilli() {
			copyFrame(&have.Frame, f)
			have.arrived, have.ahead = now, time.UnixMilli(f.TimeMillis+1000).Sub(now)
			if have.ahead > maxAhead {
				have.TimeMillis = now.Add(-time.Second).Truncate(time.Second).UnixMilli()
			}
		}
	}
}

// copyFrame makes dst an independent copy of src and reuses dst's memory. Jobs and targets are rare and copied
// anew.
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

// Frame returns a node's newest frame; ok is false for a node that was never heard of.
func (b *Board) Frame(id topology.NodeID) (f collector.Frame, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	have := b.frames[id]
	if have == nil {
		return collector.Frame{}, false
	}
	copyFrame(&f, &have.Frame)
	return f, true
}

// Visit shows every node's newest frame, in no order. The frame is only valid during the call, and
// visit must not call the board.
func (b *Board) Visit(visit func(*collector.Frame)) {
	b.VisitArrivals(func(f *collector.Frame, _ time.Time, _ time.Duration) { visit(f) })
}

// VisitArrivals is Visit with the time at which the frame came, and how far the end of its second, as its
// node says it, was ahead of that.
func (b *Board) VisitArrivals(visit func(f *collector.Frame, arrived time.Time, ahead time.Duration)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, n := range b.frames {
		visit(&n.Frame, n.arrived, n.ahead)
	}
}

// Members counts the nodes that have reported; while it stays, so does the list of nodes.
func (b *Board) Members() uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.members
}

// Routes returns the observed mapping at now, with the age and origin of each route.
func (b *Board) Routes(now time.Time) map[topology.NodeID]Route {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.tracker.Routes(now)
}

// Learn completes the configured part of a machine with the nodes and clients that have reported
// or were reported, sorted by name behind it.
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
	b.mu.RLock()
	defer b.mu.RUnlock()
	for id, f := range b.frames {
		add(id, f.Role)
	}
	for id, r := range b.tracker.Routes(now) {
		add(id, topology.Compute)
		add(r.Forwarder.Node(), topology.Forwarder)
	}
	slices.SortFunc(m.Nodes[len(configured.Nodes):],
		func(a, b topology.Node) int { return compareNames(string(a.ID), string(b.ID)) })
	return m
}

// compareNames orders cn2 before cn10: digits by their number, the rest by bytes.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			na, nb := trimZeros(a[:da]), trimZeros(b[:db])
			if len(na) != len(nb) {
				return len(na) - len(nb)
			}
			if na != nb {
				if na < nb {
					return -1
				}
				return 1
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

func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}
