package dispatch

import (
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/history"
)

// Learn takes the start or the end of a job that a daemon of the cluster has recorded, this one or another; what is
// known already changes nothing. Errors are those of the history.
func Learn(d *Dispatcher, r history.Run) error {
	if r.End.IsZero() {
		return learnStart(d, r)
	}
	if !d.cfg.History.Knows(&r) {
		if err := d.cfg.History.Stop(r); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[r.Job]; j != nil && !r.Start.Before(j.run.Start) {
		d.remove(j)
		d.ended[r.Job] = j
	}
	poke(d.due)
	return nil
}

func learnStart(d *Dispatcher, r history.Run) error {
	if d.cfg.History.Knows(&r) {
		return nil
	}
	if err := d.cfg.History.Begin(r); err != nil {
		return err
	}
	j := newJob(d.cfg.History, r)
	j.on = r.Forwarders
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.jobs[r.Job]; old != nil {
		d.remove(old)
	}
	d.add(j)
	return nil
}

// Demand is the most that a job's nodes moved together, in this run so far or in the last one like it, bytes/s; nil
// where neither is known.
func Demand(d *Dispatcher, j *remap.Job) (most *float64) {
	take := func(p *history.Profile) {
		if p != nil && (most == nil || p.PeakBytesPerSec > *most) {
			most = &p.PeakBytesPerSec
		}
	}
	now, _ := d.SoFar(j.ID)
	take(now)
	if last, known := d.cfg.History.Predict(history.Key{User: j.User, App: j.App, Project: j.Project,
		Nodes: len(j.Nodes)}); known {
		take(last.Run.Profile)
	}
	return most
}

// RanAt lists the jobs that ran in a past second, with their nodes.
func RanAt(h *history.Store, at time.Time) ([]remap.Job, error) {
	runs, err := h.At(at)
	if err != nil {
		return nil, err
	}
	jobs := make([]remap.Job, len(runs))
	for i := range runs {
		r := &runs[i]
		jobs[i] = remap.Job{ID: r.Job, User: r.User, App: r.App, Project: r.Project, Nodes: r.NodeList, Start: r.Start}
	}
	return jobs, nil
}

// NodesOf are the nodes of a run; those of an ended one stand with its start. Nil: not known, also where the history
// cannot be read there, which is logged.
func NodesOf(d *Dispatcher, r *history.Run) []topology.NodeID {
	if r.NodeList != nil || r.End.IsZero() {
		return r.NodeList
	}
	runs, err := d.cfg.History.At(r.Start)
	for i := range runs {
		if runs[i].Job == r.Job && runs[i].Start.Equal(r.Start) {
			return runs[i].NodeList
		}
	}
	if err != nil {
		d.cfg.Log.Warn("which nodes an ended job had is not known", "job", r.Job, "err", err)
	}
	return nil
}
