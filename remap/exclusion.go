package remap

import (
	"fmt"
	"time"

	"fairway/collector/topology"
)

// Exclusion keeps a forwarder out of allocation until its lease ends. Before Since it is planned.
type Exclusion struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	Reason    string               `json:"reason"`
	By        string               `json:"by"`
	Since     time.Time            `json:"since"`
	Until     time.Time            `json:"until"`
	// Maintenance says that somebody works on the forwarder: nothing is found of it meanwhile.
	Maintenance bool `json:"maintenance,omitempty"`
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
	// Planned are the maintenance windows to come: those forwarders are still in allocation.
	Planned []Exclusion `json:"planned,omitempty"` // by name
}

// Words is the reason with who works on the forwarder until when.
func (e *Exclusion) Words() string {
	if !e.Maintenance {
		return e.Reason
	}
	return fmt.Sprintf("maintenance by %s until %s: %s", e.By, e.Until.UTC().Format("2006-01-02 15:04 UTC"), e.Reason)
}

// MaxAhead bounds how early maintenance is planned.
const MaxAhead = 90 * 24 * time.Hour

// MaxExclusion bounds a lease: whoever wants more renews it.
const MaxExclusion = 30 * 24 * time.Hour
