// Package remap decides and acts: situations go in, plans come out, and one desk proposes,
// approves, applies, verifies, rolls back and records every one of them.
package remap

import (
	"context"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Situation is one immutable picture of the machine at an instant. Deciders and operators look at
// the same one.
type Situation struct {
	At       time.Time                               `json:"at"`
	Machine  *topology.Machine                       `json:"-"`
	Observed topology.Mapping                        `json:"observed"`
	Load     map[topology.ForwarderID]Load           `json:"load"`
	Findings []anomaly.Finding                       `json:"findings,omitempty"`
	Excluded map[topology.ForwarderID]string         `json:"excluded,omitempty"` // reason
	Owner    map[topology.ForwarderID]topology.JobID `json:"owner,omitempty"`    // dedicated to
	Jobs     []Job                                   `json:"jobs,omitempty"`
}

// Load is what a forwarder carries at a situation's instant.
type Load struct {
	LastSeen         time.Time `json:"last_seen"`
	ReadBytesPerSec  float64   `json:"read_bytes_per_sec"`
	WriteBytesPerSec float64   `json:"write_bytes_per_sec"`
	Occupancy        float64   `json:"occupancy"` // 0..1
	Connections      int       `json:"connections"`
}

// Job is a run on a set of compute nodes.
type Job struct {
	ID      topology.JobID    `json:"id"`
	User    string            `json:"user"`
	App     string            `json:"app"`
	Project string            `json:"project,omitempty"`
	Nodes   []topology.NodeID `json:"nodes"`
	Start   time.Time         `json:"start"`
}

// Move is one compute node's change of forwarder.
type Move struct {
	Node topology.NodeID      `json:"node"`
	From topology.ForwarderID `json:"from"`
	To   topology.ForwarderID `json:"to"`
}

// PlanState is where a plan is in its life (DESIGN.md section 7).
type PlanState string

// The states of a plan.
const (
	Proposed   PlanState = "proposed"
	Approved   PlanState = "approved"
	Rejected   PlanState = "rejected"
	Expired    PlanState = "expired"
	Applying   PlanState = "applying"
	Applied    PlanState = "applied"
	Verified   PlanState = "verified"
	Partial    PlanState = "partial"
	Failed     PlanState = "failed"
	Restored   PlanState = "restored"
	RolledBack PlanState = "rolled_back"
)

// Plan is a remap as data: which compute nodes go where, why, and how far it has come.
type Plan struct {
	ID       string         `json:"id"`
	Job      topology.JobID `json:"job,omitempty"`
	Moves    []Move         `json:"moves"`
	Reason   string         `json:"reason"`
	Proposer string         `json:"proposer"`
	Created  time.Time      `json:"created"`
	Expires  time.Time      `json:"expires"`
	State    PlanState      `json:"state"`
	Changed  time.Time      `json:"changed"`
	// Force cuts off a dead or hung forwarder instead of draining it first.
	Force    bool     `json:"force,omitempty"`
	Approver string   `json:"approver,omitempty"`
	Results  []Result `json:"results,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Result is what became of one move.
type Result struct {
	Node     topology.NodeID `json:"node"`
	OK       bool            `json:"ok"`
	Tries    int             `json:"tries"`
	Error    string          `json:"error,omitempty"`
	Took     time.Duration   `json:"took_ns"`
	Verified bool            `json:"verified"` // the collector observed the new mapping
}

// Driver changes mappings on the machine. Apply and Restore are idempotent: they say what the
// result must be, so that repeating one is harmless.
type Driver interface {
	// Preview says what each move would do, without doing it; an error names the move that cannot be done.
	Preview(ctx context.Context, p Plan) ([]string, error)
	// Apply makes each move of p true and reports every outcome; report may be called from several goroutines.
	Apply(ctx context.Context, p Plan, report func(Result)) error
	// Observe reads back which forwarder the nodes use now, as the driver's own subject says it.
	Observe(ctx context.Context, nodes []topology.NodeID) (topology.Mapping, error)
	// Restore moves every node of p back to where it came from.
	Restore(ctx context.Context, p Plan, report func(Result)) error
}
