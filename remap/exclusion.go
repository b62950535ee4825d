package remap

import (
	"time"

	"fairway/collector/topology"
)

// Exclusion keeps a forwarder out of allocation until its lease ends.
type Exclusion struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	Reason    string               `json:"reason"`
	By        string               `json:"by"`
	Since     time.Time            `json:"since"`
	Until     time.Time            `json:"until"`
	// Drain is what became of its traffic; nil where nodes are not made to avoid it. It is not in the journal.
	Drain *Drain `json:"drain,omitempty"`
}

// Feed is what the allocator reads. A reader that has no newer one at ValidUntil goes back to the
// default mapping: a list that nobody renews must not exclude forwarders for ever.
type Feed struct {
	// Generation grows by one with every change of the list.
	Generation uint64      `json:"generation"`
	ValidUntil time.Time   `json:"valid_until"`
	Exclusions []Exclusion `json:"exclusions"` // by name
}

// MaxExclusion bounds a lease: whoever wants more renews it.
const MaxExclusion = 30 * 24 * time.Hour
