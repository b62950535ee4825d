package effect

import (
	"context"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

const (
	// mostLater is how many later runs of an application are looked at, laterFor for how long they may come.
	mostLater = 3
	laterFor  = 24 * time.Hour
)

// later follows a plan whose job ended before its effect was known: where it moved nodes off a slow forwarder, the next
// runs of the application show it.
type later struct {
	plan   remap.Plan
	effect *remap.Effect
	before float64 // mean of the class before the move, seconds
	class  int
	seen   []topology.JobID
	after  []float64
}

// newLater is for a plan with its effect so far; nil where nothing is known of the time before the move.
func newLater(ctx context.Context, store Selector, p remap.Plan, e *remap.Effect) (*later, error) {
	if e.Verdict != remap.EffectUnknown || p.App == "" {
		return nil, nil
	}
	r := reader{store: store, byClients: true, from: e.BeforeFrom.Truncate(time.Second),
		to: e.BeforeTo.Truncate(time.Second)}
	groups, err := r.groups(ctx, spread(remap.NodesOf(p.Moves), most))
	l := &later{plan: p, effect: e, seen: []topology.JobID{p.Job}}
	waited := 0.0
	for c, g := range groups {
		if ops, took, _, busy := g.sums(0, r.seconds()); busy >= least && took > waited {
			l.class, l.before, waited = c, took/ops, took
		}
	}
	if waited == 0 {
		return nil, err
	}
	return l, err
}

// due are the runs of the application that have done their first minute elsewhere than where the plan's job was.
func (l *later) due(s *remap.Situation, now time.Time) (out []remap.Job) {
	left := map[topology.ForwarderID]bool{}
	for _, m := range l.plan.Moves {
		left[m.From] = true
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.App == l.plan.App && j.User == l.plan.User && now.Sub(j.Start) >= Window+late &&
			j.Start.After(l.plan.Changed) && !slices.Contains(l.seen, j.ID) &&
			!slices.ContainsFunc(j.Nodes, func(n topology.NodeID) bool { return left[s.Used[n]] }) {
			out = append(out, *j)
		}
	}
	return out
}

// take measures a run's first minute and adds it to the effect; ok is false where it did too little. Where nothing but
// its job's end left open whether a move helped, it did when each of the next runs is faster.
func (l *later) take(ctx context.Context, store Selector, j *remap.Job) (ok bool, err error) {
	l.seen = append(l.seen, j.ID)
	from := j.Start.Truncate(time.Second)
	r := reader{store: store, byClients: true, from: from, to: from.Add(Window)}
	groups, err := r.groups(ctx, spread(j.Nodes, most))
	ops, took, _, busy := groups[l.class].sums(0, r.seconds())
	if err != nil || busy < least {
		return false, err
	}
	l.after = append(l.after, took/ops)
	v := remap.LaterRuns{Runs: len(l.after), Latency: remap.Change{Before: l.before, After: anomaly.Median(l.after)}}
	for _, after := range l.after {
		if l.before >= remap.HelpedFrom*after {
			v.Faster++
		}
	}
	e := *l.effect
	e.Class, e.Later = classes[l.class].name, &v
	if e.Why == tooSoon && v.Runs == mostLater && v.Faster == v.Runs {
		e.Verdict, e.Why = remap.Helped, ""
	}
	l.effect = &e
	return true, nil
}

// over says that no more runs are looked at.
func (l *later) over(now time.Time) bool {
	return len(l.after) >= mostLater || now.Sub(l.plan.Changed) > laterFor
}
