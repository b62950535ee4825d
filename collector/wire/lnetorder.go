package wire

import "fairway/collector/topology"

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
