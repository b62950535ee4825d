package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/collector/topology"
	"fairway/remap"
)

// Preview says what approving the plan would do now. Errors: ErrNotFound.
func (d *answers) Preview(ctx context.Context, by remap.Person, id string) (remap.Preview, error) {
	v, err := d.preview(ctx, by, id)
	if err == nil {
		v.Options = remap.PlanOptions(by, v.Plan.State, v.MayApprove)
	}
	return v, err
}

// preview looks at a plan beside the others in the present situation, and asks the driver.
func (d *answers) preview(ctx context.Context, by remap.Person, id string) (remap.Preview, error) {
	var p remap.Plan
	var others []remap.Plan
	var promised, harm []remap.Check
	err := d.rec.do(ctx, func() error {
		t := &d.rec.state.plans
		e, err := t.get(id)
		if err == nil {
			p, others, harm = t.whole(e), t.moving(), checkHarm(t.lastJudged(&e.Plan))
			if p.State == remap.Proposed {
				promised = t.checkPromised(&p)
			}
		}
		return err
	})
	if err != nil {
		return remap.Preview{}, err
	}
	s, set := d.cfg.Situation(), &d.cfg.Settings
	p.Moves = slices.Clone(p.Moves)
	if p.State == remap.Proposed {
		for i := range p.Moves {
			s.From(&p.Moves[i])
		}
	}
	v := remap.Preview{Plan: p, Title: remap.Title(&p)}
	v.Lines = moveLines(p.Moves)
	v.Checks = slices.Concat(d.checksOf(&p, s, others), promised, harm)
	v.Frozen = s.Freeze(p.Moves)
	v.Needs = approvalsNeeded(v, set)
	if p.State == remap.Proposed {
		d.askDriver(ctx, &v)
	}
	seal(&v)
	v.MayApprove = mayApprove(by, &v, set)
	if p.State == remap.Proposed {
		d.remember(v)
	}
	return v, nil
}

// checksOf are the checks of a plan in a situation, beside the plans that others are moving nodes by.
func (d *answers) checksOf(p *remap.Plan, s *remap.Situation, others []remap.Plan) []remap.Check {
	if p.Limits() {
		return slices.Concat(d.cfg.checkLimited(p, s), checkOthers(*p, others))
	}
	targets, set := remap.Targets(p.Moves), &d.cfg.Settings
	return slices.Concat(
		checkFresh(targets, s),
		checkTargets(targets, *p, s),
		checkBackEnds(targets, *p, s),
		checkAlone(targets, *p, s),
		checkSources(*p, s),
		checkFloor(targets, *p, s, set),
		checkOthers(*p, others),
	)
}

// seal computes the hash of what is to be done, and behind it a mark of each doubt that is shown. The health of the
// moment does not change what was approved: a check that forbids does so whatever was approved, and a doubt has to
// have been seen by whoever approves last.
func seal(v *remap.Preview) {
	b, err := json.Marshal(struct {
		ID               string
		Job              topology.JobID
		Moves            []remap.Move
		Force, Dedicated bool
	}{v.Plan.ID, v.Plan.Job, v.Plan.Moves, v.Plan.Force, v.Plan.Dedicated})
	if err != nil {
		panic("BUG: preview cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(b)
	v.Hash = hex.EncodeToString(sum[:16])
	for _, c := range v.Checks {
		v.Hash += doubt(&c)
	}
}

// doubt is the mark of an amber check. Data that are late for a moment are as late at the next look: they have none.
func doubt(c *remap.Check) string {
	if c.Level != remap.Amber || c.Name == "fresh" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.Name))
	return "-" + hex.EncodeToString(sum[:4])
}

// movesHash is a preview's hash without its doubts: two people approve the same moves.
func movesHash(hash string) string {
	hash, _, _ = strings.Cut(hash, "-")
	return hash
}

// red returns the text of the first check that forbids a plan; empty: none does.
func red(checks []remap.Check) string {
	for _, c := range checks {
		if c.Level == remap.Red {
			return c.Text
		}
	}
	return ""
}

// approvalsNeeded is two for a big or doubtful plan (docs/plans.md).
func approvalsNeeded(v remap.Preview, set *Settings) int {
	amber := slices.ContainsFunc(v.Checks, func(c remap.Check) bool { return c.Level == remap.Amber })
	if set.TwoPersons && (amber || len(v.Plan.Moves) > set.BigPlan) {
		return 2
	}
	return 1
}

