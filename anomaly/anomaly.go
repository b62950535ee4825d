// Package anomaly judges: what is wrong with a node, since when, how sure, on what evidence, and
// whether the slowness has another explanation (a neighbour, the back end).
package anomaly

import (
	"time"

	"fairway/collector/topology"
)

// Kind is what a finding says of its subject.
type Kind string

// The kinds of findings. FailSlow accuses the node itself; the others explain a slowness away.
const (
	FailSlow        Kind = "fail_slow"
	N1Pin           Kind = "n1_pin"
	MetaStorm       Kind = "meta_storm"
	HighBandwidth   Kind = "highbw"
	BrownoutAll     Kind = "brownout_all"
	BrownoutPool    Kind = "brownout_pool"
	ForwarderSilent Kind = "silent"
)

// State is where a finding is in its life.
type State string

// The states of a finding.
const (
	Suspect   State = "suspect"
	Confirmed State = "confirmed"
	Excluded  State = "excluded"
	Probation State = "probation"
	Returned  State = "returned"
	Dismissed State = "dismissed"
)

// Finding is what a detector says of a node.
type Finding struct {
	ID         string          `json:"id"`
	Node       topology.NodeID `json:"node"`
	Kind       Kind            `json:"kind"`
	State      State           `json:"state"`
	Since      time.Time       `json:"since"`
	Changed    time.Time       `json:"changed"`
	Confidence float64         `json:"confidence"` // 0..1
	// Sentence is the finding in words an operator can repeat, with its numbers.
	Sentence string             `json:"sentence"`
	Evidence map[string]float64 `json:"evidence,omitempty"`
	Jobs     []topology.JobID   `json:"jobs,omitempty"`
}
