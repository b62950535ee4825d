package wire

import "fairway/collector/topology"

// The kinds of order that agents know. An agent refuses any other kind, by name.
const (
	OrderRemap = "remap" // body RemapOrder, answered with RouteAnswer
	OrderRoute = "route" // no body, answered with RouteAnswer: which forwarder is in use
)

// RemapOrder says what must be so when it is answered: the node's mount uses Forwarder. A mount
// that does already answers OK and changes nothing.
type RemapOrder struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	Addr      string               `json:"addr"` // HOST:PORT of its file service
	// Force cuts off a dead or hung forwarder instead of draining it first.
	Force bool `json:"force,omitempty"`
}

// RouteAnswer is the mount's word after the order.
type RouteAnswer struct {
	Forwarder  topology.ForwarderID `json:"forwarder"`
	Generation uint64               `json:"generation"` // remaps since the mount's start
}
