package wire

import "fairway/collector/topology"

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
