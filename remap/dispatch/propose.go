package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/policy/avoid"
	"fairway/remap/policy/dfra"
	"fairway/remap/policy/mckp"
	"fairway/tsdb/history"
)

// proposer puts the plans of jobs that start on the desk.
type proposer struct{ *Dispatcher }

// propose puts the plan on the desk and says in a how that went.
func (d proposer) propose(ctx context.Context, r *Request, j *job, moves []remap.Move, p *history.Prediction,
	a *Answer) {
	asks := &remap.Request{
		Key: fmt.Sprintf("dispatch/%s/%d", r.Job, j.run.Start.UnixNano()),
		Job: string(r.Job), App: r.App, User: r.User, Moves: moves, Reason: reason(d.cfg.Name, &a.Decision),
		Dedicated: a.Decision.Action != dfra.Default, Ledger: d.ledger(j, p, &a.Decision),
	}
	plan, err := d.cfg.Desk.Propose(ctx, remap.PolicyPerson(d.cfg.Name), *asks)
	if err != nil {
		a.Refused = err.Error()
		if d.underWay(asks) {
			j.asks = asks
		}
		d.log.Warn("the plan for a job was not made; it starts where its nodes are", "job", r.Job, "err", err)
		return
	}
	a.Plan, a.State = plan.ID, plan.State
}

// underWay says whether plans are bringing nodes of a request somewhere, as when the job before has just ended.
func (d proposer) underWay(asks *remap.Request) bool {
	promises := d.cfg.Desk.Promises()
	return slices.ContainsFunc(asks.Moves, func(m remap.Move) bool { return promises[m.Node] != "" })
}

// askAgain puts the plans on the desk that had to wait until others had moved their nodes.
func (d proposer) askAgain(ctx context.Context) {
	d.deciding.Lock()
	defer d.deciding.Unlock()
	d.mu.RLock()
	var waiting []*job
	for _, j := range d.jobs {
		if j.asks != nil && !d.underWay(j.asks) {
			waiting = append(waiting, j)
		}
	}
	d.mu.RUnlock()
	for _, j := range waiting {
		plan, err := d.cfg.Desk.Propose(ctx, remap.PolicyPerson(d.cfg.Name), *j.asks)
		d.mu.Lock()
		j.asks = nil
		if answer := *j.answer; err == nil {
			answer.Plan, answer.State, answer.Refused = plan.ID, plan.State, ""
			j.answer = &answer
		}
		d.mu.Unlock()
		if err != nil {
			d.log.Warn("the plan for a job was not made", "job", j.run.Job, "err", err)
		}
	}
}

// reason is the decision in a sentence for the audit.
func reason(policy string, d *dfra.Decision) string {
	text, last := fmt.Sprintf("%s: %s on %s", policy, d.Action, anomaly.Counted(d.Count, "forwarder")), ""
	if n := len(d.Reasons); n > 0 {
		last = d.Reasons[n-1].Text
	}
	switch {
	case last == "":
		return text
	case d.Action == dfra.Default: // nothing is granted: the reason is all there is
		return last
	}
	return text + "; " + last
}

// Policy decides one case; it is a pure function.
type Policy func(dfra.Case) dfra.Decision

// Choice is a policy that a site can choose.
type Choice struct {
	Name   string
	Decide Policy
	// Arbitrates says that it looks at the jobs that start within the same minute together.
	Arbitrates bool
}

// Policies are those that a site can choose, the default first; harm is how much slower than on its default mapping
// mckp may make a job (mckp.Policy). Adding one is a row.
func Policies(harm float64) []Choice {
	return []Choice{{"dfra", dfra.Decide, false}, {"mckp", mckp.Policy(harm), true}, {"avoid", avoid.Decide, false}}
}

// PolicyNames are the names of Policies, as a text has them.
func PolicyNames() string {
	var names []string
	for _, p := range Policies(0) {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// PolicyByName returns one of Policies.
func PolicyByName(name string, harm float64) (Policy, error) {
	for _, p := range Policies(harm) {
		if p.Name == name {
			return p.Decide, nil
		}
	}
	return nil, fmt.Errorf("policy = %q: want one of %s", name, PolicyNames())
}
