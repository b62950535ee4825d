package remap

import (
	"fmt"
	"strings"
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

// DrainState says how far the traffic of an excluded router has left it.
type DrainState string

// The states of a drain.
const (
	Draining     DrainState = "draining"
	Drained      DrainState = "drained" // less than 1 % of the group's bytes crossed it in 10 s
	DrainQuiet   DrainState = "quiet"   // every node avoids it, and too little crosses all routers to be sure
	DrainPartial DrainState = "partial" // nodes that are missing still send over it
	DrainFailed  DrainState = "failed"  // every node reports that it avoids it, and its traffic has not gone
)

// Drain is what became of the order to avoid an excluded router. That every node has done it is not enough: it is
// drained when its traffic has gone.
type Drain struct {
	State DrainState `json:"state"`
	Since time.Time  `json:"since"`
	Nodes int        `json:"nodes"` // that have routes, as far as is known
	Done  int        `json:"done"`
	// Missing are the nodes that do not avoid it, and Why the first one's reason.
	Missing []topology.NodeID `json:"missing,omitempty"`
	Why     string            `json:"why,omitempty"`
	// Share is its part of what all routers passed in the last 10 s; nil where too little passed or it is not known.
	Share *float64 `json:"share,omitempty"`
}

// String is a drain in a sentence.
func (d *Drain) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d nodes avoid it", d.State, d.Done, d.Nodes)
	if d.Share != nil {
		fmt.Fprintf(&b, ", %.1f %% of the routers' bytes cross it", 100**d.Share)
	}
	if len(d.Missing) > 0 {
		const most = 3
		names := make([]string, 0, most)
		for _, n := range d.Missing[:min(most, len(d.Missing))] {
			names = append(names, string(n))
		}
		fmt.Fprintf(&b, "; not %s", strings.Join(names, ", "))
		if more := len(d.Missing) - len(names); more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		if d.Why != "" {
			fmt.Fprintf(&b, " (%s)", d.Why)
		}
	}
	return b.String()
}
