package wire

import "fairway/collector/topology"

// MaxOrders is how many orders a daemon leaves to an agent at once; further ones wait at the daemon.
const MaxOrders = 8

// The kinds of order that agents know. An agent refuses any other kind, by name.
const (
	OrderRemap = "remap" // body RemapOrder, answered with RouteAnswer
	OrderRoute = "route" // body RouteOrder, answered with RouteAnswer
	OrderTry   = "try"   // body RemapOrder, answered with TryAnswer
	// OrderShare gives the fairway-queue of a forwarding node a table: its body is the table
	// (remap/queue.Table), and there is nothing to answer.
	OrderShare = "share"
	// OrderReport asks the fairway-queue what it did (remap/queue.Report), OrderGlobal gives it its part of an
	// all-gather (remap/queue.Global), which needs no answer.
	OrderReport = "report"
	OrderGlobal = "global"
)

// Passing says that an order of a kind is about a moment: who needs it again asks again under another ID, and
// nobody keeps its answer.
func Passing(kind string) bool { return kind == OrderReport || kind == OrderGlobal }

// Asks says whether an order of a kind only asks: it changes nothing, so that any daemon may give it.
func Asks(kind string) bool {
	return kind == OrderRoute || kind == OrderTry || kind == OrderReport || kind == OrderLook || kind == OrderTraffic ||
		kind == OrderAddresses
}

// RemapOrder says what must be so when it is answered: the node's mount uses Forwarder. A mount
// that does already answers OK and changes nothing.
type RemapOrder struct {
	Node      topology.NodeID      `json:"node"` // one agent may speak for many nodes; else it refuses another node's
	Forwarder topology.ForwarderID `json:"forwarder"`
	Addr      string               `json:"addr"` // HOST:PORT of its file service
	// Force cuts off a dead or hung forwarder instead of draining it first.
	Force bool `json:"force,omitempty"`
	// Spread asks for something else: that the node spreads its traffic over all of these again, as it did before it
	// was moved. Then Forwarder and Addr are empty. A node that has one way at a time refuses it.
	Spread []topology.ForwarderID `json:"spread,omitempty"`
}

// RouteOrder asks which forwarder a node's mount uses.
type RouteOrder struct {
	Node topology.NodeID `json:"node"`
}

// RouteAnswer is the mount's word after the order.
type RouteAnswer struct {
	Forwarder  topology.ForwarderID `json:"forwarder"`
	Generation uint64               `json:"generation"` // remaps since the mount's start
	// Spread are the forwarders of a node that uses several alike, by name; then Forwarder is empty.
	Spread []topology.ForwarderID `json:"spread,omitempty"`
	// Way is how the node is moved; empty: an agent that does not say.
	Way string `json:"way,omitempty"`
	// Left says which programs go on to use what was replaced; empty: none.
	Left string `json:"left,omitempty"`
}

// TryAnswer is what a node says of a move that it has tried as far as nothing changes.
type TryAnswer struct {
	// Says is what the move would do to programs beyond what its way does to all; empty: nothing.
	Says string `json:"says,omitempty"`
}

// The ways in which agents move nodes.
const (
	WayMount   = "mount9p"
	WayProxy   = "tcpproxy"
	WayLNet    = "lnet"
	WayRemount = "remount"
)
