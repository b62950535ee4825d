// Package remap decides and acts: situations go in, plans come out, and one desk proposes,
// approves, applies, verifies, rolls back and records every one of them.
package remap

import (
	"context"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap/place"
)

// Situation is one immutable snapshot of the machine at an instant. Deciders and operators look at
// the same one.
type Situation struct {
	At      time.Time         `json:"at"`
	Machine *topology.Machine `json:"-"`
	Index   *topology.Index   `json:"-"` // of Machine
	place.Places
	Load     map[topology.ForwarderID]Load           `json:"load"`
	Findings []anomaly.Finding                       `json:"findings,omitempty"`
	Excluded map[topology.ForwarderID]string         `json:"excluded,omitempty"` // reason
	Owner    map[topology.ForwarderID]topology.JobID `json:"owner,omitempty"`    // dedicated to
	Jobs     []Job                                   `json:"jobs,omitempty"`
}

// Load is what a forwarder carries at a situation's instant. A nil pointer is a value that is not known, and null
// in JSON.
type Load struct {
	LastSeen         time.Time `json:"last_seen"`
	ReadBytesPerSec  *float64  `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64  `json:"write_bytes_per_sec"`
	// RoutedBytesPerSec is what a router forwards, both directions together; only routers report it.
	RoutedBytesPerSec *float64 `json:"routed_bytes_per_sec,omitempty"`
	// DataOpsPerSec are reads and writes, which stand in for bytes where those are not reported.
	DataOpsPerSec *float64 `json:"data_ops_per_sec,omitempty"`
	MetaOpsPerSec *float64 `json:"meta_ops_per_sec"`
	Occupancy     *float64 `json:"occupancy"` // 0..1
	Connections   int      `json:"connections"`
	// BackEnd is the one server that a gateway is a client of; "" where it has several, or none of its own.
	BackEnd         topology.NodeID `json:"back_end,omitempty"`
	PeakBytesPerSec float64         `json:"peak_bytes_per_sec,omitempty"` // of one direction; 0 is not known
}

// Job is a run on a set of compute nodes.
type Job struct {
	ID      topology.JobID    `json:"id"`
	User    string            `json:"user"`
	App     string            `json:"app"`
	Project string            `json:"project,omitempty"`
	Nodes   []topology.NodeID `json:"nodes"`
	Start   time.Time         `json:"start"`
	// QOS and Priority are the batch system's, where it was asked for its jobs; Priority 0 is not known.
	QOS      string  `json:"qos,omitempty"`
	Priority float64 `json:"priority,omitempty"`
}

// Driver changes mappings on the machine. Apply and Restore are idempotent: they say what the
// result must be, so that repeating one is harmless.
type Driver interface {
	// Preview says what each move would do, without doing it; an error names the move that cannot be done.
	Preview(ctx context.Context, p Plan) ([]string, error)
	// Apply makes each move of p true and reports every outcome; report may be called from several
	// goroutines, but not after Apply has returned. An error is about the plan as a whole.
	Apply(ctx context.Context, p Plan, report func(Result)) error
	// Observe reads back which forwarder the nodes use now, as the driver's own subject says it.
	Observe(ctx context.Context, nodes []topology.NodeID) (topology.Mapping, error)
	// Restore moves every node of p back to where it came from, reporting like Apply.
	Restore(ctx context.Context, p Plan, report func(Result)) error
}
