package desk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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

// event is what a run tells the owning goroutine: one result, or its end.
type event struct {
	plan   string
	result remap.Result
	end    bool
	err    error
}

// eventBatch is how many results share one fsync when many arrive together.
const eventBatch = 512

// start begins the run that the plan's state asks for, if none is under way and there is room.
func (d *Desk) start(e *entry) {
	undo := e.Goal != ""
	if d.runs[e.ID] != nil || !undo && len(d.runs) >= d.set.MaxApplying || !d.inSight(e) {
		return // a roll back never waits for others
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{undo: undo, cancel: cancel}
	d.runs[e.ID] = r
	p := remap.ClonePlan(&e.Plan)
	p.Moves = e.open()
	call := d.driver.Apply
	if r.undo {
		call = d.driver.Restore
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

// inSight says whether the nodes still to be moved have been heard of since the desk was opened, or
// have had their time for it: right after a restart no agent is connected yet.
func (d *Desk) inSight(e *entry) bool {
	if time.Since(d.opened) > d.set.VerifyWithin {
		return true
	}
	s := d.situation()
	return !slices.ContainsFunc(e.open(), func(m remap.Move) bool {
		r, ok := s.Routes[m.Node]
		return !ok || r.Stale || r.At.Before(d.opened)
	})
}

// follow is what a recorded answer sets in motion at once.
func (d *Desk) follow(e *entry, step journal.RecordKind) {
	switch step {
	case journal.StepApprove, journal.StepComplete, journal.StepRollBack, journal.StepStop:
		if r := d.runs[e.ID]; r != nil {
			r.stopped = true
			r.cancel()
			return // its end starts what comes next
		}
		d.advance(e, time.Now())
	}
}

// advance moves a plan on as far as it can go now.
func (d *Desk) advance(e *entry, now time.Time) {
	switch e.State {
	case remap.Proposed:
		if !now.Before(e.Expires) {
			d.step(e, &journal.Record{At: now, Kind: journal.StepExpire, State: remap.Expired,
				Error: "nobody approved it in time"})
		}
	case remap.Approved:
		switch {
		case !now.Before(e.Expires):
			d.step(e, &journal.Record{At: now, Kind: journal.StepExpire, State: remap.Expired,
				Error: "it could not start in time after its approval"})
		case len(d.runs) < d.set.MaxApplying:
			if d.step(e, &journal.Record{At: now, Kind: journal.StepStart, State: remap.Applying}) {
				d.start(e)
			}
		}
	case remap.Applying:
		d.start(e)
	case remap.RollingBack:
		if len(e.open()) > 0 || d.runs[e.ID] != nil {
			d.start(e)
			return
		}
		d.observe(e, now)
	case remap.Applied:
		d.observe(e, now)
	case remap.Partial:
		if now.Sub(e.Changed) <= d.set.VerifyWithin {
			d.observe(e, now)
		}
	}
}

// step records one step that the desk takes by itself.
func (d *Desk) step(e *entry, r *journal.Record) bool {
	r.Plan = e.ID
	r.At = r.At.UTC()
	return d.record(r) == nil
}

// tick looks after every plan that time can change.
func (d *Desk) tick(now time.Time) {
	if d.journal.Broken() != nil {
		return // nothing can be recorded, so nothing may be done
	}
	d.book.forget(now)
	d.endLeases(now)
	for _, id := range slices.Clone(d.book.open) { // what ends leaves the list
		d.advance(d.book.plans[id], now)
	}
	maps.DeleteFunc(d.shown, func(id string,
		_ []remap.Preview) bool {
		return d.book.plans[id].State != remap.Proposed
	})
}

// takeEvents records results, many in one go where many wait.
func (d *Desk) takeEvents(first event) {
	byPlan := map[string][]remap.Result{}
	var ends []event
	for e, n := first, 1; ; n++ {
		if e.end {
			ends = append(ends, e)
		} else if r := d.runs[e.plan]; !r.stopped || e.result.OK {
			// What fails in a run that was stopped says nothing: it was cut off.
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
		kind := journal.StepResults
		if d.runs[id].undo {
			kind = journal.StepUndone
		}
		recs = append(recs, &journal.Record{At: time.Now().UTC(), Kind: kind, Plan: id, Results: results})
	}
	if len(recs) > 0 {
		if err := d.record(recs...); err != nil {
			for id := range byPlan {
				d.runs[id].unrecorded = true
			}
		}
	}
	for _, e := range ends {
		d.finish(e)
	}
}

// finish ends a run: what has no good result has failed.
func (d *Desk) finish(ev event) {
	r, e := d.runs[ev.plan], d.book.plans[ev.plan]
	delete(d.runs, ev.plan)
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
func (d *Desk) settle(e *entry, r *run, err error, now time.Time) bool {
	rec := &journal.Record{At: now, Kind: journal.StepFinish, State: remap.Applied}
	open := e.open()
	if len(open) > 0 {
		rec.State = remap.Partial
		if len(open) == len(e.Moves) {
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
func (d *Desk) lacking(e *entry, what string, err error) string {
	var names []string
	why := ""
	for _, m := range e.open() {
		names = append(names, string(m.Node))
		if r, ok := e.result(m.Node); ok && why == "" {
			why = r.Error
		}
	}
	if err != nil {
		why = err.Error()
	}
	text := fmt.Sprintf("%d of %d %s: %s", len(names), len(e.Moves), what, shorten(names))
	if why != "" {
		text += " (" + why + ")"
	}
	return text
}

// observe compares what the driver said with what the collector sees, and only then believes it.
func (d *Desk) observe(e *entry, now time.Time) {
	waiting := e.unseen()
	if len(waiting) > 0 {
		s := d.situation()
		var seen []topology.NodeID
		waiting = slices.DeleteFunc(waiting, func(m remap.Move) bool {
			want := m.To
			if e.Goal != "" {
				want = m.From
			}
			r, _ := e.result(m.Node)
			route, ok := s.Routes[m.Node]
			if !ok || route.Stale || route.Lost || route.Forwarder != want || route.At.Before(r.At) {
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
	switch late := now.Sub(since) > d.set.VerifyWithin; {
	case len(waiting) == 0 && e.State == remap.Applied:
		d.step(e, &journal.Record{At: now, Kind: journal.StepFinish, State: remap.Verified})
	case len(waiting) == 0:
		d.step(e, &journal.Record{At: now, Kind: journal.StepFinish, State: e.Goal})
	case late:
		var names []string
		for _, m := range waiting {
			names = append(names, string(m.Node))
		}
		d.step(e, &journal.Record{At: now, Kind: journal.StepFinish, State: remap.Partial, Error: fmt.Sprintf(
			"done by the nodes' word, but not observed within %s: %s", d.set.VerifyWithin, shorten(names))})
	}
}

// lastResult is when the newest result came, in the direction the plan is going.
func (e *entry) lastResult() time.Time {
	t := e.Changed
	results := e.Results
	if e.Goal != "" {
		results = e.Undo
	}
	for _, r := range results {
		if r.At.After(t) {
			t = r.At
		}
	}
	return t
}

// stopRuns ends every run and waits for it. Good results are still recorded; the rest is taken up
// at the next start.
func (d *Desk) stopRuns() {
	for _, r := range d.runs {
		r.stopped = true
		r.cancel()
	}
	for len(d.runs) > 0 {
		e := <-d.events
		if e.end {
			delete(d.runs, e.plan)
			continue
		}
		if !e.result.OK {
			continue
		}
		kind := journal.StepResults
		if d.runs[e.plan].undo {
			kind = journal.StepUndone
		}
		_ = d.record(&journal.Record{At: time.Now().UTC(), Kind: kind, Plan: e.plan, Results: []remap.Result{e.result}})
	}
}
