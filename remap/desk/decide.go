package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// maxMoves bounds a request: no machine has more compute nodes than this.
const maxMoves = 1 << 20

// Propose puts a plan on the desk. Nothing is moved before it is approved, by people or, for what
// a policy proposes, by a rule that people made. Errors: ErrInvalid
// (naming the node, forwarder or field), ErrNotAllowed, ErrConflict.
func (d *Desk) Propose(ctx context.Context, by remap.Person, r remap.Request) (p remap.Plan, err error) {
	if err := by.May(remap.Operator, "proposing a plan"); err != nil {
		return remap.Plan{}, err
	}
	if err := remap.CheckText(r.Reason + r.Job + r.App + r.User); err != nil {
		return remap.Plan{}, err
	}
	s := d.situation()
	moves, err := checkRequest(r, s)
	if err != nil {
		return remap.Plan{}, err
	}
	body := digest("propose", remap.Request{Job: r.Job, App: r.App, User: r.User, Moves: r.Moves, Reason: r.Reason,
		Force: r.Force, Dedicated: r.Dedicated})
	err = d.do(ctx, func() error {
		id, again, err := d.book.used(by, r.Key, body)
		if err == nil && !again {
			now := time.Now().UTC()
			id = d.book.nextID()
			err = d.record(&journal.Record{At: now, Kind: journal.StepPropose, Plan: id, Actor: by.Name, Role: by.Role,
				Via:    by.Via,
				Reason: r.Reason, Key: r.Key, Body: body, Proposed: &remap.Plan{
					ID: id, Job: topology.JobID(r.Job), App: r.App, User: r.User, Moves: moves, Reason: r.Reason,
					Proposer: by.Name,
					Created:  now, Expires: now.Add(d.set.ProposalTTL), State: remap.Proposed, Changed: now,
					Force: r.Force, Dedicated: r.Dedicated, Ledger: r.Ledger, Frozen: s.Freeze(moves),
				}})
		}
		if err == nil {
			p = d.book.whole(d.book.plans[id])
		}
		return err
	})
	if err == nil && by.Via == remap.ViaPolicy && p.State == remap.Proposed {
		return d.approveByRule(ctx, p)
	}
	return p, err
}

// checkRequest returns the moves with their present forwarders, or what is wrong with the request.
func checkRequest(r remap.Request, s *remap.Situation) ([]remap.Move, error) {
	switch n := len(r.Moves); {
	case n == 0:
		return nil, fmt.Errorf("%w: no compute node to move", remap.ErrInvalid)
	case n > maxMoves:
		return nil, fmt.Errorf("%w: %d moves, at most %d", remap.ErrInvalid, n, maxMoves)
	case r.Dedicated && r.Job == "":
		return nil, fmt.Errorf("%w: dedicated forwarders need a job to be dedicated to", remap.ErrInvalid)
	}
	moves := slices.Clone(r.Moves)
	seen := make(map[topology.NodeID]bool, len(moves))
	for i, m := range moves {
		switch {
		case s.Index.Role(m.Node) != topology.Compute:
			return nil, fmt.Errorf("%w: %q is not a compute node of %s", remap.ErrInvalid, m.Node, s.Machine.Name)
		case s.Index.Role(m.To.Node()) != topology.Forwarder:
			return nil, fmt.Errorf("%w: %q is not a forwarding node of %s", remap.ErrInvalid, m.To, s.Machine.Name)
		case seen[m.Node]:
			return nil, fmt.Errorf("%w: %q is moved twice", remap.ErrInvalid, m.Node)
		case m.From != "" && m.From != s.Observed[m.Node]:
			return nil, fmt.Errorf("%w: %q is on %s, not on %s", remap.ErrInvalid, m.Node,
				orUnknown(s.Observed[m.Node]),
				m.From)
		}
		seen[m.Node] = true
		moves[i].From = s.Observed[m.Node]
	}
	return moves, nil
}

