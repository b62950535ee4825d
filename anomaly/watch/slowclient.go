package watch

import (
	"cmp"
	"math"
	"slices"

	"fairway/collector"
	"fairway/collector/topology"
)

// slowClients finds compute nodes that are slow by themselves: whose operations take far longer than those of the other
// clients of the same forwarder, at requests of about the same size, and go on to. Their times are left out of what
// judges the forwarder, from which they wait for nothing.
type slowClients struct {
	of    map[topology.NodeID]*[3]habitOfClient
	heard map[topology.ForwarderID][]clientSecond
}

// habitOfClient is by how much longer a class takes a node than its neighbours, log, smoothed over its seconds.
type habitOfClient struct {
	longer  float64
	seconds int
}

// clientSecond is what a class of operations took one client of a forwarder.
type clientSecond struct {
	node  topology.NodeID
	class int
	size  int     // of an operation, in steps of two times
	log   float64 // of its seconds
}

const (
	// aloneFrom is by how much longer than its neighbours, log: 2.5 times.
	aloneFrom = 0.9
	// clientMemory seconds of work must show it, and forget it.
	clientMemory = 10
	// fewClientOps a second say nothing.
	fewClientOps = 2
)

func (s *slowClients) begin() {
	if s.of == nil {
		s.of, s.heard = map[topology.NodeID]*[3]habitOfClient{}, map[topology.ForwarderID][]clientSecond{}
	}
	for f := range s.heard {
		s.heard[f] = s.heard[f][:0]
	}
}

// take notes a node's second and reports the classes that are slow on it alone, by the seconds before.
func (s *slowClients) take(fwd topology.ForwarderID, f *collector.Frame) (alone [3]bool) {
	known := s.of[f.Node]
	for i, m := range classOf {
		if ops, t, ok := spent(f.Samples, m.ops, m.client); ok && ops >= fewClientOps && t > 0 {
			size := int(math.Round(math.Log2(max(1, valueOr(f, m.bytes, 0)/ops))))
			s.heard[fwd] = append(s.heard[fwd], clientSecond{f.Node, i, size, math.Log(t / ops)})
		}
		if known != nil {
			alone[i] = known[i].seconds >= clientMemory && known[i].longer > aloneFrom
		}
	}
	return alone
}

// compare compares the clients of each forwarder among themselves. A node whose neighbours do nothing alike keeps what
// is known of it.
func (s *slowClients) compare() {
	for _, all := range s.heard {
		slices.SortFunc(all, func(a, b clientSecond) int {
			return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.size, b.size), cmp.Compare(a.log, b.log))
		})
		for from, to := 0, 0; from < len(all); from = to {
			for to = from; to < len(all) && all[to].class == all[from].class && all[to].size == all[from].size; to++ {
			}
			s.compareAlike(all[from:to])
		}
	}
}

// compareAlike compares each of some clients with the median of the others, of two with the faster; they are sorted.
func (s *slowClients) compareAlike(all []clientSecond) {
	for i := range all {
		if len(all) < 2 {
			return
		}
		c, m := &all[i], (len(all)-2)/2
		if m >= i {
			m++
		}
		if s.of[c.node] == nil {
			s.of[c.node] = &[3]habitOfClient{}
		}
		h := &s.of[c.node][c.class]
		h.seconds = min(h.seconds+1, clientMemory)
		h.longer += (c.log - all[m].log - h.longer) / float64(h.seconds)
	}
}
