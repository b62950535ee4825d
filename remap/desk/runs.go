package desk

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// run is one driver call under way for a plan.
type run struct {
	undo   bool
	cancel context.CancelFunc
	// stopped says that the run was asked to end early: by a person, a roll back or the desk's end.
	stopped bool
	// unrecorded says that a result could not be recorded: the next run asks again.
	unrecorded bool
}

// event is what a run reports to the owning goroutine: one result, or its end.
type event struct {
	plan   string
	result remap.Result
	end    bool
	err    error
}

// runs are the driver calls under way. Its methods are called by the owning goroutine.
type runs struct {
	cfg    *Config
	rec    *recorder
	opened time.Time
	of     map[string]*run // by plan
	count  atomic.Int32    // of the map, for metrics
	events chan event
}

func newRuns(cfg *Config, rec *recorder) *runs {
	return &runs{cfg: cfg, rec: rec, opened: time.Now(), of: map[string]*run{}, events: make(chan event, 1024)}
}

// eventBatch is how many results share one fsync when many arrive together.
const eventBatch = 512

// start begins the run that the plan's state asks for, if none is under way and there is room.
func (d *runs) start(e *entry) {
	undo := e.Goal != ""
	if d.of[e.ID] != nil || !undo && len(d.of) >= d.cfg.Settings.MaxApplying || !d.inSight(e) {
		return // a roll back never waits for others
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{undo: undo, cancel: cancel}
	d.of[e.ID] = r
	d.count.Store(int32(len(d.of)))
	p := remap.ClonePlan(&e.Plan)
	p.Moves = e.open()
	call := d.cfg.Driver.Apply
	switch {
	case e.Limits():
		call = d.cfg.Queues.Settle
		for i := range p.Moves {
			p.Moves[i].Limit = d.rec.state.plans.limits()[p.Moves[i].Node][p.Job]
		}
	case r.undo:
		call = d.cfg.Driver.Restore
	}
	go func() {
		defer cancel()
		var err error
		if len(p.Moves) > 0 {
			err = call(ctx, p, func(res remap.Result) { d.events <- event{plan: p.ID, result: res} })
		}
		d.events <- event{plan: p.ID, end: true, err: err}
	}()
}

// inSight reports whether the nodes still to be moved have reported since the desk was opened, or had their time for
// it. Right after a restart no agent is connected yet.
func (d *runs) inSight(e *entry) bool {
	if time.Since(d.opened) > d.cfg.Settings.VerifyWithin {
		return true
	}
	s := d.cfg.Situation()
	return e.Limits() || !slices.ContainsFunc(e.open(), func(m remap.Move) bool {
		r, ok := s.Routes[m.Node]
		return !ok || r.Stale || r.At.Before(d.opened)
	})
}

// follow is what a recorded answer sets in motion at once.
func (d *runs) follow(e *entry) {
	if r := d.of[e.ID]; r != nil {
		r.stopped = true
		r.cancel()
		return // its end starts what comes next
	}
	d.advance(e, time.Now())
}

// advance moves a plan on as far as it can go now.
func (d *runs) advance(e *entry, now time.Time) {
	if e.Back != nil && d.goBack(e, now) {
		return
	}
	switch e.State {
	case remap.Proposed:
		if !now.Before(e.Expires) {
			d.step(e, expiry(now, "nobody approved it in time"))
		}
	case remap.Approved:
		switch {
		case !now.Before(e.Expires):
			d.step(e, expiry(now, "it could not start in time after its approval"))
		case len(d.of) < d.cfg.Settings.MaxApplying:
			if d.step(e, &journal.Record{At: now, Kind: journal.StepStart, State: remap.Applying}) {
				d.start(e)
			}
		}
	case remap.Applying:
		d.start(e)
	case remap.RollingBack:
		if len(e.open()) > 0 || d.of[e.ID] != nil {
			d.start(e)
			return
		}
		d.observe(e, now)
	case remap.Applied:
		d.observe(e, now)
	case remap.Partial:
		if now.Sub(e.Changed) <= d.cfg.Settings.VerifyWithin {
			d.observe(e, now)
		}
	}
}

// step records one step that the desk takes by itself.
func (d *runs) step(e *entry, r *journal.Record) bool {
	r.Plan = e.ID
	r.At = r.At.UTC()
	return d.rec.record(r) == nil
}

// tick looks after every plan that time can change.
func (d *runs) tick(now time.Time) {
	t := &d.rec.state.plans
	for _, id := range slices.Clone(t.open) { // what ends leaves the list
		d.advance(t.of[id], now)
	}
}

// take records results, many in one go where many wait.
func (d *runs) take(first event) {
	byPlan := map[string][]remap.Result{}
	var ends []event
	for e, n := first, 1; ; n++ {
		if e.end {
			ends = append(ends, e)
		} else if r := d.of[e.plan]; !r.stopped || e.result.OK {
			// What fails in a run that was stopped is not a result: it was cut off.
			e.result.At = e.result.At.UTC()
			byPlan[e.plan] = append(byPlan[e.plan], e.result)
		}
		if n >= eventBatch {
			break
		}
		select {
		case e = <-d.events:
			continue
		default:
		}
		break
	}
	var recs []*journal.Record
	for id, results := range byPlan {
		recs = append(recs, d.reported(id, results...))
	}
	if len(recs) > 0 {
		if err := d.rec.record(recs...); err != nil {
			for id := range byPlan {
				d.of[id].unrecorded = true
			}
		}
	}
	for _, e := range ends {
		d.finish(e)
	}
}

// reported is the step of results that a plan's run has reported.
func (d *runs) reported(plan string, results ...remap.Result) *journal.Record {
	kind := journal.StepResults
	if d.of[plan].undo {
		kind = journal.StepUndone
	}
	return &journal.Record{At: time.Now().UTC(), Kind: kind, Plan: plan, Results: results}
}

// finish ends a run: what has no good result has failed.
func (d *runs) finish(ev event) {
	r, e := d.of[ev.plan], d.rec.state.plans.of[ev.plan]
	delete(d.of, ev.plan)
	d.count.Store(int32(len(d.of)))
	now, ok := time.Now(), !r.unrecorded
	switch {
	case !ok:
	case e.State == remap.Applying && !r.undo:
		ok = d.settle(e, r, ev.err, now)
	case e.State == remap.RollingBack && r.undo && len(e.open()) > 0:
		ok = d.step(e, &journal.Record{At: now, Kind: journal.StepFinish, State: remap.Partial,
			Error: d.lacking(e, "not taken back", ev.err)})
	}
	if ok { // else the next tick begins again, if the journal takes records then
		d.advance(e, now)
	}
}

// settle says what an ended apply has come to.
func (d *runs) settle(e *entry, r *run, err error, now time.Time) bool {
	rec := &journal.Record{At: now, Kind: journal.StepFinish, State: remap.Applied}
	open := e.open()
	if len(open) > 0 {
		rec.State = remap.Partial
		left := func(r remap.Result) bool { return r.Left != "" } // such a node is moved in part
		if len(open) == len(e.Moves) && !slices.ContainsFunc(e.Results, left) {
			rec.State = remap.Failed
		}
		if r.stopped && err == nil {
			err = context.Canceled
		}
		rec.Error = d.lacking(e, "not moved", err)
	}
	return d.step(e, rec)
}

// lacking names the nodes without a good result.
func (d *runs) lacking(e *entry, what string, err error) string {
	nodes, why := remap.NodesOf(e.open()), ""
	for _, n := range nodes {
		if r, ok := e.result(n); ok && why == "" {
			why = r.Error
		}
	}
	if err != nil {
		why = err.Error()
	}
	text := fmt.Sprintf("%d of %d %s: %s", len(nodes), len(e.Moves), what, shorten(nodes))
	if why != "" {
		text += " (" + why + ")"
	}
	return text
}

// observe compares what the driver reported with what the collector observes; only both together verify a move.
func (d *runs) observe(e *entry, now time.Time) {
	waiting := e.unseen()
	if len(waiting) > 0 {
		s, limits := d.cfg.Situation(), d.rec.state.plans.limits()
		var seen []topology.NodeID
		waiting = slices.DeleteFunc(waiting, func(m remap.Move) bool {
			want := remap.Move{Node: m.Node, To: m.To}
			if e.Goal != "" {
				want.To, want.Spread = m.From, m.Spread
			}
			r, _ := e.result(m.Node)
			if m.Limit > 0 {
				if d.cfg.Queues.Keeps(m.Node, e.Job, limits[m.Node][e.Job], r.At) {
					seen = append(seen, m.Node)
					return true
				}
				return false
			}
			route, ok := s.Routes[m.Node]
			if !ok || route.Stale || route.Lost || !want.Over(&route) || route.At.Before(r.At) {
				return false
			}
			seen = append(seen, m.Node)
			return true
		})
		if len(seen) > 0 && !d.step(e, &journal.Record{At: now, Kind: journal.StepObserve, Observed: seen}) {
			return
		}
	}
	if e.State == remap.Partial {
		return
	}
	since := e.lastResult()
	if since.Before(d.opened) {
		since = d.opened
	}
	switch late := now.Sub(since) > d.cfg.Settings.VerifyWithin; {
	case len(waiting) == 0 && e.State == remap.Applied:
		d.verified(e, now)
	case len(waiting) == 0:
		d.step(e, &journal.Record{At: now, Kind: journal.StepFinish, State: e.Goal})
	case late && e.Back == nil: // one that waits for its way back has time
		d.step(e, &journal.Record{At: now, Kind: journal.StepFinish, State: remap.Partial, Error: fmt.Sprintf(
			"reported as done, but not observed within %s: %s", d.cfg.Settings.VerifyWithin,
			shorten(remap.NodesOf(waiting)))})
	}
}

// underWay returns the results, and where each node's are, in the direction that the plan is going: there, or back.
func (e *entry) underWay() (results []remap.Result, at map[topology.NodeID]int) {
	if e.Goal != "" {
		return e.Undo, e.undo
	}
	return e.Results, e.results
}

// open returns the moves that a run still has to make: those without a good result, or for a roll back those not yet
// taken back.
func (e *entry) open() (moves []remap.Move) {
	results, at := e.underWay()
	for _, m := range e.Moves {
		if i, ok := at[m.Node]; !ok || !results[i].OK {
			moves = append(moves, m)
		}
	}
	return moves
}

// unseen returns the moves that the driver reports as done and that are not yet observed.
func (e *entry) unseen() (moves []remap.Move) {
	results, at := e.underWay()
	for _, m := range e.Moves {
		if i, ok := at[m.Node]; ok && results[i].OK && !results[i].Verified {
			moves = append(moves, m)
		}
	}
	return moves
}

// result returns the newest result of a node; ok is false without one.
func (e *entry) result(n topology.NodeID) (r remap.Result, ok bool) {
	results, at := e.underWay()
	i, ok := at[n]
	if ok {
		r = results[i]
	}
	return r, ok
}

// lastResult is when the newest result came, or, without one, when the plan's state changed.
func (e *entry) lastResult() time.Time {
	t := e.Changed
	results, _ := e.underWay()
	for _, r := range results {
		if r.At.After(t) {
			t = r.At
		}
	}
	return t
}

// stop ends every run and waits for it. Good results are still recorded; the rest is taken up
// at the next start.
func (d *runs) stop() {
	for _, r := range d.of {
		r.stopped = true
		r.cancel()
	}
	for len(d.of) > 0 {
		e := <-d.events
		if e.end {
			delete(d.of, e.plan)
			d.count.Store(int32(len(d.of)))
			continue
		}
		if e.result.OK {
			_ = d.rec.record(d.reported(e.plan, e.result))
		}
	}
}

// noWayBack says which forwarder the plan's nodes would go back to that is not well; empty: all of them are.
func (d *runs) noWayBack(e *entry, s *remap.Situation, now time.Time) string {
	var back []topology.ForwarderID
	for i := range e.Moves {
		back = append(back, e.Moves[i].Sources()...)
	}
	for _, f := range topology.Distinct(back) {
		if why := d.unfit(f, s, now); why != "" {
			return remap.StayText(why, inWords(d.cfg.Settings.ReturnAfter))
		}
	}
	return ""
}

// NoWayBack says why a plan's nodes would wait with their way back; empty: they would not. Errors: ErrNotFound.
func (d *answers) NoWayBack(ctx context.Context, id string) (why string, err error) {
	s := d.cfg.Situation()
	err = d.rec.do(ctx, func() error {
		e, err := d.rec.state.plans.get(id)
		if err == nil {
			why = d.runs.noWayBack(e, s, time.Now())
		}
		return err
	})
	return why, err
}

// unfit says why nodes are not brought back to a forwarder at present; empty: they may be.
func (d *runs) unfit(f topology.ForwarderID, s *remap.Situation, now time.Time) string {
	if out, excluded := d.rec.state.exclusions.of[f]; excluded {
		return fmt.Sprintf("%s is excluded: %s", f, out.Words())
	}
	if c := s.OutOfService(f); c != "" {
		return fmt.Sprintf("%s is %s", f, c)
	}
	if g, accused := d.rec.state.findings.accuses(f); accused {
		return remap.Accusation(g)
	}
	for g := range d.rec.state.findings.on(f.Node()) {
		if !wasConfirmed(g) || g.State == anomaly.Dismissed {
			continue
		}
		if well := now.Sub(g.Changed); well < d.cfg.Settings.ReturnAfter {
			return fmt.Sprintf("%s has been well for %s only (%s)", f, age(well), g.ID)
		}
	}
	if load, reported := s.Load[f]; reported && s.At.Sub(load.LastSeen) > remap.StaleAfter {
		return fmt.Sprintf("%s has not reported for %s", f, age(s.At.Sub(load.LastSeen)))
	}
	return ""
}

// wasConfirmed says whether a finding accused its node and was ever more than a suspicion.
func wasConfirmed(f *anomaly.Finding) bool {
	return f.Kind.Accuses() && slices.ContainsFunc(f.Steps, func(s anomaly.Step) bool {
		return s.State == anomaly.Confirmed || s.State == anomaly.Excluded
	})
}

// goBack begins a roll back that has waited, once all forwarders that nodes go to are well and no later
// plan holds them; until then it returns false, and what was moved is looked for as ever: a job that ends in the second
// of its move has been moved, too.
func (d *runs) goBack(e *entry, now time.Time) bool {
	if later, _ := d.rec.state.plans.movedOn(e); later != "" || d.noWayBack(e, d.cfg.Situation(), now) != "" {
		return false
	}
	if d.step(e, &journal.Record{At: now, Kind: journal.StepRollBack, State: remap.RollingBack, Goal: e.Back.Goal,
		Reason: "asked by " + e.Back.By + "; where its nodes come from is well again"}) {
		d.advance(e, now)
	}
	return true
}
