package dispatch

import (
	"context"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
)

// Listed is a job as the batch system lists it at this moment.
type Listed struct {
	Request
	Start time.Time
	// End is known of a job that has ended and is still listed.
	End time.Time
	// Starting says that its hook may be on its way still.
	Starting bool
	// Standing is what the batch system thinks of it.
	Standing
}

// Standing is what the batch system thinks of a job: its quality of service and its priority, 0 where that
// is not known.
type Standing struct {
	QOS      string
	Priority float64
}

// Reconciled says what a comparison with the batch system's list changed.
type Reconciled struct {
	Began []topology.JobID `json:"began"` // ran, and nobody had reported it
	Ended []topology.JobID `json:"ended"` // were gone, and nobody had reported it
	// Again are ended jobs whose plans are taken back once more: the first time failed.
	Again []topology.JobID `json:"again"`
}

// Back-off of taking back the plans of a job that is gone: a node that is down for days must not fill
// the journal.
const (
	againFirst = time.Minute
	againMost  = time.Hour
)

// again is when a job's plans are taken back next.
type again struct {
	at   time.Time
	wait time.Duration
}

// Reconcile compares the running jobs with the batch system's list, which was asked for at a time. A
// job that is not listed has ended: its plans are taken back. One that runs and is not known is known
// from now on; it keeps its forwarders, for policies decide at a job's start. One goroutine may call
// it at a time. Errors are those of the disk.
func (d *Dispatcher) Reconcile(ctx context.Context, asked time.Time, list []Listed) (r Reconciled, err error) {
	listed := map[topology.JobID]*Listed{}
	for i := range list {
		listed[list[i].Job] = &list[i]
	}
	for _, j := range d.Running() {
		l := listed[j.ID]
		if !j.Start.Before(asked) || l != nil && l.End.IsZero() { // a younger one began behind the list's back
			continue
		}
		if _, err := d.endAt(ctx, j.ID, endOf(&j, l, list, asked)); err != nil {
			return r, err
		}
		r.Ended = append(r.Ended, j.ID)
	}
	for i := range list {
		if l := &list[i]; l.End.IsZero() && !l.Starting && l.Start.Before(asked) {
			began, err := d.adopt(ctx, l)
			if err != nil {
				return r, err
			}
			if began {
				r.Began = append(r.Began, l.Job)
			}
		}
	}
	d.rank(listed)
	r.Again, err = d.takeBackAgain(ctx, asked, func(p *remap.Plan) (bool, error) {
		l := listed[p.Job]
		return l == nil || !l.End.IsZero(), nil
	})
	return r, err
}

// TakeBackAgain is that part of Reconcile which needs no list: it takes the plans of jobs whose end was reported back
// once more, where that failed. It is called instead of Reconcile while the list is missing.
func (d *Dispatcher) TakeBackAgain(ctx context.Context, now time.Time) ([]topology.JobID, error) {
	return d.takeBackAgain(ctx, now, func(p *remap.Plan) (bool, error) {
		run, known, err := d.cfg.History.Job(p.Job)
		return known && run.End.After(p.Created), err
	})
}

// rank notes the standing of the running jobs.
func (d *Dispatcher) rank(listed map[topology.JobID]*Listed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, l := range listed {
		if j := d.jobs[id]; j != nil {
			j.standing = l.Standing
		}
	}
}

// endOf is when a job ended that is gone: as listed, else before the next job on its nodes began.
func endOf(j *remap.Job, l *Listed, list []Listed, asked time.Time) time.Time {
	end := asked
	if l != nil {
		end = l.End
	}
	mine := map[topology.NodeID]bool{}
	for _, n := range j.Nodes {
		mine[n] = true
	}
	for i := range list {
		o := &list[i]
		if o.Job != j.ID && o.Start.After(j.Start) && o.Start.Before(end) &&
			slices.ContainsFunc(o.Nodes, func(n topology.NodeID) bool { return mine[n] }) {
			end = o.Start
		}
	}
	if end.Before(j.Start) { // the clocks differ
		end = j.Start
	}
	return end.UTC()
}

// adopt makes a job that runs a known one. Jobs on nodes that are no compute nodes of the machine are
// none of ours.
func (d *Dispatcher) adopt(ctx context.Context, l *Listed) (bool, error) {
	s := d.cfg.Situation()
	if l.check(s) != nil {
		return false, nil
	}
	d.deciding.Lock()
	defer d.deciding.Unlock()
	d.mu.RLock()
	known := d.jobs[l.Job] != nil
	d.mu.RUnlock()
	if known {
		return false, nil
	}
	if err := d.endOverlapping(ctx, &l.Request); err != nil {
		return false, err
	}
	j := newJob(d.cfg.History, history.Run{Job: l.Job, User: l.User, App: l.App, Project: l.Project,
		Nodes: len(l.Nodes), NodeList: slices.Clone(l.Nodes), Start: l.Start.UTC(), Forwarders: s.Forwarders(l.Nodes)})
	j.on = j.run.Forwarders
	if err := d.cfg.Runs.Begin(j.run); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(j)
	return true, nil
}

// takeBackAgain looks for plans of jobs that are gone: the end's hook may have failed, or the nodes
// did not answer then. It says whose plans it took back.
func (d *Dispatcher) takeBackAgain(ctx context.Context, asked time.Time,
	gone func(*remap.Plan) (bool, error)) (took []topology.JobID, err error) {
	plans, err := d.cfg.Desk.Plans(ctx, 0)
	if err != nil {
		return nil, err
	}
	open := map[topology.JobID]again{}
	for i := range plans {
		p := &plans[i]
		d.mu.RLock()
		runs := d.jobs[p.Job] != nil
		d.mu.RUnlock()
		if p.Job == "" || runs || takeBack(p) == nil || !p.Changed.Before(asked) {
			continue
		}
		if _, seen := open[p.Job]; seen {
			continue
		}
		if is, err := gone(p); err != nil {
			return took, err
		} else if !is {
			continue
		}
		a := d.again[p.Job]
		if !asked.Before(a.at) {
			if _, err := d.endAt(ctx, p.Job, asked); err != nil {
				return took, err
			}
			a.wait = min(againMost, max(againFirst, 2*a.wait))
			a.at = asked.Add(a.wait)
			took = append(took, p.Job)
		}
		open[p.Job] = a
	}
	d.again = open
	return took, nil
}
