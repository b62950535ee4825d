package remap

import (
	"fmt"
	"strings"
	"time"

	"fairway/collector/topology"
)

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
