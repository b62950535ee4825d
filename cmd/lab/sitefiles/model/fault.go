package model

import (
	"fmt"
	"slices"
	"time"
)

// The kinds of fault. A fault's value is what is left: of a speed, of a processor, of buffers; of loss it is the share
// of messages that are lost on the link and sent again.
const (
	FaultLink     = "link"    // both directions of a node's links
	FaultLinkIn   = "link_in" // one direction, as a card in a slot too narrow
	FaultLanes    = "lanes"   // both directions, and the links say so: ports that run on some of their four lanes
	FaultLoss     = "loss"
	FaultCPU      = "cpu"
	FaultThrottle = "throttle" // processors that are throttled as they warm up, more and more for 20 s
	FaultBuffers  = "buffers"  // a router's large buffers, in all
	FaultHung     = "hung"     // a router that passes nothing, a server whose threads stand
	FaultDisk     = "disk"     // the first target of a server, or the one that is named
)

// FaultKinds lists them.
func FaultKinds() []string {
	return []string{FaultLink, FaultLinkIn, FaultLanes, FaultLoss, FaultCPU, FaultThrottle, FaultBuffers, FaultHung,
		FaultDisk}
}

// Fault is something that ails one node.
type Fault struct {
	Kind  string  `json:"kind"`
	Node  string  `json:"node"`
	Value float64 `json:"value"`
	// Target is the OST or MDT of a disk fault; empty: the node's first.
	Target string `json:"target,omitempty"`
}

// broken is what ails a node.
type broken struct {
	linkIn, linkOut float64
	lanes           float64
	loss            float64
	hung            bool
	since           time.Duration
	held            []func()
	buffers         []int // of each partition, before they were cut
	heat            Heat
	damage          Damage
}

// Damage is what a node counts of packets that its links lose.
type Damage struct {
	Resent  uint64 // TCP's segments that it sent again
	Packets uint64 // that came over InfiniBand with errors
}

// Damage is what the node has counted.
func (n *Node) Damage() Damage { return n.broken.damage }

// Heat is that of the node's processors.
func (n *Node) Heat() *Heat { return &n.broken.heat }

// SegmentBytes is the payload of one of TCP's full segments.
const SegmentBytes = 1448

func healthy() *broken { return &broken{linkIn: 1, linkOut: 1, lanes: 1} }

// Lanes is the share of its links' lanes that a node has.
func (n *Node) Lanes() float64 { return n.broken.lanes }

func (b *broken) in(*NI) float64  { return b.linkIn }
func (b *broken) out(*NI) float64 { return b.linkOut }

// hold keeps what a hung node would do for when it wakes.
func (b *broken) hold(do func()) bool {
	if b.hung {
		b.held = append(b.held, do)
	}
	return b.hung
}

// Retransmit is what a lost message costs.
const Retransmit = 200 * time.Millisecond

// delay is what a message that is lost on a link costs: it is sent again, and the one that sends over TCP, or receives
// over InfiniBand, counts it.
func (b *broken) delay(s *Site, net string, size int, sends bool) time.Duration {
	if b.loss <= 0 || s.rng.Float64() >= b.loss {
		return 0
	}
	switch {
	case net == ClientNet && sends:
		b.damage.Resent += uint64(size/SegmentBytes + 1)
	case net == ServerNet && !sends:
		b.damage.Packets++
	}
	return Retransmit
}

