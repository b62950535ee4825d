package desk

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// answers takes proposals and what people and policies answer to them.
type answers struct {
	cfg       *Config
	rec       *recorder
	plans     *plans
	runs      *runs
	standings *standings

	mu    sync.Mutex                 // guards what follows
	shown map[string][]remap.Preview // by plan: the newest previews, to say what changed since
}

// Reject ends a plan that has not begun. Errors: ErrNotFound, ErrNotAllowed, ErrState, ErrConflict.
func (d *answers) Reject(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActReject, id, a, func(*entry, time.Time) (*journal.Record, error) {
		return &journal.Record{Kind: journal.StepReject, State: remap.Rejected}, nil
	})
}

// Withdraw ends a plan that has not begun and that nobody has to answer any more. Errors: those of Reject.
func (d *answers) Withdraw(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActWithdraw, id, a, func(_ *entry, now time.Time) (*journal.Record, error) {
		return withdrawal(id, now, a.Reason), nil
	})
}

// RollBack moves every node of the plan back to where it came from, also while the plan is being
// applied. Nodes that would go onto a forwarder that is not well stay where they are until it is (Plan.Back). Errors:
// ErrNotFound, ErrNotAllowed, ErrState (naming a later plan that moved a node on), ErrConflict.
func (d *answers) RollBack(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.goBack(ctx, by, id, a, remap.RolledBack)
}

// Restore is RollBack at the end of the plan's job: the plan has served.
func (d *answers) Restore(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.goBack(ctx, by, id, a, remap.Restored)
}

func (d *answers) goBack(ctx context.Context, by remap.Person, id string, a remap.Answer,
	goal remap.PlanState) (remap.Plan, error) {
	verb := remap.ActRollBack
	if goal == remap.Restored {
		verb = remap.ActRestore
	}
	s := d.cfg.Situation()
	return d.act(ctx, by, verb, id, a, func(e *entry, now time.Time) (*journal.Record, error) {
		if later, n := d.rec.state.plans.movedOn(e); later != "" {
			return nil, fmt.Errorf("plan %s: %w: %s was moved on by %s; roll that back first", id, remap.ErrState, n,
				later)
		}
		if why := d.runs.noWayBack(e, s, now); why != "" {
			if e.Back != nil || e.State == remap.Applying {
				return nil, fmt.Errorf("plan %s: %w: %s; to end it now, stop it and propose another place", id,
					remap.ErrState, why)
			}
			return &journal.Record{Kind: journal.StepHold, Goal: goal, Error: why}, nil
		}
		return &journal.Record{Kind: journal.StepRollBack, State: remap.RollingBack, Goal: goal}, nil
	})
}

// Complete tries the moves of a partial or failed plan again that have not been made. Errors:
// ErrNotFound, ErrNotAllowed, ErrState, ErrConflict.
func (d *answers) Complete(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActComplete, id, a, func(e *entry, _ time.Time) (*journal.Record, error) {
		if why := red(checkOthers(e.Plan, d.rec.state.plans.moving())); why != "" {
			return nil, fmt.Errorf("plan %s: %w: %s", id, remap.ErrState, why)
		}
		return &journal.Record{Kind: journal.StepComplete, State: remap.Applying}, nil
	})
}

// Stop ends an apply after the orders under way; the plan is then partial or failed. Errors:
// ErrNotFound, ErrNotAllowed, ErrState, ErrConflict.
func (d *answers) Stop(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActStop, id, a, func(*entry, time.Time) (*journal.Record, error) {
		return &journal.Record{Kind: journal.StepStop}, nil
	})
}

func answerDigest(verb remap.Action, id string, a remap.Answer) string {
	return digest(verb.Words()+" "+id, remap.Answer{Hash: a.Hash, Reason: a.Reason})
}

// mayAsk checks what does not depend on the plan: the person's role and the reason.
func mayAsk(by remap.Person, verb remap.Action, id string, a remap.Answer) error {
	err := by.May(remap.Operator, verb.Words())
	if err == nil {
		err = verb.CheckReason(a.Reason)
	}
	if err != nil {
		return fmt.Errorf("plan %s: %w", id, err)
	}
	return nil
}

// act is the frame of every answer: authority, idempotency, the rule, the record, the effect.
func (d *answers) act(ctx context.Context, by remap.Person, verb remap.Action, id string, a remap.Answer,
	rule func(*entry, time.Time) (*journal.Record, error)) (p remap.Plan, err error) {
	if err := mayAsk(by, verb, id, a); err != nil {
		return remap.Plan{}, err
	}
	st, body := d.rec.state, answerDigest(verb, id, a)
	err = d.rec.do(ctx, func() error {
		e, err := st.plans.get(id)
		if err != nil {
			return err
		}
		_, again, err := st.keys.used(by, a.Key, body)
		if err != nil {
			return err
		}
		if !again {
			if why := e.State.Refuses(verb); why != "" {
				return fmt.Errorf("plan %s: %w: %s", id, remap.ErrState, why)
			}
			now := time.Now().UTC()
			r, err := rule(e, now)
			if err != nil {
				return err
			}
			r.At, r.Plan = now, id
			if err := d.rec.recordFor(by, a, body, r); err != nil {
				return err
			}
			d.runs.follow(e)
		}
		p = st.plans.whole(e)
		return nil
	})
	return p, err
}

// Measure records what the job of a plan did. Errors: ErrNotFound, ErrState without a ledger.
func (d *answers) Measure(ctx context.Context, id string, m remap.IOFigures) error {
	return d.rec.do(ctx, func() error {
		e, err := d.rec.state.plans.get(id)
		if err != nil {
			return err
		}
		if e.Ledger == nil {
			return fmt.Errorf("plan %s: %w: nothing was predicted", id, remap.ErrState)
		}
		return d.rec.record(&journal.Record{At: time.Now().UTC(), Kind: journal.StepMeasure, Plan: id, Measured: &m})
	})
}

// RecordEffect records what a plan's moves were measured to bring. Errors: ErrNotFound, ErrState of a plan that has
// moved nothing.
func (d *answers) RecordEffect(ctx context.Context, id string, e *remap.Effect) error {
	return d.rec.do(ctx, func() error {
		p, err := d.rec.state.plans.get(id)
		if err != nil {
			return err
		}
		if !p.State.Moved() {
			return fmt.Errorf("plan %s: %w: it has moved nothing", id, remap.ErrState)
		}
		return d.rec.record(&journal.Record{At: time.Now().UTC(), Kind: journal.StepEffect, Plan: id, Effect: e})
	})
}

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
			r.State, r.Moves, r.Expires = remap.Approved, shown.Plan.Moves, new(now.Add(d.cfg.Settings.ApprovalTTL))
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
	if why := red(checkOthers(v.Plan, plans.moving())); why != "" {
		return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrState, why)
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
