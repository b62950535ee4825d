package remap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mode says how far the desk goes by itself.
type Mode string

// The modes.
const (
	ModeObserve Mode = "observe" // plans are proposed, none is applied
	ModeApprove Mode = "approve" // a person says yes, for a plan or for an application once and for all
	ModeAuto    Mode = "auto"    // plans of policies are approved by rule, within the guard rails
)

// ViaPolicy is the door of a policy: what proposes under it may be approved by rule.
const ViaPolicy = "policy"

// ViaRule is the door of an approval that no person gave in that moment.
const ViaRule = "rule"

// Standing is a person's yes to every plan of a policy for an application, given beforehand.
type Standing struct {
	ID     string    `json:"id"`
	App    string    `json:"app"`
	User   string    `json:"user,omitempty"` // empty: of every user
	By     string    `json:"by"`
	Via    string    `json:"via,omitempty"` // the door that By came through
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	// Lapsed says why it does not hold at present, of one that is listed.
	Lapsed string `json:"lapsed,omitempty"`
}

// MaxStanding bounds how long a standing approval holds: somebody looks at it once in a while.
const MaxStanding = 366 * 24 * time.Hour

// The steps of a standing approval.
const (
	StepAllow  RecordKind = "allow"
	StepRevoke RecordKind = "revoke"
)

// standings are the book's standing approvals.
type standings struct {
	of   []Standing // in force or run out, not revoked
	made int
}

// take makes one record true.
func (s *standings) take(r *Record) error {
	if r.Standing == nil {
		return fmt.Errorf("%s without a standing approval", r.Kind)
	}
	if r.Kind == StepAllow {
		s.made++
		o := *r.Standing
		o.Via = cmp.Or(o.Via, r.Via) // older journals say it beside
		s.of = append(s.of, o)
		return nil
	}
	n := len(s.of)
	s.of = slices.DeleteFunc(s.of, func(o Standing) bool { return o.ID == r.Standing.ID })
	if len(s.of) == n {
		return fmt.Errorf("%s is revoked and was not in force", r.Standing.ID)
	}
	return nil
}

// covering returns the standing approvals that cover a job of app and user at now, the oldest first.
func (s *standings) covering(app, user string, now time.Time) (out []Standing) {
	for _, o := range s.of {
		if app != "" && o.App == app && (o.User == "" || o.User == user) && now.Before(o.Until) {
			out = append(out, o)
		}
	}
	return out
}

// Allow approves, for ttl, every plan that a policy proposes for an application of a user (empty:
// of all). Guard rails still hold. Errors: ErrNotAllowed, ErrInvalid, ErrConflict.
func (d *Desk) Allow(ctx context.Context, by Person, app, user string, ttl time.Duration, a Answer) (out Standing,
	err error) {
	if err := by.may(Operator, "a standing approval"); err != nil {
		return out, err
	}
	if err := checkReason(a.Reason); err != nil {
		return out, err
	}
	if app == "" || checkText(app+user) != nil {
		return out, fmt.Errorf("%w: a standing approval for application %q of user %q: an application is needed",
			ErrInvalid, app, user)
	}
	if ttl < time.Minute || ttl > MaxStanding {
		return out, fmt.Errorf("%w: a standing approval for %s: want 1m to %s", ErrInvalid, ttl, MaxStanding)
	}
	body := digest("allow", []any{app, user, ttl, a.Reason})
	err = d.do(ctx, func() error {
		id, again, err := d.book.used(by, a.Key, body)
		if err == nil && !again {
			now := time.Now().UTC()
			id = fmt.Sprintf("S-%04d", d.book.standings.made+1)
			err = d.record(&Record{At: now, Kind: StepAllow, Plan: id, Actor: by.Name, Role: by.Role, Via: by.Via,
				Reason: a.Reason,
				Key:    a.Key, Body: body, Standing: &Standing{ID: id, App: app, User: user, By: by.Name, Via: by.Via,
					Reason: a.Reason, Since: now, Until: now.Add(ttl)}})
		}
		if err != nil {
			return err
		}
		i := slices.IndexFunc(d.book.standings.of, func(o Standing) bool { return o.ID == id })
		if i < 0 {
			return fmt.Errorf("standing approval %s: %w: this request was answered before, and it was revoked since",
				id, ErrState)
		}
		out = d.book.standings.of[i]
		return nil
	})
	return out, err
}

