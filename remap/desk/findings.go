package desk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// findingTable is the state of findings: each as it last was, in the order in which they were made.
type findingTable struct {
	of     []anomaly.Finding
	at     map[string]int
	ofNode map[topology.NodeID][]int // places in of: a desk keeps all findings of years
}

// check says why a record is not a step of a finding.
func (x *findingTable) check(r *journal.Record) error {
	if r.Finding == nil || r.Finding.Finding.ID == "" {
		return errors.New("a step of a finding without one")
	}
	return nil
}

// take makes a checked record part of the state.
func (x *findingTable) take(r *journal.Record) {
	f := r.Finding.Finding
	if i, ok := x.at[f.ID]; ok {
		x.of[i] = f
		return
	}
	x.at[f.ID] = len(x.of)
	x.ofNode[f.Node] = append(x.ofNode[f.Node], len(x.of))
	x.of = append(x.of, f)
}

// on yields the findings of a node in the order in which they were made.
func (x *findingTable) on(n topology.NodeID) iter.Seq[*anomaly.Finding] {
	return func(yield func(*anomaly.Finding) bool) {
		for _, i := range x.ofNode[n] {
			if !yield(&x.of[i]) {
				return
			}
		}
	}
}

// accuses returns a finding that is more than a suspicion and holds a forwarder itself responsible.
func (x *findingTable) accuses(f topology.ForwarderID) (*anomaly.Finding, bool) {
	for g := range x.on(f.Node()) {
		if g.Kind.Accuses() && (g.State == anomaly.Confirmed || g.State == anomaly.Excluded) {
			return g, true
		}
	}
	return nil, false
}

// byPolicy says whether a finding, as it last was, has its node excluded by policy.
func (x *findingTable) byPolicy(id string) bool {
	i, ok := x.at[id]
	return ok && x.of[i].ExcludedBy == anomaly.ByPolicy
}

// findings records what the detectors and people say of forwarders.
type findings struct {
	cfg *Config
	rec *recorder
}

// Findings returns every finding as it last was, in the order in which they were made.
func (d *findings) Findings(ctx context.Context) (out []anomaly.Finding, err error) {
	err = d.rec.do(ctx, func() error {
		out = slices.Clone(d.rec.state.findings.of)
		return nil
	})
	return out, err
}

// FindingsOf returns every finding of one node as it last was, in the order in which they were made.
func (d *findings) FindingsOf(ctx context.Context, node topology.NodeID) (out []anomaly.Finding, err error) {
	err = d.rec.do(ctx, func() error {
		for f := range d.rec.state.findings.on(node) {
			out = append(out, *f)
		}
		return nil
	})
	return out, err
}

// detectors is the name under which the desk records what the detectors do.
var detectors = remap.Person{Name: "findings", Role: remap.Operator, Via: remap.ViaPolicy}

// RecordFindings keeps changes that the detectors made, and with them the exclusions by policy that
// they begin or end: all of it, or nothing on an error. What a person did to one of these findings
// meanwhile stays: a dismissed finding is not changed, an owner and a silence are kept. Errors:
// ErrState where one more exclusion would cross the desk's floor, and those of the journal.
func (d *findings) RecordFindings(ctx context.Context, changes []anomaly.Change) error {
	s := d.cfg.Situation()
	return d.rec.do(ctx, func() error {
		recs, err := d.stepsOf(d.rec.state.findings.merge(changes), s)
		if err != nil || len(recs) == 0 {
			return err
		}
		for _, r := range recs {
			r.Actor, r.Role, r.Via = detectors.Name, detectors.Role, detectors.Via
		}
		return d.rec.record(recs...)
	})
}

// merge gives the detectors' changes what persons did to the same findings.
func (x *findingTable) merge(changes []anomaly.Change) []anomaly.Change {
	out := make([]anomaly.Change, 0, len(changes))
	for _, c := range changes {
		if i, ok := x.at[c.Finding.ID]; ok {
			have := &x.of[i]
			if !have.Open() && !(have.State == anomaly.Returned && c.From == anomaly.Returned) {
				continue // what returned may be seen again, what a person dismissed may not
			}
			c.Finding.Owner = have.Owner
			if begins := c.From != c.Finding.State; !begins || c.Finding.State != anomaly.Confirmed &&
				c.Finding.State != anomaly.Excluded {
				c.Finding.Silenced = have.Silenced
			}
		}
		out = append(out, c)
	}
	return out
}

