// Package remap decides and acts: situations go in, plans come out, and one desk proposes,
// approves, applies, verifies, rolls back and records every one of them.
package remap

import (
	"context"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Situation is one immutable picture of the machine at an instant. Deciders and operators look at
// the same one.
type Situation struct {
	At       time.Time                               `json:"at"`
	Machine  *topology.Machine                       `json:"-"`
	Index    *topology.Index                         `json:"-"`        // of Machine
	Observed topology.Mapping                        `json:"observed"` // fresh routes only
	Clients  map[topology.ForwarderID]int            `json:"-"`        // compute nodes of each forwarder, as observed
	Routes   map[topology.NodeID]window.Route        `json:"-"`        // with age and generation
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
	MetaOpsPerSec    float64   `json:"meta_ops_per_sec"`
	Occupancy        float64   `json:"occupancy"` // 0..1
	Connections      int       `json:"connections"`
	PeakBytesPerSec  float64   `json:"peak_bytes_per_sec,omitempty"` // of one direction; 0 is not known
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

// Move is one compute node's change of forwarder.
type Move struct {
	Node topology.NodeID      `json:"node"`
	From topology.ForwarderID `json:"from"`
	To   topology.ForwarderID `json:"to"`
}

// MoveAll asks that every node use one forwarder; the desk fills in where they come from.
func MoveAll(nodes []topology.NodeID, to topology.ForwarderID) []Move {
	moves := make([]Move, 0, len(nodes))
	for _, n := range nodes {
		moves = append(moves, Move{Node: n, To: to})
	}
	return moves
}

// PlanState is where a plan is in its life.
type PlanState string

// The states of a plan. Rejected, Expired, RolledBack and Restored are final; a Partial or Failed
// plan can be completed or rolled back.
const (
	Proposed    PlanState = "proposed"
	Approved    PlanState = "approved" // waits for its turn
	Rejected    PlanState = "rejected"
	Expired     PlanState = "expired"
	Applying    PlanState = "applying"
	Applied     PlanState = "applied"  // the driver says so, the collector has not seen it yet
	Verified    PlanState = "verified" // the collector observed every move
	Partial     PlanState = "partial"
	Failed      PlanState = "failed"
	RollingBack PlanState = "rolling_back"
	Restored    PlanState = "restored" // taken back at the job's end
	RolledBack  PlanState = "rolled_back"
)

// Plan is a remap as data: which compute nodes go where, why, and how far it has come.
type Plan struct {
	ID       string         `json:"id"`
	Job      topology.JobID `json:"job,omitempty"`
	App      string         `json:"app,omitempty"`
	User     string         `json:"user,omitempty"`
	Moves    []Move         `json:"moves"`
	Reason   string         `json:"reason"`
	Proposer string         `json:"proposer"`
	Created  time.Time      `json:"created"`
	Expires  time.Time      `json:"expires"` // of the proposal, then of the approval
	State    PlanState      `json:"state"`
	Changed  time.Time      `json:"changed"`
	// Force cuts off a dead or hung forwarder instead of draining it first.
	Force bool `json:"force,omitempty"`
	// Dedicated keeps the targets for Job alone until the plan is taken back.
	Dedicated bool       `json:"dedicated,omitempty"`
	Approvals []Approval `json:"approvals,omitempty"`
	Results   []Result   `json:"results,omitempty"`
	Undo      []Result   `json:"undo,omitempty"` // of the roll back, node by node
	Error     string     `json:"error,omitempty"`
	// Ended is who rejected the plan or took it back, and why; nil while nobody has.
	Ended *Ended `json:"ended,omitempty"`
	// Frozen is what the desk knew when the plan was proposed, then when it was last approved.
	Frozen Frozen `json:"frozen"`
	// Ledger is of plans that a policy made for a job.
	Ledger *Ledger `json:"ledger,omitempty"`
	// Goal is the state that a roll back under way ends in: RolledBack or Restored.
	Goal PlanState `json:"goal,omitempty"`

	title string // of one that has ended and is kept without its moves
}

// Approval is one person's yes to one preview.
type Approval struct {
	By     string    `json:"by"`
	Via    string    `json:"via,omitempty"`
	At     time.Time `json:"at"`
	Hash   string    `json:"hash"`
	Reason string    `json:"reason"`
}

// Ended is one person's or policy's end of a plan.
type Ended struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Result is what became of one move.
type Result struct {
	Node     topology.NodeID `json:"node"`
	OK       bool            `json:"ok"`
	Tries    int             `json:"tries"`
	Error    string          `json:"error,omitempty"`
	At       time.Time       `json:"at"` // when the driver answered
	Took     time.Duration   `json:"took_ns"`
	Verified bool            `json:"verified"` // the collector observed the new mapping after At
}

// Progress counts a plan's results: of n moves ok are done, failed have failed, verified were
// observed. A roll back under way is counted by its own results.
func (p *Plan) Progress() (n, ok, failed, verified int) {
	results := p.Results
	if p.Goal != "" {
		results = p.Undo
	}
	for _, r := range results {
		switch {
		case r.Verified:
			ok, verified = ok+1, verified+1
		case r.OK:
			ok++
		default:
			failed++
		}
	}
	return len(p.Moves), ok, failed, verified
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
