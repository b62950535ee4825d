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

// Check says what is wrong with a fault's value.
func (f *Fault) Check() error {
	if f.Kind != FaultHung && (f.Value <= 0 || f.Kind != FaultBuffers && f.Value > 1) {
		return fmt.Errorf("%s %v: want a share, above 0 and at most 1", f.Kind, f.Value)
	}
	return nil
}

// Health is what is left of a node: shares of its links both ways, of what they say they have, and of its processor.
type Health struct {
	LinkIn, LinkOut, Lanes, CPU float64
	Loss                        float64 // of the messages on its links, which are sent again
	Hung                        bool
	Heat                        Heat // of its processor
	Damage                      Damage
	since                       time.Duration // Hung
	held                        []func()
}

// Healthy is a node that nothing ails.
func Healthy() Health { return Health{LinkIn: 1, LinkOut: 1, Lanes: 1, CPU: 1} }

// Break makes a fault begin that every node may have.
func (h *Health) Break(f Fault, now time.Duration) error {
	switch f.Kind {
	case FaultLink:
		h.LinkIn, h.LinkOut = f.Value, f.Value
	case FaultLinkIn:
		h.LinkIn = f.Value
	case FaultLanes:
		h.LinkIn, h.LinkOut, h.Lanes = f.Value, f.Value, f.Value
	case FaultLoss:
		h.Loss = f.Value
	case FaultCPU:
		h.CPU = f.Value
	case FaultThrottle:
		h.Heat.Begin(now, f.Value)
	case FaultHung:
		h.Hung, h.since = true, now
	default:
		return fmt.Errorf("fault %q of %s: want one of %v that such a node can have", f.Kind, f.Node, FaultKinds())
	}
	return nil
}

// Mend ends all of it, and returns what a hung node would have done meanwhile. What was counted stays.
func (h *Health) Mend(now time.Duration) (held []func()) {
	was := *h
	*h = Healthy()
	h.Damage, h.Heat = was.Damage, was.Heat
	h.Heat.End(now)
	return was.held
}

// Hold keeps what a hung node would do for when it wakes.
func (h *Health) Hold(do func()) bool {
	if h.Hung {
		h.held = append(h.held, do)
	}
	return h.Hung
}

// Damage is what a node counts of packets that its links lose.
type Damage struct {
	Resent  uint64 // TCP's segments that it sent again
	Packets uint64 // that came over InfiniBand with errors
}

// SegmentBytes is the payload of one of TCP's full segments.
const SegmentBytes = 1448

// Retransmit is what a lost message costs.
const Retransmit = 200 * time.Millisecond

// delay is what a message that is lost on a link costs: it is sent again, and the one that sends over TCP, or receives
// over InfiniBand, counts it.
func (h *Health) delay(s *Site, net string, size int, sends bool) time.Duration {
	if h.Loss <= 0 || s.rng.Float64() >= h.Loss {
		return 0
	}
	switch {
	case net == ClientNet && sends:
		h.Damage.Resent += uint64(size/SegmentBytes + 1)
	case net == ServerNet && !sends:
		h.Damage.Packets++
	}
	return Retransmit
}

// Break makes a fault begin now.
func (s *Site) Break(f Fault) error {
	n := s.Node(f.Node)
	if n == nil {
		return fmt.Errorf("node %q is not of this site", f.Node)
	}
	if err := f.Check(); err != nil {
		return err
	}
	switch {
	case f.Kind == FaultBuffers:
		return n.cutBuffers(int(f.Value))
	case f.Kind == FaultDisk:
		return n.slowDisk(f)
	case f.Kind == FaultHung && n.Server != nil:
		n.Server.Service.Hung = true
		return nil
	}
	return n.Health.Break(f, s.now)
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
	for _, p := range pools {
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
	held := n.Health.Mend(s.now)
	for _, p := range n.Buffers[2] {
		n.resize(p, p.whole)
	}
	if n.Server != nil {
		n.Server.Service.Hung = false
		for _, t := range n.Server.Targets {
			t.speed = 1
		}
		calls{s}.serve(n)
	}
	for _, do := range held {
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
			h := &r.router.Health
			r.Down = h.Hung && s.now-h.since > dead
		}
	}
}
