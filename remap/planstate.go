package remap

import (
	"fmt"
	"slices"
	"strings"
)

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

// step is one legal change in a plan's life: by an action of a person, or by the desk itself where by is empty.
type step struct {
	by   Action
	from []PlanState
	to   []PlanState
	// instead says what a plan in another state is not, or what to do about it.
	instead string
}

// life is the one table of the steps of a plan.
var life = []step{
	{by: ActApprove, from: []PlanState{Proposed}, to: []PlanState{Approved}, instead: "not waiting for an approval"},
	{by: ActReject, from: []PlanState{Proposed, Approved}, to: []PlanState{Rejected}, instead: "roll it back instead"},
	{by: ActStop, from: []PlanState{Applying}, instead: "not being applied"}, // the end of the run changes the state
	{by: ActComplete, from: []PlanState{Partial, Failed}, to: []PlanState{Applying},
		instead: "not partial or failed"},
	{by: ActRollBack, from: []PlanState{Applying, Applied, Verified, Partial, Failed}, to: []PlanState{RollingBack},
		instead: "nothing was moved"},
	{by: ActWithdraw, from: []PlanState{Proposed, Approved}, to: []PlanState{Withdrawn},
		instead: "roll it back instead"},
	{from: []PlanState{Proposed, Approved}, to: []PlanState{Expired}},
	{from: []PlanState{Approved}, to: []PlanState{Applying}},
	{from: []PlanState{Applying}, to: []PlanState{Applied, Partial, Failed}},
	{from: []PlanState{Applied}, to: []PlanState{Verified, Partial}},
	// A roll back that not every node followed ends as Partial, and can be repeated.
	{from: []PlanState{RollingBack}, to: []PlanState{RolledBack, Restored, Partial}},
}

// next lists the states that can follow each state.
var next = func() map[PlanState][]PlanState {
	out := map[PlanState][]PlanState{}
	for _, s := range life {
		for _, from := range s.from {
			out[from] = append(out[from], s.to...)
		}
	}
	return out
}()

// MayGo says whether a plan may go from one state to another.
func MayGo(from, to PlanState) bool { return slices.Contains(next[from], to) }

// Refuses says why a plan in this state does not permit an action; empty when it does.
func (s PlanState) Refuses(a Action) string {
	for _, st := range life {
		if st.by != a && !(st.by == ActRollBack && a == ActRestore) {
			continue
		}
		if slices.Contains(st.from, s) {
			return ""
		}
		if s.Final() || s == RollingBack { // nothing is left to be done instead
			return "it is " + strings.ReplaceAll(string(s), "_", " ")
		}
		return fmt.Sprintf("it is %s, %s", s, st.instead)
	}
	return fmt.Sprintf("%s is not a step of a plan", a)
}
