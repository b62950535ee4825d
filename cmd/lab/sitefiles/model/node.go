package model

import "time"

// Role is what a node of the site is.
type Role uint8

// The roles.
const (
	Client Role = iota
	Router
	OSS
	MDS
)

func (r Role) String() string { return [...]string{"client", "router", "oss", "mds"}[r] }

// MiB is LNet's largest message, bytes.
const MiB = 1 << 20

// Kind is the type of a message.
type Kind uint8

// The kinds of message, in the order of LNet's own lists.
const (
	Put Kind = iota
	Get
	Reply
	Ack
	kinds
)

// Counters are what LNet counts on a node since its start. Counts are 32 bits wide, as the kernel's.
type Counters struct {
	Alloc, AllocMax                 int
	Errors, Resent                  uint32
	Sent, Received, Routed, Dropped uint32
	SentBytes, ReceivedBytes        uint64
	RoutedBytes, DroppedBytes       uint64
}

// Counts are messages by kind.
type Counts [kinds]uint32

// Sum is the number of messages of all kinds.
func (c Counts) Sum() (n uint32) {
	for _, v := range c {
		n += v
	}
	return n
}

// Credits are credits that were given, are left and were left at the fewest. Below 0 that many wait.
type Credits struct{ Max, Now, Min int }

func (c *Credits) take() {
	c.Now--
	c.Min = min(c.Min, c.Now)
}

// NI is a node's interface to one net.
type NI struct {
	NID, Net string
	Link     string    // the interface of the operating system
	PeerTx   int       // credits to send to one peer
	PeerRtr  int       // buffers of a router that one peer may hold
	Tx       []Credits // a row a partition of processors
	Sent     Counts
	Received Counts
	// InBytes and OutBytes crossed the link.
	InBytes, OutBytes uint64
	RateBits          float64 // of the link as negotiated, bits a second
	in, out           Line
	rate              float64 // of each direction when healthy, bytes a second
	waiting           [][]*message
}

// Peer is another interface that a node exchanges messages with directly.
type Peer struct {
	NID      string
	Tx, Rtr  Credits
	Queued   int // bytes that wait and that are in flight
	Sent     Counts
	Received Counts
	ni       *NI
	node     *Node
	cpt      int
	waiting  []*message // for a credit to send
	holding  []*message // for a buffer of the router
}

// Pool is a router's buffers of one size, of one partition of processors.
type Pool struct {
	Pages, Count int
	Credits      int // that are free; below 0 that many messages wait
	Min          int
	whole        int // before they were cut
	waiting      []*message
}

// CPU is what a node's threads of the network driver did.
type CPU struct {
	Cores  int
	Ran    time.Duration // on a processor
	Waited time.Duration // for one
	Slices uint64
	lane   lanes
	Stalls time.Duration // time in which a task waited for a processor
}

// Node is one machine of the site.
type Node struct {
	Name    string
	Index   int
	Role    Role
	Since   time.Duration // of its start; below 0: before the site's
	NIs     []*NI
	Peers   []*Peer
	LNet    Counters
	Buffers [3][]*Pool // by size, of a router
	Table   *Table     // of routes and rules
	CPU     CPU
	Front   *Front  // of a client: what its programs do
	Server  *Server // of an OSS or MDS
	Truth   Truth
	site    *Site
	Health  Health
}

// Truth is what nobody on the site can read: for judging what others make of its files.
type Truth struct {
	Inside time.Duration     // sum over the messages that have left, of their time inside the router
	Left   uint64            // messages that have left
	From   map[string]uint64 // bytes routed from and to a client, by its NID
}

// NIOf is the node's interface to a net, nil where it has no interface to it.
func (n *Node) NIOf(net string) *NI {
	for _, ni := range n.NIs {
		if ni.Net == net {
			return ni
		}
	}
	return nil
}

// NID is the node's first identifier.
func (n *Node) NID() string { return n.NIs[0].NID }

// peerOf finds or makes the peer that a neighbour's interface is. Two neighbours have one net in common.
func (n *Node) peerOf(other *Node, net string) *Peer {
	if near := n.site.near[n.Index]; other.Index < len(near) && near[other.Index] != nil {
		return near[other.Index]
	}
	ni, far := n.NIOf(net), other.NIOf(net)
	p := &Peer{NID: far.NID, ni: ni, node: other, cpt: other.Index % len(ni.Tx)}
	p.Tx = Credits{ni.PeerTx, ni.PeerTx, ni.PeerTx}
	rtr := 0
	if n.Role == Router {
		rtr = ni.PeerRtr
	}
	p.Rtr = Credits{rtr, rtr, rtr}
	n.Peers = append(n.Peers, p)
	near := n.site.near[n.Index]
	for len(near) <= other.Index {
		near = append(near, nil)
	}
	near[other.Index], n.site.near[n.Index] = p, near
	return p
}

// Node is the neighbour itself.
func (p *Peer) Node() *Node { return p.node }

// Heat has a node's processors throttled more and more as they warm up. One that is throttled does nothing.
type Heat struct {
	share float64       // of the time when it is warm; 0: it is cool
	since time.Duration // it warms up
	was   time.Duration // for how long it was throttled before
}

// warmUp is how long it takes until the processors are as hot as they become.
const warmUp = 20 * time.Second

// Begin has the processors warm up from now on until a part of their speed is left.
func (h *Heat) Begin(now time.Duration, left float64) {
	h.End(now)
	h.share, h.since = 1-left, now
}

// End cools them at once.
func (h *Heat) End(now time.Duration) { *h = Heat{was: h.Throttled(now)} }

// Speed is what is left of the processors' speed.
func (h *Heat) Speed(now time.Duration) float64 {
	return 1 - h.share*min(1, float64(now-h.since)/float64(warmUp))
}

// Throttled is for how long they were throttled until now.
func (h *Heat) Throttled(now time.Duration) time.Duration {
	warming := min(now-h.since, warmUp)
	rising := float64(warming) * float64(warming) / float64(warmUp) / 2
	return h.was + time.Duration(h.share*(rising+float64(now-h.since-warming)))
}

// Throttlings are how often they began to be throttled: for some ms each time.
func (h *Heat) Throttlings(now time.Duration) uint64 {
	const each = 20 * time.Millisecond
	return uint64((h.Throttled(now) + each - 1) / each)
}