// digest is what an idempotency key is bound to.
func digest(verb string, body any) string {
	b, err := json.Marshal(body)
	if err != nil {
		panic("BUG: request cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(append([]byte(verb+" "), b...))
	return hex.EncodeToString(sum[:16])
}

// Preview says what approving the plan would do now. Errors: ErrNotFound.
func (d *Desk) Preview(ctx context.Context, by remap.Person, id string) (remap.Preview, error) {
	var p remap.Plan
	var others []remap.Plan
	err := d.do(ctx, func() error {
		e, err := d.book.get(id)
		if err != nil {
			return err
		}
		p = d.book.whole(e)
		others = d.movingPlans()
		return nil
	})
	if err != nil {
		return remap.Preview{}, err
	}
	v := makePreview(p, d.situation(), others, d.set)
	if p.State == remap.Proposed {
		d.askDriver(ctx, &v)
	}
	seal(&v)
	v.MayApprove = mayApprove(by, &v, d.set)
	v.Options = remap.PlanOptions(by, p.State, v.MayApprove)
	if p.State == remap.Proposed {
		err = d.do(ctx, func() error { d.remember(v); return nil })
	}
	return v, err
}

// movingPlans returns the plans that others may collide with.
func (d *Desk) movingPlans() (plans []remap.Plan) {
	for e := range d.book.unfinished {
		if e.State.Moving() {
			plans = append(plans, remap.Plan{ID: e.ID, State: e.State, Moves: e.Moves})
		}
	}
	return plans
}

// askDriver adds what the driver says of the plan.
func (d *Desk) askDriver(ctx context.Context, v *remap.Preview) {
	lines, err := d.driver.Preview(ctx, v.Plan)
	if err != nil {
		v.Checks = append(v.Checks, oneCheck("driver", remap.Red, err.Error())...)
		return
	}
	v.Lines = append(v.Lines, lines...)
	v.Checks = append(v.Checks, oneCheck("driver", remap.Green, "the nodes can be told")...)
}

// shownPreviews is how many previews of a plan are remembered to say what changed since.
const shownPreviews = 8

func (d *Desk) remember(v remap.Preview) {
	have := d.shown[v.Plan.ID]
	if slices.ContainsFunc(have, func(o remap.Preview) bool { return o.Hash == v.Hash }) {
		return
	}
	have = append(have, v)
	d.shown[v.Plan.ID] = have[max(0, len(have)-shownPreviews):]
}

// mayApprove says why by may not approve what v shows; "" when nothing is against it.
func mayApprove(by remap.Person, v *remap.Preview, set Settings) string {
	p := &v.Plan
	switch {
	case p.State != remap.Proposed:
		return p.State.Refuses(remap.ActApprove)
	case set.Mode == remap.ModeObserve:
		return "desk.mode is observe: plans are proposed and not applied"
	case by.May(remap.Operator, "approving") != nil:
		return by.May(remap.Operator, "approving").Error()
	case by.Name == p.Proposer && !set.SelfApproval:
		return "you proposed it"
	case slices.ContainsFunc(p.Approvals, func(a remap.Approval) bool { return a.By == by.Name && a.Hash == v.Hash }):
		return "you approved it already; somebody else must too"
	}
	if red := red(v); len(red) > 0 {
		return red[0]
	}
	return ""
}

// Approve says yes to the preview behind a.Hash. With the last yes that the plan needs it is
// applied. Errors: ErrNotFound, ErrChanged (with what changed), ErrNotAllowed, ErrState,
// ErrInvalid (reason), ErrConflict.
func (d *Desk) Approve(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	if p, again, err := d.answered(ctx, by, remap.ActApprove, id, a); again || err != nil {
		return p, err
	}
	if err := mayAsk(by, remap.ActApprove, id, a); err != nil {
		return remap.Plan{}, err
	}
	v, err := d.Preview(ctx, by, id)
	if err != nil {
		return remap.Plan{}, err
	}
	frozen := d.situation().Freeze(v.Plan.Moves)
	return d.act(ctx, by, remap.ActApprove, id, a, func(e *entry, now time.Time) (*journal.Record, error) {
		if !now.Before(e.Expires) {
			return nil, fmt.Errorf("plan %s: %w: it expired at %s", id, remap.ErrState, e.Expires.Format(time.TimeOnly))
		}
		if err := d.mayApproveNow(by, e, &v, a.Hash); err != nil {
			return nil, err
		}
		r := &journal.Record{Kind: journal.StepApprove, Frozen: &frozen,
			Approval: &remap.Approval{By: by.Name, Via: by.Via, At: now, Hash: a.Hash, Reason: a.Reason}}
		if approvals(e, a.Hash)+1 >= v.Needs {
			start := now.Add(d.set.ApprovalTTL)
			r.State, r.Moves, r.Expires = remap.Approved, v.Plan.Moves, &start
		}
		return r, nil
	})
}

// mayApproveNow is every rule between a person's yes and the record of it.
func (d *Desk) mayApproveNow(by remap.Person, e *entry, v *remap.Preview, hash string) error {
	if hash != v.Hash {
		return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrChanged, d.sinceShown(v, hash))
	}
	if by.Name == e.Proposer && !d.set.SelfApproval {
		return fmt.Errorf("plan %s: %w: %s proposed it, somebody else approves it (or set desk.self_approval)", e.ID,
			remap.ErrNotAllowed, by.Name)
	}
	now := *v
	now.Plan.Approvals = e.Approvals
	if why := mayApprove(by, &now, d.set); why != "" {
		return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrState, why)
	}
	if by.Via == remap.ViaRule && d.ruledSince(time.Now().Add(-time.Minute)) >= d.set.PlansPerMinute {
		return fmt.Errorf("plan %s: %w: %d plans a minute are approved by rule (desk.plans_per_minute)", e.ID,
			remap.ErrState,
			d.set.PlansPerMinute)
	}
	// A plan approved since the preview was made may have taken a node or a forwarder.
	for _, c := range checkOthers(v.Plan, d.movingPlans()) {
		if c.Level == remap.Red {
			return fmt.Errorf("plan %s: %w: %s", e.ID, remap.ErrState, c.Text)
		}
	}
	owners, targets := d.Owners(), remap.Targets(v.Plan.Moves)
	for _, f := range targets {
		if job, owned := owners[f]; owned && job != v.Plan.Job {
			return fmt.Errorf("plan %s: %w: %s is dedicated to job %s", e.ID, remap.ErrState, f, job)
		}
	}
	if left := d.situation().ForEverybody(owners, targets); v.Plan.Dedicated && left < d.set.HealthyFloor {
		return fmt.Errorf("plan %s: %w: %d healthy forwarders would be left for everybody, the floor is %d", e.ID,
			remap.ErrState, left, d.set.HealthyFloor)
	}
	return nil
}

