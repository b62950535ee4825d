package wire

import (
	"slices"
	"strings"

	"fairway/collector/topology"
)

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

// The orders of protocol nodes whose addresses float.
const (
	OrderAddresses   = "addresses"    // without a body, answered with AddressesAnswer
	OrderMoveAddress = "move-address" // body MoveAddressOrder, answered with AddressesAnswer as it is then
	OrderSuspend     = "ces-suspend"  // body SuspendOrder, answered with AddressesAnswer as it is then
)

// AddressesAnswer is what the nodes' own cluster says of the addresses, which need not be so.
type AddressesAnswer struct {
	// At is by address the forwarder that has it; "" where none has.
	At map[string]topology.ForwarderID `json:"at"`
	// Policy is how the system spreads addresses by itself; "none": not at all.
	Policy string `json:"policy"`
	// Flags are by forwarder what the cluster says of a node that takes no addresses now, such as "Suspended"; "" of
	// one that does. nil: not known.
	Flags map[topology.ForwarderID]string `json:"flags,omitempty"`
}

// Suspended is the flag of a node that somebody has suspended; it may be one of several, with commas between.
const Suspended = "Suspended"

// FewestLeft is how many other nodes must take addresses where one is suspended: one that fails then has a successor.
const FewestLeft = 2

// IsSuspended says whether a forwarder is suspended.
func (a *AddressesAnswer) IsSuspended(f topology.ForwarderID) bool {
	return slices.ContainsFunc(strings.Split(a.Flags[f], ","), func(flag string) bool {
		return strings.EqualFold(strings.TrimSpace(flag), Suspended)
	})
}

// OthersLeft counts the nodes but one that take addresses.
func (a *AddressesAnswer) OthersLeft(f topology.ForwarderID) (n int) {
	for other, flags := range a.Flags {
		if other != f && flags == "" {
			n++
		}
	}
	return n
}

// SuspendOrder says what must be so when it is answered, of the node that it is given to: it is suspended, for a plan,
// or takes addresses again. Only what was suspended for a plan is ended by an order.
type SuspendOrder struct {
	Node      topology.NodeID      `json:"node"` // an agent refuses another node's
	Forwarder topology.ForwarderID `json:"forwarder"`
	Plan      string               `json:"plan"`
	Suspended bool                 `json:"suspended"`
}

// MoveAddressOrder says what must be so when it is answered: the forwarder has the address.
type MoveAddressOrder struct {
	Address   string               `json:"address"`
	Forwarder topology.ForwarderID `json:"forwarder"`
}

// The orders to the agents of nodes whose forwarders are LNet routers.
const (
	OrderAvoid   = "lnet-avoid"   // body AvoidOrder, answered with AvoidAnswer
	OrderSteer   = "lnet-steer"   // body SteerOrder, without an answer
	OrderLook    = "lnet-look"    // without a body, answered with LookAnswer
	OrderTraffic = "lnet-traffic" // body TrafficOrder, answered with TrafficAnswer
)

// AvoidOrder says which routers the node must not prefer; every other one is used as the site has set it.
type AvoidOrder struct {
	Forwarders []topology.ForwarderID `json:"forwarders"`
}

// AvoidAnswer lists the routers whose routes the node has behind the others.
type AvoidAnswer struct {
	Forwarders []topology.ForwarderID `json:"forwarders"`
}

// SteerOrder says over which router the node sends what goes to some identifiers or nets; without one it chooses by
// its own rules again.
type SteerOrder struct {
	To        []string             `json:"to"`
	Forwarder topology.ForwarderID `json:"forwarder"`
	// Back has the node prefer again what it preferred before its newest order.
	Back bool `json:"back,omitempty"`
}

// LookAnswer is a node's LNet as far as plans need it.
type LookAnswer struct {
	NIDs  []string `json:"nids"`
	Net   string   `json:"net"`   // the one behind the routers
	Rules bool     `json:"rules"` // whether it can prefer a router for single nodes
}

// TrafficOrder asks a router for the messages of some of its peers.
type TrafficOrder struct {
	NIDs []string `json:"nids"`
}

// TrafficAnswer counts them by peer since the router's start; the counts are 32 bits wide.
type TrafficAnswer struct {
	Peers map[string]PeerTraffic `json:"peers"`
}

// PeerTraffic is what came from one peer.
type PeerTraffic struct {
	Data     uint64 `json:"data"` // replies with written data, acknowledgements of read data
	Requests uint64 `json:"requests"`
}
