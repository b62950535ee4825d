package desk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// Approve approves the preview behind a.Hash. With the last approval that the plan needs it is
// applied. The answer is the preview that was approved, of the plan as it is now: a driver's preview asks every
// node, so that nobody needs another one. Errors: ErrNotFound, ErrChanged (with what changed), ErrNotAllowed,
// ErrState, ErrInvalid (reason), ErrConflict.
func (d *answers) Approve(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Preview, error) {
	if err := mayAsk(by, remap.ActApprove, id, a); err != nil {
		return remap.Preview{}, err
	}
	v, err := d.preview(ctx, by, id)
	if err != nil {
		return remap.Preview{}, err
	}
	p, err := d.approve(ctx, by, id, a, &v)
	if err != nil {
		return remap.Preview{}, err
	}
	v.Plan = p
	v.MayApprove = mayApprove(by, &v, &d.cfg.Settings)
	v.Options = remap.PlanOptions(by, p.State, v.MayApprove)
	return v, nil
}

// approve approves a preview that was made just now.
func (d *answers) approve(ctx context.Context, by remap.Person, id string, a remap.Answer,
	shown *remap.Preview) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActApprove, id, a, func(e *entry, now time.Time) (*journal.Record, error) {
		moves := movesHash(a.Hash)
		given := approvals(e, moves)
		if err := d.mayApproveNow(by, e, shown, a.Hash, now); err != nil {
			return nil, err
		}
		r := &journal.Record{Kind: journal.StepApprove, Frozen: &shown.Frozen,
			Approval: &remap.Approval{By: by.Name, Via: by.Via, At: now, Hash: moves, Reason: a.Reason}}
		if given+1 >= shown.Needs {
			start := now.Add(d.cfg.Settings.ApprovalTTL)
			r.State, r.Moves, r.Expires = remap.Approved, shown.Plan.Moves, &start
		}
		return r, nil
	})
}

// mayApproveNow is every rule between a person's approval and the record of it.
func (d *answers) mayApproveNow(by remap.Person, e *entry, v *remap.Preview, hash string, at time.Time) error {
	set, plans := &d.cfg.Settings, &d.rec.state.plans
	if !at.Before(e.Expires) {
		return fmt.Errorf("plan %s: %w: it expired at %s", e.ID, remap.ErrState, e.Expires.Format(time.TimeOnly))
	}
	if movesHash(hash) != movesHash(v.Hash) {
		return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrChanged, d.sinceShown(v, hash))
	}
	for _, c := range v.Checks {
		if !strings.Contains(hash, doubt(&c)) && approvals(e, movesHash(hash))+1 >= v.Needs {
			return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrChanged, c.Text)
		}
	}
	if by.Name == e.Proposer && !set.SelfApproval {
		return fmt.Errorf("plan %s: %w: %s proposed it, somebody else approves it (or set desk.self_approval)", e.ID,
			remap.ErrNotAllowed, by.Name)
	}
	now := *v
	now.Plan.Approvals = e.Approvals
	if why := mayApprove(by, &now, set); why != "" {
		return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrState, why)
	}
	if by.Via == remap.ViaRule && plans.ruledSince(at.Add(-time.Minute)) >= set.PlansPerMinute {
		return fmt.Errorf("plan %s: %w: %d plans a minute are approved by rule (desk.plans_per_minute)", e.ID,
			remap.ErrState,
			set.PlansPerMinute)
	}
	// A plan approved since the preview was made may have taken a node or a forwarder.
	for _, c := range checkOthers(v.Plan, plans.moving()) {
		if c.Level == remap.Red {
			return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrState, c.Text)
		}
	}
	owners := d.plans.Owners()
	targets := remap.Targets(v.Plan.Moves)
	for _, f := range targets {
		if job, owned := owners[f]; owned && job != v.Plan.Job {
			return fmt.Errorf("plan %s: %w: %s is dedicated to job %s", e.ID, remap.ErrState, f, job)
		}
	}
	if left := d.cfg.Situation().ForEverybody(owners, targets); v.Plan.Dedicated && left < set.HealthyFloor {
		return fmt.Errorf("plan %s: %w: %d healthy forwarders would be left for everybody, the floor is %d", e.ID,
			remap.ErrState, left, set.HealthyFloor)
	}
	return nil
}

func (d *answers) sinceShown(v *remap.Preview, hash string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, old := range d.shown[v.Plan.ID] {
		if movesHash(old.Hash) == movesHash(hash) {
			return diff(v, &old)
		}
	}
	return "the approval is for another preview; read it again"
}

// approvals counts the different people who approved the same preview.
func approvals(e *entry, hash string) int {
	people := map[string]bool{}
	for _, a := range e.Approvals {
		if a.Hash == hash {
			people[a.By] = true
		}
	}
	return len(people)
}
