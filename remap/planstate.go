package remap

import "slices"

// PlanState is where a plan is in its life.
type PlanState string

// The states of a plan. Rejected, Withdrawn, Expired, RolledBack and Restored are final; a Partial or Failed
// plan can be completed or rolled back.
const (
	Proposed    PlanState = "proposed"
	Approved    PlanState = "approved"  // waits for its turn
	Rejected    PlanState = "rejected"  // by a person
	Withdrawn   PlanState = "withdrawn" // of no use any more before anybody answered
	Expired     PlanState = "expired"   // nobody answered in time, or it could not start in time
	Applying    PlanState = "applying"
	Applied     PlanState = "applied"  // the driver reports it, the collector has not observed it yet
	Verified    PlanState = "verified" // the collector observed every move
	Partial     PlanState = "partial"
	Failed      PlanState = "failed"
	RollingBack PlanState = "rolling_back"
	Restored    PlanState = "restored" // taken back at the job's end
	RolledBack  PlanState = "rolled_back"
)

// Final says that nothing can happen to a plan any more.
func (s PlanState) Final() bool { return len(next[s]) == 0 }

// Holds says that a plan's nodes are, or may be, away from where they were because of it.
func (s PlanState) Holds() bool { return !s.Final() && s != Proposed }

// Moving says that orders of the plan are or may be on their way.
func (s PlanState) Moving() bool { return s == Approved || s == Applying || s == RollingBack }

// Moved says whether a plan in this state has moved nodes, or may have.
func (s PlanState) Moved() bool {
	return !slices.Contains([]PlanState{Proposed, Approved, Rejected, Withdrawn, Expired}, s)
}