func (d *Desk) sinceShown(v *remap.Preview, hash string) string {
	for _, old := range d.shown[v.Plan.ID] {
		if old.Hash == hash {
			return diff(v, &old)
		}
	}
	return "the approval is for another preview; read it again"
}

// approvals counts the different people who said yes to the same preview.
func approvals(e *entry, hash string) int {
	people := map[string]bool{}
	for _, a := range e.Approvals {
		if a.Hash == hash {
			people[a.By] = true
		}
	}
	return len(people)
}

// Reject ends a plan that has not begun. Errors: ErrNotFound, ErrNotAllowed, ErrState, ErrConflict.
func (d *Desk) Reject(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActReject, id, a, func(*entry, time.Time) (*journal.Record, error) {
		return &journal.Record{Kind: journal.StepReject, State: remap.Rejected}, nil
	})
}

// RollBack moves every node of the plan back to where it came from, also while the plan is being
// applied. Errors: ErrNotFound, ErrNotAllowed, ErrState (naming a later plan that moved a node
// on), ErrConflict.
func (d *Desk) RollBack(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.goBack(ctx, by, id, a, remap.RolledBack)
}

// Restore is RollBack at the end of the plan's job: the plan has served.
func (d *Desk) Restore(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.goBack(ctx, by, id, a, remap.Restored)
}