// Break makes a fault begin now.
func (s *Site) Break(f Fault) error {
	n := s.Node(f.Node)
	switch {
	case n == nil:
		return fmt.Errorf("node %q is not of this site", f.Node)
	case f.Kind != FaultHung && (f.Value <= 0 || f.Kind != FaultBuffers && f.Value > 1):
		return fmt.Errorf("%s %v: want a share, above 0 and at most 1", f.Kind, f.Value)
	}
	b := n.broken
	switch f.Kind {
	case FaultLink:
		b.linkIn, b.linkOut = f.Value, f.Value
	case FaultLinkIn:
		b.linkIn = f.Value
	case FaultLanes:
		b.linkIn, b.linkOut, b.lanes = f.Value, f.Value, f.Value
	case FaultLoss:
		b.loss = f.Value
	case FaultCPU:
		n.CPU.share = f.Value
	case FaultThrottle:
		b.heat.Begin(s.now, f.Value)
	case FaultBuffers:
		return n.cutBuffers(int(f.Value))
	case FaultHung:
		b.hung, b.since = true, s.now
		if n.Server != nil {
			b.hung, n.Server.Service.Hung = false, true
		}
	case FaultDisk:
		return n.slowDisk(f)
	default:
		return fmt.Errorf("fault %q: want one of %v", f.Kind, FaultKinds())
	}
	return nil
}

func (n *Node) slowDisk(f Fault) error {
	if n.Server == nil {
		return fmt.Errorf("node %q has no target", n.Name)
	}
	i := 0
	if f.Target != "" {
		i = slices.IndexFunc(n.Server.Targets, func(t *Target) bool { return t.Name == f.Target })
	}
	if i < 0 {
		return fmt.Errorf("node %q has no target %q", n.Name, f.Target)
	}
	n.Server.Targets[i].speed = f.Value
	return nil
}

func (n *Node) cutBuffers(total int) error {
	if n.Role != Router {
		return fmt.Errorf("node %q is not a router: it has no buffers", n.Name)
	}
	pools := n.Buffers[2]
	first := n.broken.buffers == nil
	for _, p := range pools {
		if first {
			n.broken.buffers = append(n.broken.buffers, p.Count)
		}
		n.resize(p, max(1, total/len(pools)))
	}
	return nil
}

func (n *Node) resize(p *Pool, count int) {
	p.Credits += count - p.Count
	p.Count = count
	p.Min = min(p.Min, p.Credits)
	fabric{n.site}.wake(p)
}

// wake gives free buffers to messages that wait for one.
func (s fabric) wake(p *Pool) {
	for len(p.waiting) > 0 && p.Credits+len(p.waiting) > 0 {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		s.receive(next)
	}
}

// Mend ends every fault of a node.
func (s *Site) Mend(name string) error {
	n := s.Node(name)
	if n == nil {
		return fmt.Errorf("node %q is not of this site", name)
	}
	was := n.broken
	n.broken = healthy()
	n.broken.damage, n.broken.heat = was.damage, was.heat
	n.broken.heat.End(s.now)
	n.CPU.share = 1
	for i, count := range was.buffers {
		n.resize(n.Buffers[2][i], count)
	}
	if n.Server != nil {
		n.Server.Service.Hung = false
		for _, t := range n.Server.Targets {
			t.speed = 1
		}
		calls{s}.serve(n)
	}
	for _, do := range was.held {
		s.After(0, do)
	}
	return nil
}

// pinger marks the routes over a router that has not answered for long as down, at every node, and up again.
func (s *Site) pinger() {
	const every, dead = 10 * time.Second, 110 * time.Second
	s.After(every, s.pinger)
	for _, n := range s.Nodes {
		for _, r := range n.Table.Routes {
			b := r.router.broken
			r.Down = b.hung && s.now-b.since > dead
		}
	}
}

// Reboot starts a node's counters anew.
func (s *Site) Reboot(name string) error {
	n := s.Node(name)
	if n == nil {
		return fmt.Errorf("node %q is not of this site", name)
	}
	n.Since = s.Now()
	n.LNet = Counters{Alloc: n.LNet.Alloc, AllocMax: n.LNet.Alloc}
	for _, p := range n.Peers {
		p.Sent, p.Received = Counts{}, Counts{}
		p.Tx.Min, p.Rtr.Min = p.Tx.Now, p.Rtr.Now
	}
	for _, ni := range n.NIs {
		ni.Sent, ni.Received, ni.InBytes, ni.OutBytes = Counts{}, Counts{}, 0, 0
	}
	return nil
}
