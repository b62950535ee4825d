package wire

import "fairway/collector/topology"

// The orders of protocol nodes whose addresses float.
const (
	OrderAddresses   = "addresses"    // without a body, answered with AddressesAnswer
	OrderMoveAddress = "move-address" // body MoveAddressOrder, answered with AddressesAnswer as it is then
)

// AddressesAnswer is what the nodes' own cluster says of the addresses, which need not be so.
type AddressesAnswer struct {
	// At is by address the forwarder that has it; "" where none has.
	At map[string]topology.ForwarderID `json:"at"`
	// Policy is how the system spreads addresses by itself; "none": not at all.
	Policy string `json:"policy"`
}

// MoveAddressOrder says what must be so when it is answered: the forwarder has the address.
type MoveAddressOrder struct {
	Address   string               `json:"address"`
	Forwarder topology.ForwarderID `json:"forwarder"`
}
