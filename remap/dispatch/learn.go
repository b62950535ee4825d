package dispatch

import (
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
	select {
	case d.due <- struct{}{}:
	default:
	}
	return nil
}

func learnStart(d *Dispatcher, r history.Run) error {
	if d.cfg.History.Knows(&r) {
		return nil
	}
	if err := d.cfg.History.Begin(r); err != nil {
		return err
	}
	j := &job{run: r, on: r.Forwarders}
	if p, ok := d.cfg.History.Predict(r.Key()); ok {
		j.past = Past(&p.Run)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.jobs[r.Job]; old != nil {
		d.remove(old)
	}
	d.add(j)
	return nil
}
