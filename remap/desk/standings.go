package desk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/remap"
	"fairway/remap/journal"
)

// standingTable is the state of standing approvals.
type standingTable struct {
	of   []remap.Standing // in force or run out, not revoked
	made int
}

// find returns the place of a standing approval, -1 for one that is not there.
func (s *standingTable) find(id string) int {
	return slices.IndexFunc(s.of, func(o remap.Standing) bool { return o.ID == id })
}

// check says why a record does not follow from the state and a draft of the batch before it.
func (s *standingTable) check(r *journal.Record, d *draft) error {
	if r.Standing == nil {
		return fmt.Errorf("%s without a standing approval", r.Kind)
	}
	held, drafted := d.standing[r.Standing.ID]
	if !drafted {
		held = s.find(r.Standing.ID) >= 0
	}
	if r.Kind == journal.StepRevoke && !held {
		return fmt.Errorf("%s is revoked and was not in force", r.Standing.ID)
	}
	return nil
}

// take makes a checked record part of the state.
func (s *standingTable) take(r *journal.Record) {
	if r.Kind == journal.StepRevoke {
		s.of = slices.DeleteFunc(s.of, func(o remap.Standing) bool { return o.ID == r.Standing.ID })
		return
	}
	s.made++
	var n int
	if _, err := fmt.Sscanf(r.Standing.ID, "S-%d", &n); err == nil {
		s.made = max(s.made, n) // earlier ones may be in segments of the journal
	}
	o := *r.Standing
	o.Via = cmp.Or(o.Via, r.Via) // older journals have it in the record alone
	s.of = append(s.of, o)
}

// covering returns the standing approvals that cover a job of app and user at now, the oldest first.
func (s *standingTable) covering(app, user string, now time.Time) (out []remap.Standing) {
	for _, o := range s.of {
		if app != "" && o.App == app && (o.User == "" || o.User == user) && now.Before(o.Until) {
			out = append(out, o)
		}
	}
	return out
}

// standings are approvals that people give beforehand.
type standings struct {
	cfg *Config
	rec *recorder
}

// Allow approves, for ttl, every plan that a policy proposes for an application of a user (empty:
// of all). Guard rails still hold. Errors: ErrNotAllowed, ErrInvalid, ErrConflict.
func (d *standings) Allow(ctx context.Context, by remap.Person, app, user string, ttl time.Duration,
	a remap.Answer) (out remap.Standing,
	err error) {
	if err := by.May(remap.Operator, "a standing approval"); err != nil {
		return out, err
	}
	if err := remap.CheckReason(a.Reason); err != nil {
		return out, err
	}
	if app == "" || remap.CheckText(app+user) != nil {
		return out, fmt.Errorf("%w: a standing approval for application %q of user %q: an application is needed",
			remap.ErrInvalid, app, user)
	}
	if ttl < time.Minute || ttl > remap.MaxStanding {
		return out, fmt.Errorf("%w: a standing approval for %s: want 1m to %s", remap.ErrInvalid, ttl,
			remap.MaxStanding)
	}
	body := digest("allow", []any{app, user, ttl, a.Reason})
	err = d.rec.do(ctx, func() error {
		id, again, err := d.rec.state.keys.used(by, a.Key, body)
		if err == nil && !again {
			now := time.Now().UTC()
			id = fmt.Sprintf("S-%04d", d.rec.state.standings.made+1)
			err = d.rec.recordFor(by, a, body, &journal.Record{At: now, Kind: journal.StepAllow, Plan: id,
				Standing: &remap.Standing{ID: id, App: app, User: user, By: by.Name,
					Via:    by.Via,
					Reason: a.Reason, Since: now, Until: now.Add(ttl)}})
		}
		if err != nil {
			return err
		}
		i := d.rec.state.standings.find(id)
		if i < 0 {
			return fmt.Errorf("standing approval %s: %w: this request was answered before, and it was revoked since",
				id, remap.ErrState)
		}
		out = d.rec.state.standings.of[i]
		return nil
	})
	return out, err
}