// askDriver adds what the driver says of the plan.
func (d *answers) askDriver(ctx context.Context, v *remap.Preview) {
	if v.Plan.Limits() {
		return // its checks have asked the queues
	}
	lines, err := d.cfg.Driver.Preview(ctx, v.Plan)
	if err != nil {
		v.Checks = append(v.Checks, oneCheck("driver", remap.Red, err.Error())...)
		return
	}
	v.Lines = append(v.Lines, lines...)
	v.Checks = append(v.Checks, oneCheck("driver", remap.Green, "the nodes can be reached")...)
}

// shownPreviews is how many previews of a plan are remembered to say what changed since.
const shownPreviews = 8

func (d *answers) remember(v remap.Preview) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have := d.shown[v.Plan.ID]
	if slices.ContainsFunc(have, func(o remap.Preview) bool { return o.Hash == v.Hash }) {
		return
	}
	have = append(have, v)
	d.shown[v.Plan.ID] = have[max(0, len(have)-shownPreviews):]
}

// forget drops the previews of plans that wait no more. It is called by the owner.
func (d *answers) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.shown,
		func(id string, _ []remap.Preview) bool { return d.rec.state.plans.of[id].State != remap.Proposed })
}

// mayApprove says why by may not approve what v shows; "" when nothing is against it.
func mayApprove(by remap.Person, v *remap.Preview, set *Settings) string {
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
	case slices.ContainsFunc(p.Approvals,
		func(a remap.Approval) bool { return a.By == by.Name && a.Hash == movesHash(v.Hash) }):
		return "you approved it already; somebody else must too"
	}
	return red(v.Checks)
}

// moveLines groups moves of the same way, in the order of their first node.
func moveLines(moves []remap.Move) []string {
	type way struct {
		from string
		to   topology.ForwarderID
	}
	var order []way
	lines := []string{}
	nodes := map[way][]topology.NodeID{}
	for _, m := range moves {
		if m.Limit > 0 {
			lines = append(lines, fmt.Sprintf("%s  %.2g %% at most while others ask for some", m.Node, 100*m.Limit))
			continue
		}
		w := way{fromText(m), m.To}
		if nodes[w] == nil {
			order = append(order, w)
		}
		nodes[w] = append(nodes[w], m.Node)
	}
	for _, w := range order {
		verb := fmt.Sprintf("  %s -> %s", w.from, w.to)
		if w.from == string(w.to) {
			verb = fmt.Sprintf("  stay on %s", w.to)
		}
		lines = append(lines, foldNodes(nodes[w])+verb)
	}
	return lines
}

// foldNodes names nodes in few letters, so that a narrow terminal shows the way behind them: as ranges, or the first
// ones where ranges are as long as all names.
func foldNodes(nodes []topology.NodeID) string {
	const most = 40 // letters
	if len(nodes) == 1 {
		return string(nodes[0])
	}
	if text := fmt.Sprintf("%s (%d)", topology.FoldHostList(nodes), len(nodes)); len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s %s and %d more", nodes[0], nodes[1], len(nodes)-2)
}

// shorten lists up to eight names.
func shorten[S ~string](names []S) string {
	const most = 8
	text := ""
	for _, n := range names[:min(most, len(names))] {
		text += " " + string(n)
	}
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return strings.TrimSpace(text)
}

// fromText says where a node comes from: one forwarder, or all that it spreads its traffic over.
func fromText(m remap.Move) string {
	if m.Spread != "" {
		return strings.ReplaceAll(m.Spread, ",", " + ")
	}
	return orUnknown(m.From)
}

func orUnknown(f topology.ForwarderID) string {
	if f == "" {
		return "(not known)"
	}
	return string(f)
}

// diff says in words how a preview differs from an older one.
func diff(v, old *remap.Preview) string {
	var out []string
	for i, m := range v.Plan.Moves {
		if i < len(old.Plan.Moves) && old.Plan.Moves[i] != m {
			out = append(out, fmt.Sprintf("%s was on %s and is on %s", m.Node, fromText(old.Plan.Moves[i]),
				fromText(m)))
		}
		if len(out) == 5 {
			out = append(out, "and more")
			break
		}
	}
	return strings.Join(out, "; ")
}
