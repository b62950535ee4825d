package evacuate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Desk is what the policy needs of the desk.
type Desk interface {
	Propose(ctx context.Context, by remap.Person, r remap.Request) (remap.Plan, error)
	Withdraw(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error)
	Complete(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error)
	Restore(ctx context.Context, by remap.Person, id string, a remap.Answer) (remap.Plan, error)
	Plans(ctx context.Context, limit int) ([]remap.Plan, error)
	Watch(buffer int) (changed <-chan string, stop func())
	Claims() map[topology.ForwarderID]topology.JobID
	Promised() map[topology.ForwarderID]string
}

// Config is what the policy works with.
type Config struct {
	Desk      Desk
	Situation func() *remap.Situation
	Rules     []Rule
	// Demand is Case.Demand.
	Demand func(*remap.Job) *float64
	// CanLimit is Case.CanLimit.
	CanLimit func(topology.NodeID) string
	// Running returns the jobs that ran at an instant.
	Running func(time.Time) ([]remap.Job, error)
	Log     *slog.Logger // nil: discard
}

// Policy looks after running jobs. Its methods may be called concurrently.
type Policy struct {
	cfg     Config
	carried float64
	plans   []remap.Plan   // the newest, as they were at read; Look's alone
	read    time.Time      // zero: they have changed since
	tries   map[string]int // by plan, of its failed moves

	mu    sync.Mutex // guards everything that follows
	log   []Line     // the newest last
	acted map[string]int
}

// New returns a policy that has decided nothing yet.
func New(cfg Config) *Policy {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Policy{cfg: cfg, acted: map[string]int{}, tries: map[string]int{}}
}

const (
	lookEvery = time.Second
	// readPlans is how many of the newest plans are read to see what was acted and refused.
	readPlans = 1000
	// readEvery is how often they are read although nothing says that one has changed.
	readEvery = time.Minute
	// notices of changes are kept until the next look.
	notices   = 256
	keptLines = 200
	// A rule's plan whose moves failed is tried again so often, so long after each time.
	mostTries = 3
	tryEvery  = 5 * time.Second
	day       = 24 * time.Hour
)

// Run decides once a second until ctx ends.
func (p *Policy) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	changed, stop := p.cfg.Desk.Watch(notices)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changed:
			if p.read = (time.Time{}); !open {
				changed = nil // the desk has closed, and says so to whoever asks
			}
		case <-tick.C:
			if err := p.Look(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, remap.ErrNotLeading) {
				p.cfg.Log.Warn("running jobs are not looked after", "policy", Name, "err", err)
			}
		}
	}
}

// Look decides once. Errors are those of the desk.
func (p *Policy) Look(ctx context.Context) error {
	s := p.cfg.Situation()
	p.learn(s)
	if now := time.Now(); now.Sub(p.read) >= readEvery {
		plans, err := p.cfg.Desk.Plans(ctx, readPlans)
		if err != nil {
			return err
		}
		p.plans, p.read = plans, now
	}
	if err := p.keep(ctx, s, p.plans); err != nil {
		return err
	}
	c := p.caseOf(s, p.plans)
	p.mu.Lock()
	p.acted = c.Acted
	p.mu.Unlock()
	proposals, held := Decide(c)
	for i := range held {
		p.note(held[i])
	}
	for i := range proposals {
		p.propose(ctx, s.At, &proposals[i])
	}
	return nil
}

// learn keeps the most that a healthy forwarder was seen to carry.
func (p *Policy) learn(s *remap.Situation) {
	for _, id := range s.Index.Forwarders() {
		load := s.Load[id]
		if rate, known := load.Rate(); known && s.State(id) == remap.ForwarderOK {
			p.carried = max(p.carried, rate)
		}
	}
}

// keep has the plans that were carried out go back when their forwarders are well, and withdraws those whose targets
// may carry nobody any more.
func (p *Policy) keep(ctx context.Context, s *remap.Situation, plans []remap.Plan) error {
	by := remap.PolicyPerson(Name)
	for i := range plans {
		plan := &plans[i]
		if plan.Proposer != by.Name {
			continue
		}
		var err error
		switch {
		case plan.Limits(): // it ends with its job
		case plan.State == remap.Verified && plan.Back == nil:
			_, err = p.cfg.Desk.Restore(ctx, by, plan.ID, remap.Answer{Reason: "its nodes go back when it is well"})
		case plan.Back != nil: // its way back was asked for
		case (plan.State == remap.Failed || plan.State == remap.Partial) && plan.ByRule():
			err = p.tryAgain(ctx, s, plan)
		case plan.State == remap.Proposed:
			for _, to := range remap.Targets(plan.Moves) {
				if st := s.State(to); !st.Healthy() && err == nil {
					_, err = p.cfg.Desk.Withdraw(ctx, by, plan.ID,
						remap.Answer{Reason: string(to) + " is " + string(st) + " now"})
					break
				}
			}
		}
		if err != nil && !errors.Is(err, remap.ErrState) {
			return err
		}
	}
	return nil
}