// Revoke ends a standing approval; plans approved by it stay. Errors: ErrNotAllowed, ErrInvalid (reason),
// ErrNotFound, ErrConflict.
func (d *standings) Revoke(ctx context.Context, by remap.Person, id string, a remap.Answer) error {
	if err := by.May(remap.Operator, "revoking a standing approval"); err != nil {
		return err
	}
	if err := remap.CheckText(a.Reason); err != nil {
		return err
	}
	body := digest("revoke", []any{id, a.Reason})
	return d.rec.do(ctx, func() error {
		if _, again, err := d.rec.state.keys.used(by, a.Key, body); err != nil || again {
			return err
		}
		i := d.rec.state.standings.find(id)
		if i < 0 {
			return fmt.Errorf("standing approval %q: %w", id, remap.ErrNotFound)
		}
		s := d.rec.state.standings.of[i]
		return d.rec.recordFor(by, a, body, &journal.Record{Kind: journal.StepRevoke, Plan: id, Standing: &s})
	})
}

// stillHeld says whether who gave a standing approval may still give it. Where the listener does not know a
// person's role between sign-ins it holds, and note says so.
func (d *standings) stillHeld(s *remap.Standing) (lapsed, note string) {
	if d.cfg.RoleOf == nil {
		return "", ""
	}
	switch role, known := d.cfg.RoleOf(s.By, s.Via); {
	case !known:
		return "", fmt.Sprintf("; whether %s is an operator still is known at the next sign-in only", s.By)
	case role.Includes(remap.Operator):
		return "", ""
	case role == "":
		return fmt.Sprintf("%s, who gave it, has no role any more", s.By), ""
	default:
		return fmt.Sprintf("%s, who gave it, is a %s now", s.By, role), ""
	}
}

// Standing returns the standing approvals that have not run out, the oldest first; none is an empty list.
func (d *standings) Standing(ctx context.Context) (out []remap.Standing, err error) {
	out = []remap.Standing{}
	err = d.rec.do(ctx, func() error {
		now := time.Now()
		for _, s := range d.rec.state.standings.of {
			if now.Before(s.Until) {
				out = append(out, s)
			}
		}
		return nil
	})
	for i := range out {
		out[i].Lapsed, _ = d.stillHeld(&out[i])
	}
	return out, err
}

// rule says who approves a policy's plan beforehand, and why; nobody where the name is empty. A standing
// approval holds while its giver has the role; another one may then cover the plan, or the mode. act says that the
// rule which proposed the plan approves it, too.
func (d *standings) rule(ctx context.Context, p *remap.Plan, act bool) (by remap.Person, reason string, err error) {
	switch {
	case d.cfg.Settings.Mode == remap.ModeObserve, p.Limits(): // who let a job be moved did not let it be slowed
		return by, "", nil
	case act:
		return remap.Person{Name: "rule " + p.Rule, Role: remap.Operator, Via: remap.ViaRule},
			"the site's rule " + p.Rule + " acts", nil
	}
	var given []remap.Standing
	err = d.rec.do(ctx, func() error {
		given = d.rec.state.standings.covering(p.App, p.User, time.Now())
		return nil
	})
	for i := range given { // the role may be asked of a directory: the desk does not wait for it
		s := &given[i]
		lapsed, note := d.stillHeld(s)
		if lapsed == "" {
			return remap.Person{Name: s.By, Role: remap.Operator, Via: remap.ViaRule},
				"standing approval " + s.ID + ": " + s.Reason +
					note, err
		}
		d.rec.log.Warn("a standing approval does not hold; a person with the role must give it again", "standing", s.ID,
			"plan", p.ID, "why", lapsed)
	}
	if d.cfg.Settings.Mode == remap.ModeAuto {
		by, reason = remap.Person{Name: "auto", Role: remap.Operator, Via: remap.ViaRule}, "desk.mode is auto"
	}
	return by, reason, err
}
