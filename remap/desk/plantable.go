package desk

import (
	"fmt"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// planTable is the state of every plan.
type planTable struct {
	of    map[string]*entry
	order []string // by age
	open  []string // those of order that can still change: what looks at every plan looks at these
	count map[remap.PlanState]int
	packer
}

func newPlanTable() planTable {
	return planTable{of: map[string]*entry{}, count: map[remap.PlanState]int{}, packer: newPacker()}
}

func planID(n int) string { return fmt.Sprintf("P-%06d", n) }

// nextID names the next plan.
func (t *planTable) nextID() string { return planID(len(t.order) + 1) }

// get returns the plan or ErrNotFound.
func (t *planTable) get(id string) (*entry, error) {
	e, ok := t.of[id]
	if !ok {
		return nil, fmt.Errorf("plan %q: %w", id, remap.ErrNotFound)
	}
	return e, nil
}

// check says why a record does not follow from the state and a draft of the batch before it.
func (t *planTable) check(r *journal.Record, d *draft) error {
	if r.Kind == journal.StepPropose {
		n := len(t.order) + d.proposed
		if r.Proposed == nil || r.Proposed.ID != r.Plan || r.Plan != planID(n+1) {
			return fmt.Errorf("proposal %q does not follow plan %d", r.Plan, n)
		}
		return nil
	}
	state, ok := d.states[r.Plan]
	if !ok {
		e, err := t.get(r.Plan)
		if err != nil {
			return err
		}
		state = e.State
	}
	if r.State != "" && !remap.MayGo(state, r.State) {
		return fmt.Errorf("plan %s cannot go from %s to %s", r.Plan, state, r.State)
	}
	return nil
}

// take makes a checked record part of the state.
func (t *planTable) take(r *journal.Record) {
	if r.Kind == journal.StepPropose {
		e := newEntry(r.Proposed)
		t.of[r.Plan] = e
		t.order = append(t.order, r.Plan)
		t.open = append(t.open, r.Plan)
		t.count[e.State]++
		return
	}
	e := t.of[r.Plan]
	was := e.State
	e.step(r)
	t.count[was]--
	t.count[e.State]++
	if e.State.Final() && !was.Final() {
		t.open = slices.DeleteFunc(t.open, func(id string) bool { return id == e.ID })
		t.pack(e)
	}
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

// dedicated returns the forwarders that plans have dedicated to a job, and with them those that proposed plans would
// dedicate.
func (t *planTable) dedicated() (owners, claims map[topology.ForwarderID]topology.JobID) {
	owners, claims = map[topology.ForwarderID]topology.JobID{}, map[topology.ForwarderID]topology.JobID{}
	for e := range t.unfinished {
		if !e.Dedicated {
			continue
		}
		for _, m := range e.Moves {
			claims[m.To] = e.Job
			if e.State.Holds() {
				owners[m.To] = e.Job
			}
		}
	}
	return owners, claims
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
