package api

import (
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
)

// PlanRow is a plan in a list.
type PlanRow struct {
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	State   remap.PlanState `json:"state"`
	Created time.Time       `json:"created"`
	Expires time.Time       `json:"expires"`
}

// PlanView is one plan with its preview, checks and progress.
type PlanView struct {
	remap.Plan
	remap.Options        // what the caller may do with the plan
	Title         string `json:"title"`
	// PreviewHash binds an approval to what the approver saw.
	PreviewHash string        `json:"preview_hash"`
	Lines       []string      `json:"lines"` // what each move does, in words
	Checks      []remap.Check `json:"checks"`
	// Expected is what the plan should bring, by the findings about what it leaves and the last run of a job that a
	// policy moves; Outcome what that job came to once it has ended. In words; empty where that is not known.
	Expected string `json:"expected,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	// Brought says in words what the moves were measured to bring, while it is measured what so far (Effect).
	Brought string `json:"brought,omitempty"`
	// Track says what moves that were carried out brought before, beside what was expected of them; of waiting plans.
	Track string `json:"track,omitempty"`
	Needs int    `json:"needs"` // approvals, those given included
	// SuggestedReason is filled in where the plan is decided; BackTo says where a roll back goes and how that is.
	SuggestedReason string `json:"suggested_reason,omitempty"`
	BackTo          string `json:"back_to,omitempty"`
	// Card is that of the incident which the plan is to help against, else the plan's own.
	Card advise.Card `json:"card"`
	// MayApprove is empty when the caller may approve, else why not.
	MayApprove string `json:"may_approve"`
}

// ManualRemap asks for a plan made by a person: that nodes use another forwarder, or with a Limit that a job gets no
// more of these nodes, forwarders or object servers, while others ask for some.
type ManualRemap struct {
	Nodes  []topology.NodeID    `json:"nodes"`
	To     topology.ForwarderID `json:"to,omitempty"`
	Job    topology.JobID       `json:"job,omitempty"`
	Limit  float64              `json:"limit,omitempty"` // 0..1
	Reason string               `json:"reason"`
	Force  bool                 `json:"force,omitempty"`
}

// Decision is the body of approve, reject, rollback, stop, ack, dismiss and canary.
type Decision struct {
	PreviewHash string `json:"preview_hash,omitempty"` // approve only
	Reason      string `json:"reason"`
}