func (d *Desk) goBack(ctx context.Context, by remap.Person, id string, a remap.Answer,
	goal remap.PlanState) (remap.Plan, error) {
	verb := remap.ActRollBack
	if goal == remap.Restored {
		verb = remap.ActRestore
	}
	return d.act(ctx, by, verb, id, a, func(e *entry, _ time.Time) (*journal.Record, error) {
		if later, n := d.movedOn(e); later != "" {
			return nil, fmt.Errorf("plan %s: %w: %s was moved on by %s; roll that back first", id, remap.ErrState, n,
				later)
		}
		return &journal.Record{Kind: journal.StepRollBack, State: remap.RollingBack, Goal: goal}, nil
	})
}

// movedOn finds a later plan that holds a node of e.
func (d *Desk) movedOn(e *entry) (plan string, node topology.NodeID) {
	mine := map[topology.NodeID]bool{}
	for _, m := range e.Moves {
		mine[m.Node] = true
	}
	for o := range d.book.unfinished {
		if o.ID == e.ID || !o.State.Holds() || !o.ApprovedAt().After(e.ApprovedAt()) {
			continue
		}
		for _, m := range o.Moves {
			if mine[m.Node] {
				return o.ID, m.Node
			}
		}
	}
	return "", ""
}

// Complete tries the moves of a partial or failed plan again that have not been made. Errors:
// ErrNotFound, ErrNotAllowed, ErrState, ErrConflict.
func (d *Desk) Complete(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActComplete, id, a, func(e *entry, _ time.Time) (*journal.Record, error) {
		for _, c := range checkOthers(e.Plan, d.movingPlans()) {
			if c.Level == remap.Red {
				return nil, fmt.Errorf("plan %s: %w: %s", id, remap.ErrState, c.Text)
			}
		}
		return &journal.Record{Kind: journal.StepComplete, State: remap.Applying}, nil
	})
}

// Stop ends an apply after the orders under way; the plan is then partial or failed. Errors:
// ErrNotFound, ErrNotAllowed, ErrState, ErrConflict.
func (d *Desk) Stop(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error) {
	return d.act(ctx, by, remap.ActStop, id, a, func(*entry, time.Time) (*journal.Record, error) {
		return &journal.Record{Kind: journal.StepStop}, nil
	})
}

// answered looks up whether this very answer was given before.
func (d *Desk) answered(ctx context.Context, by remap.Person, verb remap.Action, id string,
	a remap.Answer) (p remap.Plan,
	again bool, err error) {
	if a.Key == "" {
		return remap.Plan{}, false, nil
	}
	err = d.do(ctx, func() error {
		if _, again, err = d.book.used(by, a.Key, answerDigest(verb, id, a)); again && err == nil {
			p = d.book.whole(d.book.plans[id])
		}
		return err
	})
	return p, again, err
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
func (d *Desk) act(ctx context.Context, by remap.Person, verb remap.Action, id string, a remap.Answer,
	rule func(*entry, time.Time) (*journal.Record, error)) (p remap.Plan, err error) {
	if err := mayAsk(by, verb, id, a); err != nil {
		return remap.Plan{}, err
	}
	err = d.do(ctx, func() error {
		e, err := d.book.get(id)
		if err != nil {
			return err
		}
		body := answerDigest(verb, id, a)
		_, again, err := d.book.used(by, a.Key, body)
		if err != nil || again {
			p = d.book.whole(e)
			return err
		}
		if why := e.State.Refuses(verb); why != "" {
			return fmt.Errorf("plan %s: %w: %s", id, remap.ErrState, why)
		}
		now := time.Now().UTC()
		r, err := rule(e, now)
		if err != nil {
			return err
		}
		r.At, r.Plan, r.Actor, r.Role, r.Via, r.Reason, r.Key, r.Body = now, id, by.Name, by.Role, by.Via, a.Reason,
			a.Key, body
		if err := d.record(r); err != nil {
			return err
		}
		d.follow(e, r.Kind)
		p = d.book.whole(e)
		return nil
	})
	return p, err
}
