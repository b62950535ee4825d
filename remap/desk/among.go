package desk

import (
	"fmt"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

// movedOn finds a plan that was approved later and holds a node of e. What is later says the journal, and not a clock:
// the daemons that lead one after the other have their own.
func (t *planTable) movedOn(e *entry) (plan string, node topology.NodeID) {
	mine := subjectsOf(&e.Plan)
	for o := range t.unfinished {
		if o.ID == e.ID || !o.State.Holds() || o.approved <= e.approved {
			continue
		}
		for i := range o.Moves {
			if mine[o.Subject(&o.Moves[i])] {
				return o.ID, o.Moves[i].Node
			}
		}
	}
	return "", ""
}

// subjectsOf are what a plan changes.
func subjectsOf(p *remap.Plan) map[remap.Subject]bool {
	out := make(map[remap.Subject]bool, len(p.Moves))
	for i := range p.Moves {
		out[p.Subject(&p.Moves[i])] = true
	}
	return out
}

// checkOthers refuses to move a node that another plan is moving.
func checkOthers(p remap.Plan, others []remap.Plan) []remap.Check {
	mine := subjectsOf(&p)
	for _, o := range others {
		if o.ID == p.ID || !o.State.Moving() {
			continue
		}
		for i := range o.Moves {
			m, doing := &o.Moves[i], "moved"
			if m.Limit > 0 {
				doing = "limited for this job"
			}
			if mine[o.Subject(m)] {
				return oneCheck("others", remap.Red,
					fmt.Sprintf("%s is being %s by %s (%s)", m.Node, doing, o.ID, o.State))
			}
		}
	}
	return oneCheck("others", remap.Green, "no other plan is moving these nodes")
}

// checkPromised warns of an earlier waiting plan that sends nodes to the same forwarder, where one of the two wants it
// alone. Whichever is approved first, the other cannot be.
func (t *planTable) checkPromised(p *remap.Plan) []remap.Check {
	targets := remap.Targets(p.Moves)
	for e := range t.unfinished {
		if e.ID == p.ID {
			break
		}
		if e.State != remap.Proposed || !e.Dedicated && !p.Dedicated || e.Job != "" && e.Job == p.Job {
			continue
		}
		for _, m := range e.Moves {
			if slices.Contains(targets, m.To) {
				return oneCheck("promised", remap.Amber, fmt.Sprintf(
					"%s waits, too, and moves nodes to %s: one of the two plans wants it for its job alone, so only "+
						"one can be approved", e.ID, m.To))
			}
		}
	}
	return nil
}

// moving returns the plans that others may collide with.
func (t *planTable) moving() (plans []remap.Plan) {
	for e := range t.unfinished {
		if e.State.Moving() {
			plans = append(plans, remap.Plan{ID: e.ID, Job: e.Job, State: e.State, Moves: e.Moves})
		}
	}
	return plans
}

// unfinished visits the plans that can still change, the oldest first.
func (t *planTable) unfinished(visit func(*entry) bool) {
	for _, id := range t.open {
		if !visit(t.of[id]) {
			return
		}
	}
}

// newest visits all plans, the newest first.
func (t *planTable) newest(visit func(*entry) bool) {
	for _, id := range slices.Backward(t.order) {
		if !visit(t.of[id]) {
			return
		}
	}
}

// ruledSince counts the plans that were approved by rule since then.
func (t *planTable) ruledSince(then time.Time) (n int) {
	for e := range t.newest {
		if e.Created.Before(then) {
			return n // older ones were approved when they were proposed, if by rule
		}
		if slices.ContainsFunc(e.Approvals, func(a remap.Approval) bool { return a.Via == remap.ViaRule }) {
			n++
		}
	}
	return n
}
