package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
// a policy proposes, by a rule that people made. A plan that waits already and does the same is the answer to the
// second request, too. Errors: ErrInvalid (naming the node, forwarder or field), ErrNotAllowed, ErrConflict, and
// ErrState for a policy's plan that nobody could approve.
func (d *answers) Propose(ctx context.Context, by remap.Person, r remap.Request) (p remap.Plan, err error) {
	if err := by.May(remap.Operator, "proposing a plan"); err != nil {
		return remap.Plan{}, err
	}
	if err := remap.CheckText(r.Reason + r.Job + r.App + r.User); err != nil {
		return remap.Plan{}, err
	}
	s := d.cfg.Situation()
	moves, err := checkRequest(&r, s)
	if err != nil {
		return remap.Plan{}, err
	}
	body := digest("propose", remap.Request{Job: r.Job, App: r.App, User: r.User, Moves: r.Moves, Reason: r.Reason,
		Force: r.Force, Dedicated: r.Dedicated})
	st := d.rec.state
	err = d.rec.do(ctx, func() error {
		id, again, err := st.keys.used(by, r.Key, body)
		if err == nil && !again {
			now := time.Now().UTC()
			id, err = d.put(by, r.Key, body, s, &remap.Plan{
				ID: st.plans.nextID(), Job: topology.JobID(r.Job), App: r.App, User: r.User, Moves: moves,
				Reason: r.Reason, Proposer: by.Name, Created: now, Expires: now.Add(d.cfg.Settings.ProposalTTL),
				State: remap.Proposed, Changed: now, Force: r.Force, Dedicated: r.Dedicated, Ledger: r.Ledger,
				Rule: r.Rule, Frozen: s.Freeze(moves),
			})
		}
		if err == nil {
			p = st.plans.whole(st.plans.of[id])
		}
		return err
	})
	if err == nil && by.Via == remap.ViaPolicy && p.State == remap.Proposed {
		return d.approveByRule(ctx, p, r.Act)
	}
	return p, err
}

// put records a proposal and returns its number, or that of a waiting plan that does the same. A policy's plan with a
// red check is refused, and replaces the plans of policies that wait for the same nodes.
func (d *answers) put(by remap.Person, key, body string, s *remap.Situation, p *remap.Plan) (string, error) {
	plans := &d.rec.state.plans
	type end struct {
		to    topology.ForwarderID
		limit float64
	}
	goes := make(map[remap.Subject]end, len(p.Moves))
	for i := range p.Moves {
		goes[p.Subject(&p.Moves[i])] = end{p.Moves[i].To, p.Moves[i].Limit}
	}
	var recs []*journal.Record
	for _, w := range plans.waiting() {
		same := len(w.Moves) == len(p.Moves) && w.Dedicated == p.Dedicated && w.Force == p.Force && w.Job == p.Job &&
			everyMove(w, func(m *remap.Move) bool { return goes[w.Subject(m)] == end{m.To, m.Limit} })
		if same {
			return w.ID, nil
		}
		if by.Via == remap.ViaPolicy && w.ByPolicy() &&
			!everyMove(w, func(m *remap.Move) bool { return goes[w.Subject(m)] == end{} }) {
			recs = append(recs, withdrawal(w.ID, p.Created,
				fmt.Sprintf("superseded by %s, which moves some of the same nodes", p.ID)))
		}
	}
	if by.Via == remap.ViaPolicy {
		if why := red(d.checksOf(p, s, plans.moving())); why != "" {
			return "", fmt.Errorf("%w: %s", remap.ErrState, why)
		}
	}
	recs = append(recs, &journal.Record{At: p.Created, Kind: journal.StepPropose, Plan: p.ID, Proposed: p,
		Actor: by.Name, Role: by.Role, Via: by.Via, Reason: p.Reason, Key: key, Body: body})
	return p.ID, d.rec.record(recs...)
}

// approveByRule approves a policy's plan where the mode or a standing approval allows it, within
// the guard rails: every check green, one approval enough, and not too many plans a minute. Where
// one of them stands against it the plan waits for a person like any other. act says that p's own rule approves it.
func (d *answers) approveByRule(ctx context.Context, p remap.Plan, act bool) (remap.Plan, error) {
	rule, reason, err := d.standings.rule(ctx, &p, act)
	if err != nil || rule.Name == "" {
		return p, err
	}
	v, err := d.preview(ctx, rule, p.ID)
	if err != nil || v.Needs > 1 || v.MayApprove != "" ||
		slices.ContainsFunc(v.Checks, func(c remap.Check) bool { return c.Level != remap.Green }) {
		return p, err
	}
	approved, err := d.approve(ctx, rule, p.ID, remap.Answer{Hash: v.Hash, Reason: remap.ShortenReason(reason)}, &v)
	if errors.Is(err, remap.ErrState) || errors.Is(err, remap.ErrChanged) {
		return p, nil // something came in between: the plan waits for a person
	}
	return approved, err
}

// checkRequest returns the moves with their present forwarders, or what is wrong with the request.
func checkRequest(r *remap.Request, s *remap.Situation) ([]remap.Move, error) {
	switch n := len(r.Moves); {
	case n == 0:
		return nil, fmt.Errorf("%w: no compute node to move", remap.ErrInvalid)
	case n > maxMoves:
		return nil, fmt.Errorf("%w: %d moves, at most %d", remap.ErrInvalid, n, maxMoves)
	case r.Moves[0].Limit != 0:
		return checkLimits(r, s)
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
		s.From(&moves[i])
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

// keyTable remembers what idempotency keys were used for.
type keyTable map[string]keyUse

type keyUse struct {
	body, plan string
	at         time.Time
}

// keyLife is how long a used idempotency key is remembered.
const keyLife = 24 * time.Hour

func (t keyTable) take(r *journal.Record) {
	if r.Key != "" {
		t[r.Actor+"\x00"+r.Key] = keyUse{body: r.Body, plan: r.Plan, at: r.At}
	}
}

// used looks an idempotency key up: the plan it acted on, or ErrConflict.
func (t keyTable) used(by remap.Person, key, body string) (plan string, ok bool, err error) {
	u, ok := t[by.Name+"\x00"+key]
	if key == "" || !ok {
		return "", false, nil
	}
	if u.body != body {
		return "", false, fmt.Errorf("%w: key %q of %s belongs to plan %s", remap.ErrConflict, key, by.Name, u.plan)
	}
	return u.plan, true, nil
}

// forget drops idempotency keys older than their life.
func (t keyTable) forget(now time.Time) {
	for k, u := range t {
		if now.Sub(u.at) > keyLife {
			delete(t, k)
		}
	}
}
