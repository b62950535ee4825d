package desk

import (
	"cmp"
	"slices"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// entry is one plan with look-ups into its slices. Of one that has ended the bulk is packed: a plan of
// 512 nodes is some 200 kB, and they are kept for ever.
type entry struct {
	remap.Plan
	results, undo map[topology.NodeID]int
	packed        []byte
	approved      int // which of the journal's approvals was its last; 0: none
}

func newEntry(p *remap.Plan) *entry {
	return &entry{Plan: remap.ClonePlan(p), results: map[topology.NodeID]int{}, undo: map[topology.NodeID]int{}}
}

// brief returns the plan without what grows with its nodes, as lists show it.
func (e *entry) brief() remap.Plan {
	p := e.Plan
	p.Results, p.Undo = nil, nil
	return p
}

// step changes one plan.
func (e *entry) step(r *journal.Record) {
	if r.State != "" {
		e.State, e.Changed, e.Error = r.State, r.At, r.Error
	}
	if r.Approval != nil {
		e.Approvals = append(e.Approvals, *r.Approval)
	}
	if r.Frozen != nil {
		e.Frozen = *r.Frozen
	}
	if r.Moves != nil {
		e.Moves = r.Moves
	}
	if r.Expires != nil {
		e.Expires = *r.Expires
	}
	switch r.Kind {
	case journal.StepReject, journal.StepWithdraw, journal.StepExpire, journal.StepRollBack:
		e.Ended = &remap.Ended{By: cmp.Or(r.Actor, "desk"), At: r.At, Reason: r.Reason}
	case journal.StepComplete:
		e.Ended, e.Effect = nil, nil
	}
	switch r.Kind {
	case journal.StepHold:
		e.Back = &remap.Back{Goal: r.Goal, By: cmp.Or(r.Actor, "desk"), At: r.At, Why: r.Error}
		return
	case journal.StepMeasure:
		e.measured(r)
		return
	case journal.StepEffect:
		e.Effect = r.Effect
		return
	case journal.StepRollBack:
		e.Goal, e.Undo, e.undo, e.Back = r.Goal, nil, map[topology.NodeID]int{}, nil
	case journal.StepComplete:
		// After a roll back, however partial, what was moved once may be back: move all again. So may be what was
		// never seen there.
		back := e.Goal != ""
		e.Results = slices.DeleteFunc(e.Results, func(x remap.Result) bool { return back || !x.Verified })
		e.results, e.Goal, e.Back = index(e.Results), "", nil
	case journal.StepUndone:
		e.Undo = merge(e.Undo, e.undo, r.Results)
	default:
		e.Results = merge(e.Results, e.results, r.Results)
	}
	seen, at := e.underWay()
	for _, n := range r.Observed {
		if i, ok := at[n]; ok {
			seen[i].Verified = true
		}
	}
}

// merge adds results; the newer result of a node replaces the older.
func merge(have []remap.Result, at map[topology.NodeID]int, news []remap.Result) []remap.Result {
	for _, r := range news {
		if i, ok := at[r.Node]; ok {
			have[i] = r
			continue
		}
		at[r.Node] = len(have)
		have = append(have, r)
	}
	return have
}

func index(results []remap.Result) map[topology.NodeID]int {
	at := make(map[topology.NodeID]int, len(results))
	for i, r := range results {
		at[r.Node] = i
	}
	return at
}

// measured puts m into the ledger; ledgers that were handed out stay as they are.
func (e *entry) measured(r *journal.Record) {
	if e.Ledger == nil {
		return
	}
	l := *e.Ledger
	l.Measured, l.MeasuredAt = r.Measured, r.At
	e.Ledger = &l
}