// judgeFinding keeps a person's change of an open finding, or a note, which act makes from the finding as it is, and
// with it the exclusion by policy that ends. The same request again by its key is answered with the finding as it is.
// body is what the key stands for.
func (d *findings) judgeFinding(ctx context.Context, by remap.Person, verb remap.Action, id string,
	a remap.Answer, body string,
	act func(anomaly.Finding) anomaly.Change) (out anomaly.Finding, err error) {
	if err := by.May(remap.Operator, "judging a finding"); err != nil {
		return out, err
	}
	if err := verb.CheckReason(a.Reason); err != nil {
		return out, err
	}
	s := d.cfg.Situation()
	body = digest(body, a.Reason)
	err = d.rec.do(ctx, func() error {
		i, known := d.rec.state.findings.at[id]
		if known {
			out = d.rec.state.findings.of[i]
		}
		if _, again, err := d.rec.state.keys.used(by, a.Key, body); err != nil || again {
			return err
		}
		if !known || !out.Open() && verb != remap.ActNote {
			return fmt.Errorf("%w: finding %q: no open finding has this id", remap.ErrNotFound, id)
		}
		recs, err := d.stepsOf([]anomaly.Change{act(out)}, s)
		if err != nil {
			return err
		}
		recs[0].Key, recs[0].Body = a.Key, body
		for _, r := range recs {
			r.Actor, r.Role, r.Via = by.Name, by.Role, by.Via
		}
		if err := d.rec.record(recs...); err != nil {
			return err
		}
		out = d.rec.state.findings.of[i]
		return nil
	})
	return out, err
}

// stepsOf turns changes into records: each itself, then the exclusion that it begins or ends, then the plans that
// nobody needs any more. Only the finding that had a forwarder excluded ends that: another one on the same node has no
// say in it.
func (d *findings) stepsOf(changes []anomaly.Change, s *remap.Situation) ([]*journal.Record, error) {
	var recs []*journal.Record
	out := maps.Clone(d.rec.state.exclusions.of)
	had := map[string]bool{} // findings of this batch: had the node excluded by policy
	for i := range changes {
		c := &changes[i]
		id, f := c.Finding.ID, topology.ForwarderID(c.Finding.Node)
		recs = append(recs, &journal.Record{At: c.At.UTC(), Kind: journal.StepFinding, Plan: id, Reason: c.Why,
			Finding: c})
		if _, seen := had[id]; !seen {
			had[id] = d.rec.state.findings.byPolicy(id)
		}
		want, was := c.Finding.ExcludedBy == anomaly.ByPolicy, had[id]
		had[id] = want
		e, excluded := out[f]
		switch {
		case want && !excluded:
			if err := mayExclude(f, out, s, &d.cfg.Settings); err != nil {
				return nil, err
			}
			e = remap.Exclusion{Forwarder: f, Reason: id + ": " + remap.ShortenReason(c.Finding.Sentence),
				By:    anomaly.ByPolicy,
				Since: c.At.UTC(), Until: c.At.UTC().Add(remap.MaxExclusion)}
			out[f] = e
			recs = append(recs, &journal.Record{At: e.Since, Kind: journal.StepExclude, Reason: e.Reason,
				Exclusion: &e})
		case was && !want && excluded && e.By == anomaly.ByPolicy:
			delete(out, f)
			recs = append(recs, &journal.Record{At: c.At.UTC(), Kind: journal.StepReturn, Reason: id + ": " + c.Why,
				Exclusion: &e})
		}
	}
	return append(recs, d.outlived(changes)...), nil
}

// withdrawal is the step that ends a plan which is of no use before anybody has answered.
func withdrawal(plan string, at time.Time, why string) *journal.Record {
	return &journal.Record{At: at.UTC(), Kind: journal.StepWithdraw, Plan: plan, State: remap.Withdrawn,
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
			recs = append(recs, withdrawal(w.ID, now, fmt.Sprintf("superseded by %s, which moved its nodes", e.ID)))
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
		recs = append(recs, withdrawal(w.ID, c.At, fmt.Sprintf("%s has ended (%s)", c.Finding.ID, c.Why)))
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
	for e := range t.unfinished {
		if e.State == remap.Proposed {
			out = append(out, e)
		}
	}
	return out
}

func everyMove(e *entry, is func(*remap.Move) bool) bool {
	return !slices.ContainsFunc(e.Moves, func(m remap.Move) bool { return !is(&m) })
}
