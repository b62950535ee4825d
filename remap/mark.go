package remap

import (
	"time"

	"fairway/collector/topology"
)

// Mark is an instant at which something of the journal happened.
type Mark struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // finding, note, plan, exclusion, job or connection
	ID   string    `json:"id"`   // of the finding, also of a note; of the plan or job; the forwarder of an exclusion
	Node string    `json:"node,omitempty"`
	Text string    `json:"text"`
	// Forwarders are those that a plan touches, or that served a job.
	Forwarders []topology.ForwarderID `json:"forwarders,omitempty"`
}