// tryAgain has moves made that failed, of a plan that no person looks after, while its forwarder is ill.
func (p *Policy) tryAgain(ctx context.Context, s *remap.Situation, plan *remap.Plan) error {
	tries := p.tries[plan.ID]
	if _, ill := s.Accused(plan.Moves[0].From); !ill || tries == mostTries || s.At.Sub(plan.Changed) < tryEvery {
		return nil
	}
	p.tries[plan.ID], p.read = tries+1, time.Time{}
	_, err := p.cfg.Desk.Complete(ctx, remap.PolicyPerson(Name), plan.ID,
		remap.Answer{Reason: "moves of a rule's plan failed: " + plan.Error})
	return err
}

// caseOf is everything that the decision depends on.
func (p *Policy) caseOf(s *remap.Situation, plans []remap.Plan) *Case {
	c := &Case{Situation: s, Rules: p.cfg.Rules, Acted: map[string]int{}, Taken: map[topology.ForwarderID]bool{},
		Waiting: map[topology.NodeID]*remap.Plan{}, Demand: p.cfg.Demand, Carried: p.carried, CanLimit: p.cfg.CanLimit,
		Limited: map[remap.Subject]bool{}}
	for f := range p.cfg.Desk.Claims() {
		c.Taken[f] = true
	}
	for f, id := range p.cfg.Desk.Promised() {
		c.Taken[f] = c.Taken[f] || !waitsFor(plans, id)
	}
	for i := range plans {
		plan := &plans[i]
		if plan.Limits() && !plan.State.Final() {
			for k := range plan.Moves {
				c.Limited[plan.Subject(&plan.Moves[k])] = true
			}
		}
		if plan.State == remap.Proposed {
			for _, m := range plan.Moves {
				c.Waiting[m.Node] = plan
			}
		}
		if plan.Rule != "" && s.At.Sub(plan.Created) < day && plan.ByRule() {
			c.Acted[plan.Rule]++
		}
	}
	c.Refused = func(f *anomaly.Finding, job topology.JobID) string { return refused(plans, f, job) }
	return c
}

// waitsFor says whether a plan is this policy's and waits: its own promise keeps nobody from carrying it out.
func waitsFor(plans []remap.Plan, id string) bool {
	return slices.ContainsFunc(plans, func(p remap.Plan) bool {
		return p.ID == id && p.State == remap.Proposed && p.Proposer == remap.PolicyPerson(Name).Name
	})
}

// refused says who ended an earlier plan of this policy for the job, while the same finding held.
func refused(plans []remap.Plan, f *anomaly.Finding, job topology.JobID) string {
	for i := range plans {
		plan := &plans[i]
		if plan.Proposer != remap.PolicyPerson(Name).Name || plan.Job != job || plan.Created.Before(confirmedSince(f)) {
			continue
		}
		switch plan.State {
		case remap.Rejected, remap.RolledBack:
			if plan.Ended != nil {
				return plan.ID + " was ended by " + plan.Ended.By
			}
			return plan.ID + " was ended"
		case remap.Failed, remap.Partial:
			return fmt.Sprintf("%s is %s: %s; complete it or roll it back", plan.ID, plan.State,
				cmp.Or(plan.Error, "not every node was moved"))
		case remap.Approved, remap.Applying, remap.Applied, remap.RollingBack:
			return plan.ID + " is " + string(plan.State)
		}
	}
	return ""
}

// propose puts one plan on the desk, and notes what came of it.
func (p *Policy) propose(ctx context.Context, at time.Time, x *Proposal) {
	line := Line{At: at, Finding: x.Finding, Forwarder: x.Forwarder, Job: x.Job.ID, Rule: x.Rule, Text: x.Reason}
	p.read = time.Time{}
	plan, err := p.cfg.Desk.Propose(ctx, remap.PolicyPerson(Name), remap.Request{Job: string(x.Job.ID), App: x.Job.App,
		User: x.Job.User, Moves: x.Moves, Reason: x.Reason, Rule: x.Rule, Act: x.Act, Force: x.Force})
	if err != nil {
		line.Text = "not proposed: " + err.Error()
	} else {
		line.Plan = plan.ID
	}
	p.note(line)
}

// note adds a line to the log, unless the newest one about the same job and forwarder says the same.
func (p *Policy) note(l Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range slices.Backward(p.log) {
		if o.Job == l.Job && o.Forwarder == l.Forwarder {
			if o.Text == l.Text && o.Plan == l.Plan {
				return
			}
			break
		}
	}
	p.log = append(p.log, l)
	p.log = p.log[max(0, len(p.log)-keptLines):]
	p.cfg.Log.Info("evacuate", "forwarder", l.Forwarder, "finding", l.Finding, "job", l.Job, "rule", l.Rule, "plan",
		l.Plan, "says", l.Text)
}

// View is the site's rules and what they decided.
type View struct {
	Rules []RuleView `json:"rules"`
	// Log are the newest decisions since the daemon began, the newest first.
	Log []Line `json:"log"`
}

// RuleView is a rule, and how often it has acted in the last 24 hours.
type RuleView struct {
	Rule
	Acted int `json:"acted"`
}

// View returns the rules and the log.
func (p *Policy) View() View {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := View{Rules: make([]RuleView, 0, len(p.cfg.Rules)), Log: append([]Line{}, p.log...)}
	for _, r := range p.cfg.Rules {
		r.AtMost, r.Loss = r.atMost(), r.loss()
		v.Rules = append(v.Rules, RuleView{r, p.acted[r.Name]})
	}
	slices.Reverse(v.Log)
	return v
}
