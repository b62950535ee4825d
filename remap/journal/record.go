package journal

import (
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// The steps of a canary probe that a person asked for: that it was asked for, before anything is
// sent, and what came of it. Canaries that the detectors send by rule are in the store alone.
const (
	StepCanary     RecordKind = "canary"
	StepCanaryDone RecordKind = "canary_done"
)

// first returns the number of the first record of r's batch.
func (r *Record) first() uint64 {
	if r.Batch == 0 {
		return r.Seq
	}
	return r.Batch
}

// The steps of an exclusion.
const (
	StepExclude RecordKind = "exclude"
	StepReturn  RecordKind = "return"
	// StepMaintenance plans maintenance for later; StepExclude begins it, and StepReturn ends it or calls it off.
	StepMaintenance RecordKind = "maintenance"
)

// StepFinding is one change in the life of a finding.
const StepFinding RecordKind = "finding"

// subject is what a record is about.
func (r *Record) subject() string {
	if r.Exclusion != nil {
		return string(r.Exclusion.Forwarder)
	}
	if r.Canary != nil {
		return string(r.Canary.Forwarder)
	}
	return r.Plan
}

// Record is one step in the life of a plan, as the journal keeps it. The state of every plan is
// what its records say and nothing else.
type Record struct {
	Seq uint64 `json:"seq"` // 1, 2, 3 ...
	// Batch is the number of the first of the records that were written together with this one, 0 in
	// that one itself; More is how many of them follow.
	Batch  uint64     `json:"batch,omitempty"`
	More   uint64     `json:"more,omitempty"`
	Hash   string     `json:"-"` // of this record and all before it, when read back
	At     time.Time  `json:"at"`
	Kind   RecordKind `json:"kind"`
	Plan   string     `json:"plan,omitempty"`
	Actor  string     `json:"actor,omitempty"` // empty: the desk itself
	Role   remap.Role `json:"role,omitempty"`
	Via    string     `json:"via,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Key and Body are the idempotency key of a write and the digest of what was asked under it.
	Key  string `json:"key,omitempty"`
	Body string `json:"body,omitempty"`

	State    remap.PlanState   `json:"state,omitempty"` // the plan's state from here on
	Proposed *remap.Plan       `json:"proposed,omitempty"`
	Approval *remap.Approval   `json:"approval,omitempty"`
	Frozen   *remap.Frozen     `json:"frozen,omitempty"`
	Moves    []remap.Move      `json:"moves,omitempty"` // as approved
	Expires  *time.Time        `json:"expires,omitempty"`
	Results  []remap.Result    `json:"results,omitempty"`
	Observed []topology.NodeID `json:"observed,omitempty"`
	Goal     remap.PlanState   `json:"goal,omitempty"`
	Standing *remap.Standing   `json:"standing,omitempty"`
	Measured *remap.IOFigures  `json:"measured,omitempty"`
	Effect   *remap.Effect     `json:"effect,omitempty"`
	// Exclusion is of the steps that are about a forwarder instead of a plan.
	Exclusion *remap.Exclusion `json:"exclusion,omitempty"`
	// Finding is of the steps in a finding's life; Plan then holds its id.
	Finding *anomaly.Change `json:"finding,omitempty"`
	// Canary is of the two steps of a canary probe that a person asked for.
	Canary *anomaly.Canary `json:"canary,omitempty"`
	// Revoked are nodes whose tokens are refused, and up to when these were issued.
	Revoked map[topology.NodeID]time.Time `json:"revoked,omitempty"`
	Error   string                        `json:"error,omitempty"`

	end int64 // of its line in the file
}

// RecordKind says which step a record is.
type RecordKind string

// The steps of a plan.
const (
	StepPropose  RecordKind = "propose"
	StepApprove  RecordKind = "approve"
	StepReject   RecordKind = "reject"
	StepWithdraw RecordKind = "withdraw"
	StepExpire   RecordKind = "expire"
	StepStart    RecordKind = "start"
	StepResults  RecordKind = "results"
	StepFinish   RecordKind = "finish"
	StepObserve  RecordKind = "observe"
	StepRollBack RecordKind = "roll_back"
	StepUndone   RecordKind = "undone" // results of a roll back
	// StepHold has a roll back wait, Goal being what it comes to and Error why it waits.
	StepHold     RecordKind = "hold"
	StepStop     RecordKind = "stop"
	StepComplete RecordKind = "complete"
)

// StepMeasure puts what was measured into a plan's ledger; the plan may be over by then.
const StepMeasure RecordKind = "measure"

// StepEffect says what a plan's moves were measured to bring.
const StepEffect RecordKind = "effect"

// The steps of trust in nodes.
const (
	StepEnrol       RecordKind = "enrol"        // a node, which Plan then holds, was given its own token
	StepRevokeNodes RecordKind = "revoke_nodes" // more nodes' tokens are refused
	StepRevoked     RecordKind = "revoked"      // all of them, in place of what was recorded before
)

// The steps of a standing approval.
const (
	StepAllow  RecordKind = "allow"
	StepRevoke RecordKind = "revoke"
)