// Revoke ends a standing approval; plans approved by it stay. Errors: ErrNotAllowed, ErrInvalid (reason),
// ErrNotFound, ErrConflict.
func (d *Desk) Revoke(ctx context.Context, by Person, id string, a Answer) error {
	if err := by.may(Operator, "revoking a standing approval"); err != nil {
		return err
	}
	if err := checkText(a.Reason); err != nil {
		return err
	}
	body := digest("revoke", []any{id, a.Reason})
	return d.do(ctx, func() error {
		if _, again, err := d.book.used(by, a.Key, body); err != nil || again {
			return err
		}
		i := slices.IndexFunc(d.book.standings.of, func(o Standing) bool { return o.ID == id })
		if i < 0 {
			return fmt.Errorf("standing approval %q: %w", id, ErrNotFound)
		}
		s := d.book.standings.of[i]
		return d.record(&Record{At: time.Now().UTC(), Kind: StepRevoke, Plan: id, Actor: by.Name, Role: by.Role,
			Via: by.Via, Reason: a.Reason,
			Key: a.Key, Body: body, Standing: &s})
	})
}

// stillHeld says whether who gave a standing approval may still give it. Where the door does not know a
// person's role between sign-ins it holds, and note says so.
func (d *Desk) stillHeld(s *Standing) (lapsed, note string) {
	if d.roleOf == nil {
		return "", ""
	}
	switch role, known := d.roleOf(s.By, s.Via); {
	case !known:
		return "", fmt.Sprintf("; whether %s is an operator still is known at the next sign-in only", s.By)
	case role.Includes(Operator):
		return "", ""
	case role == "":
		return fmt.Sprintf("%s, who gave it, has no role any more", s.By), ""
	default:
		return fmt.Sprintf("%s, who gave it, is a %s now", s.By, role), ""
	}
}

// Standing returns the standing approvals that have not run out, the oldest first; none is an empty list.
func (d *Desk) Standing(ctx context.Context) (out []Standing, err error) {
	out = []Standing{}
	err = d.do(ctx, func() error {
		now := time.Now()
		for _, s := range d.book.standings.of {
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

// approveByRule approves a policy's plan where the mode or a standing approval allows it, within
// the guard rails: every check green, one approval enough, and not too many plans a minute. Where
// one of them is against it the plan waits for a person like any other.
func (d *Desk) approveByRule(ctx context.Context, p Plan) (Plan, error) {
	rule, reason, err := d.rule(ctx, &p)
	if err != nil || rule.Name == "" {
		return p, err
	}
	v, err := d.Preview(ctx, rule, p.ID)
	if err != nil || v.Needs > 1 || v.MayApprove != "" ||
		slices.ContainsFunc(v.Checks, func(c Check) bool { return c.Level != Green }) {
		return p, err
	}
	approved, err := d.Approve(ctx, rule, p.ID, Answer{Hash: v.Hash, Reason: shortenText(reason, maxReason)})
	if errors.Is(err, ErrState) || errors.Is(err, ErrChanged) {
		return p, nil // something came in between: the plan waits for a person
	}
	return approved, err
}

// rule says who approves a policy's plan beforehand, and why; nobody where the name is empty. A standing
// approval holds while its giver has the role; another one may then cover the plan, or the mode.
func (d *Desk) rule(ctx context.Context, p *Plan) (by Person, reason string, err error) {
	if d.set.Mode == ModeObserve {
		return by, "", nil
	}
	var given []Standing
	err = d.do(ctx, func() error {
		given = d.book.standings.covering(p.App, p.User, time.Now())
		return nil
	})
	for i := range given { // the role may be asked of a directory: the desk does not wait for it
		s := &given[i]
		lapsed, note := d.stillHeld(s)
		if lapsed == "" {
			return Person{Name: s.By, Role: Operator, Via: ViaRule}, "standing approval " + s.ID + ": " + s.Reason +
				note, err
		}
		d.log.Warn("a standing approval does not hold; a person with the role must give it again", "standing", s.ID,
			"plan", p.ID, "why", lapsed)
	}
	if d.set.Mode == ModeAuto {
		by, reason = Person{Name: "auto", Role: Operator, Via: ViaRule}, "desk.mode is auto"
	}
	return by, reason, err
}

// ruledSince counts the plans that were approved by rule since then.
func (d *Desk) ruledSince(then time.Time) (n int) {
	for _, id := range slices.Backward(d.book.order) {
		e := d.book.plans[id]
		if e.Created.Before(then) {
			return n // older ones were approved when they were proposed, if by rule
		}
		if slices.ContainsFunc(e.Approvals, func(a Approval) bool { return a.Via == ViaRule }) {
			n++
		}
	}
	return n
}

func shortenText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
