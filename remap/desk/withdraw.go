package desk

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// withdrawal is the step that ends a plan which is of no use before anybody has answered.
func withdrawal(at time.Time, why string) *journal.Record {
	return &journal.Record{At: at.UTC(), Kind: journal.StepWithdraw, State: remap.Withdrawn,
		Reason: remap.ShortenReason(why)}
}

// expiry is the step that ends a plan whose time is over.
func expiry(at time.Time, why string) *journal.Record {
	return &journal.Record{At: at.UTC(), Kind: journal.StepExpire, State: remap.Expired, Reason: why}
}

// verified records that a plan's moves were observed, and withdraws waiting plans whose nodes it moved all. What they
// would have changed is gone.
func (d *runs) verified(e *entry, now time.Time) {
	recs := []*journal.Record{{At: now.UTC(), Kind: journal.StepFinish, Plan: e.ID, State: remap.Verified}}
	moved := subjectsOf(&e.Plan)
	for _, w := range d.rec.state.plans.waiting() {
		if everyMove(w, func(m *remap.Move) bool { return moved[w.Subject(m)] }) {
			r := withdrawal(now, fmt.Sprintf("superseded by %s, which moved its nodes", e.ID))
			r.Plan = w.ID
			recs = append(recs, r)
		}
	}
	_ = d.rec.record(recs...) // what is not recorded did not happen: the next tick tries again
}

// outlived returns the steps that withdraw waiting plans whose finding ends with the changes. Such a plan is for no job
// and leads all its nodes off one node without a further finding; a plan for a job has reasons of its own.
func (d *findings) outlived(changes []anomaly.Change) (recs []*journal.Record) {
	ended := map[topology.ForwarderID]*anomaly.Change{}
	for i := range changes {
		if c := &changes[i]; !c.Finding.Open() && c.Noted.IsZero() {
			ended[topology.ForwarderID(c.Finding.Node)] = c
		}
	}
	for _, w := range d.rec.state.plans.waiting() {
		c := ended[w.Moves[0].About()]
		if c == nil || w.Ledger != nil || w.Created.Before(c.Finding.Since) || d.accused(c, changes) ||
			!everyMove(w, func(m *remap.Move) bool { return m.About() == w.Moves[0].About() }) {
			continue
		}
		r := withdrawal(c.At, fmt.Sprintf("%s has ended (%s)", c.Finding.ID, c.Why))
		r.Plan = w.ID
		recs = append(recs, r)
	}
	return recs
}

// accused says whether a node has an open finding beside the one that ends with c.
func (d *findings) accused(c *anomaly.Change, changes []anomaly.Change) bool {
	open := map[string]bool{}
	for f := range d.rec.state.findings.on(c.Finding.Node) {
		open[f.ID] = f.Open()
	}
	for i := range changes {
		if f := &changes[i].Finding; f.Node == c.Finding.Node {
			open[f.ID] = f.Open()
		}
	}
	return slices.Contains(slices.Collect(maps.Values(open)), true)
}

// waiting returns the plans that wait for an answer.
func (t *planTable) waiting() (out []*entry) {
	for _, id := range t.open {
		if e := t.of[id]; e.State == remap.Proposed {
			out = append(out, e)
		}
	}
	return out
}

func everyMove(e *entry, is func(*remap.Move) bool) bool {
	for i := range e.Moves {
		if !is(&e.Moves[i]) {
			return false
		}
	}
	return true
}
