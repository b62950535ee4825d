package desk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// findings are the book's findings as they last were, in the order in which they were made.
type findings struct {
	of []anomaly.Finding
	at map[string]int
}

// take makes one record true.
func (x *findings) take(r *journal.Record) error {
	if r.Finding == nil || r.Finding.Finding.ID == "" {
		return errors.New("a step of a finding without one")
	}
	f := r.Finding.Finding
	if i, ok := x.at[f.ID]; ok {
		x.of[i] = f
		return nil
	}
	x.at[f.ID] = len(x.of)
	x.of = append(x.of, f)
	return nil
}

// byPolicy says whether a finding, as it last was, withholds its node by policy.
func (x *findings) byPolicy(id string) bool {
	i, ok := x.at[id]
	return ok && x.of[i].ExcludedBy == anomaly.ByPolicy
}

// Findings returns every finding as it last was, in the order in which they were made.
func (d *Desk) Findings(ctx context.Context) (out []anomaly.Finding, err error) {
	err = d.do(ctx, func() error {
		out = slices.Clone(d.book.findings.of)
		return nil
	})
	return out, err
}

// FindingsOf returns every finding of one node as it last was, in the order in which they were made.
func (d *Desk) FindingsOf(ctx context.Context, node topology.NodeID) (out []anomaly.Finding, err error) {
	err = d.do(ctx, func() error {
		for i := range d.book.findings.of {
			if f := &d.book.findings.of[i]; f.Node == node {
				out = append(out, *f)
			}
		}
		return nil
	})
	return out, err
}

// RecordFindings keeps the changes that make gives, and with them the exclusions by policy that
// they begin or end: all of it, or nothing on an error. make is called when nothing speaks against
// the person's word; a person needs the role operator and where reasoned a reason. Policies come
// as a Person with Via ViaPolicy. Errors: ErrNotAllowed, ErrInvalid, ErrConflict, ErrState where
// one more exclusion would cross the desk's floor, those of make and of the journal.
func (d *Desk) RecordFindings(ctx context.Context, by remap.Person, a remap.Answer, reasoned bool, body string,
	make func() ([]anomaly.Change, error)) error {
	if by.Via != remap.ViaPolicy {
		if err := by.May(remap.Operator, "judging a finding"); err != nil {
			return err
		}
	}
	check := remap.CheckText
	if reasoned {
		check = remap.CheckReason
	}
	if err := check(a.Reason); err != nil {
		return err
	}
	s := d.situation()
	body = digest(body, a.Reason)
	return d.do(ctx, func() error {
		if _, again, err := d.book.used(by, a.Key, body); err != nil || again {
			return err
		}
		changes, err := make()
		if err != nil || len(changes) == 0 {
			return err
		}
		recs, err := d.stepsOf(changes, s)
		if err != nil {
			return err
		}
		recs[0].Key, recs[0].Body = a.Key, body
		for _, r := range recs {
			r.Actor, r.Role, r.Via = by.Name, by.Role, by.Via
		}
		return d.record(recs...)
	})
}

// stepsOf turns changes into records: each itself, then the exclusion that it begins or ends. Only the
// finding that had a forwarder excluded ends that: another one on the same node has no say in it.
func (d *Desk) stepsOf(changes []anomaly.Change, s *remap.Situation) ([]*journal.Record, error) {
	var recs []*journal.Record
	out := maps.Clone(d.book.exclusions.of)
	had := map[string]bool{} // findings of this batch: withheld the node by policy
	for i := range changes {
		c := &changes[i]
		id, f := c.Finding.ID, topology.ForwarderID(c.Finding.Node)
		recs = append(recs, &journal.Record{At: c.At.UTC(), Kind: journal.StepFinding, Plan: id, Reason: c.Why,
			Finding: c})
		if _, seen := had[id]; !seen {
			had[id] = d.book.findings.byPolicy(id)
		}
		want, was := c.Finding.ExcludedBy == anomaly.ByPolicy, had[id]
		had[id] = want
		e, excluded := out[f]
		switch {
		case want && !excluded:
			if err := d.mayExclude(f, out, s); err != nil {
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
	return recs, nil
}

// AwaitFeed returns the feed once its generation is another one than that, or at the latest when
// half of its lease is over: then with a newer lease. It fails only with ctx or a closed desk.
func (d *Desk) AwaitFeed(ctx context.Context, generation uint64) (remap.Feed, error) {
	changed, stop := d.Watch(16)
	defer stop()
	enough := time.NewTimer(d.set.FeedLease / 2)
	defer enough.Stop()
	for {
		if f := d.Feed(); f.Generation != generation {
			return f, nil
		}
		select {
		case _, open := <-changed:
			if !open {
				return remap.Feed{}, fmt.Errorf("exclusions: %w", remap.ErrClosed)
			}
		case <-enough.C:
			return d.Feed(), nil
		case <-ctx.Done():
			return remap.Feed{}, ctx.Err()
		}
	}
}
