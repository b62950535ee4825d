package desk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// trustTable are the nodes whose own tokens are refused, and up to when these were issued.
type trustTable struct {
	revoked map[topology.NodeID]time.Time
	since   time.Time // of the oldest record that it follows from
}

// check says why a record does not follow.
func (t *trustTable) check(r *journal.Record) error {
	if len(r.Revoked) == 0 {
		return errors.New("it names no node")
	}
	return nil
}

// take makes a record part of the table, which is made anew: others read the former one.
func (t *trustTable) take(r *journal.Record) {
	all := maps.Clone(t.revoked)
	if all == nil || r.Kind == journal.StepRevoked {
		all, t.since = map[topology.NodeID]time.Time{}, r.At
	}
	for n, until := range r.Revoked {
		if until.After(all[n]) {
			all[n] = until
		}
	}
	t.revoked = all
}

// longestName is how many letters a node's name has at most.
const longestName = 255

// trust is who may speak for a node, as far as it is decided while the daemon runs.
type trust struct {
	rec     *recorder
	revoked atomic.Pointer[map[topology.NodeID]time.Time]
}

// publish has others read the table as it is now; the next record makes another one.
func (d *trust) publish() {
	d.revoked.Store(new(d.rec.state.trust.revoked))
}

// RevokedUntil is up to when the tokens that a node was given are refused; the zero time for a node without any.
func (d *trust) RevokedUntil(n topology.NodeID) time.Time { return (*d.revoked.Load())[n] }

// RevokeNodes refuses from now on the tokens that nodes were given up to a time each. Errors: ErrNotAllowed,
// ErrInvalid, ErrConflict.
func (d *trust) RevokeNodes(ctx context.Context, by remap.Person, nodes map[topology.NodeID]time.Time,
	a remap.Answer) error {
	if err := by.May(remap.Admin, "revoking nodes' tokens"); err != nil {
		return err
	}
	if len(nodes) == 0 {
		return fmt.Errorf("%w: no node is named", remap.ErrInvalid)
	}
	for n := range nodes {
		if n == "" || len(n) > longestName || !topology.CleanName(string(n)) {
			return fmt.Errorf("%w: node %.100q: want a node's name", remap.ErrInvalid, n)
		}
	}
	body := digest("revoke nodes", []any{slices.Sorted(maps.Keys(nodes)), a.Reason})
	return d.rec.do(ctx, func() error {
		if _, again, err := d.rec.state.keys.used(by, a.Key, body); err != nil || again {
			return err
		}
		return d.rec.recordFor(by, a, body, &journal.Record{Kind: journal.StepRevokeNodes, Revoked: nodes})
	})
}

// Enrolled records that a node was given its own token, by whom and at which address.
func (d *trust) Enrolled(ctx context.Context, by remap.Person, n topology.NodeID, remote string) error {
	return d.rec.do(ctx, func() error {
		return d.rec.recordFor(by, remap.Answer{Reason: "from " + remote}, "",
			&journal.Record{Kind: journal.StepEnrol, Plan: string(n)})
	})
}

// keep records who is revoked once more, so that the records of before a time can leave the journal.
func (d *trust) keep(ctx context.Context, before time.Time) error {
	return d.rec.do(ctx, func() error {
		t := &d.rec.state.trust
		if len(t.revoked) == 0 || !t.since.Before(before) {
			return nil
		}
		return d.rec.record(&journal.Record{At: time.Now().UTC(), Kind: journal.StepRevoked, Revoked: t.revoked,
			Reason: "still refused, now that older records leave the journal"})
	})
}

// Archive moves the journal's records of before a time to a segment beside it, as journal.Journal.Old says; nil: there
// are too few. Steps wait only while the rest of the journal is copied.
func (d *trust) Archive(ctx context.Context, before time.Time, least uint64) (*journal.Old, error) {
	if err := d.keep(ctx, before); err != nil {
		return nil, err
	}
	return d.rec.archive(ctx, before, least)
}
