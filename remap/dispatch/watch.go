package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

const (
	watchEvery = time.Second
	// freshFor is how old a frame may be to count as what a node does now.
	freshFor = 5 * time.Second
)

// Run watches the running jobs and builds the profiles of those that have ended, until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	profiled := make(chan struct{})
	go func() { defer close(profiled); profiler{d}.run(ctx) }()
	pace.Every(ctx, watchEvery, watchEvery, func(now time.Time) {
		d.watch(now)
		proposer{d}.askAgain(ctx)
	})
	<-profiled
}

// watch takes down what every running job does in this second.
func (d *Dispatcher) watch(now time.Time) {
	all := map[topology.JobID]*seen{}
	d.mu.RLock()
	for id := range d.ended {
		all[id] = &seen{}
	}
	for id, j := range d.jobs {
		all[id] = &seen{list: j.run.NodeList}
	}
	d.mu.RUnlock()
	of, s := map[topology.NodeID]*seen{}, d.cfg.Situation()
	for _, v := range all {
		for _, n := range v.list {
			of[n] = v
		}
	}
	if len(all) == 0 {
		return
	}
	servers := behind(s)
	d.cfg.Frames(func(f *collector.Frame) {
		if now.UnixMilli()-f.TimeMillis >= freshFor.Milliseconds() {
			return
		}
		servers.add(f, of[f.Node])
		if v := of[f.Node]; v != nil {
			v.add(f, s.Observed[f.Node])
			v.locks.add(f)
		}
		for i := range f.Jobs {
			if v := all[f.Jobs[i].Job]; v != nil {
				v.addFiles(f.Node, f.Jobs[i].Samples)
				v.addOpens(f, f.Jobs[i].Samples)
			}
		}
	})
	servers.share()
	// A job that starts waits for the lock: what takes long is done before it.
	for _, v := range all {
		v.on = s.Forwarders(v.list)
	}
	if noteAll(d, all, now) {
		d.windows.renew(d, s, nil, now)
	}
}

// noteAll adds a second to every job; learned: one of them is now known to be periodic.
func noteAll(d *Dispatcher, all map[topology.JobID]*seen, now time.Time) (learned bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, v := range all {
		j := cmp.Or(d.jobs[id], d.ended[id])
		if j == nil {
			continue
		}
		j.noteFiles(v)
		j.opens.note(v.opens, j.run.Nodes)
		j.locks.note(v.locks, j.run.Nodes)
		if d.jobs[id] == nil {
			continue
		}
		if len(v.on) > 0 {
			j.on = v.on
		}
		if v.tick.Nodes > 0 {
			j.note(v, now)
			if v.tick.Read+v.tick.Write+v.tick.Meta > 0 {
				j.servedBy(v.on)
			}
			if d.cfg.Windows {
				since := time.Duration(v.tick.Seconds * float64(time.Second))
				learned = j.rhythm.note(v.tick.Read+v.tick.Write, since, now) || learned
			}
		}
	}
	return learned
}

// servedBy adds forwarders to those that served the run: nodes that were moved had others before.
func (j *job) servedBy(on []topology.ForwarderID) {
	for _, f := range on {
		if !slices.Contains(j.run.Forwarders, f) {
			j.run.Forwarders = append(slices.Clip(j.run.Forwarders), f)
		}
	}
}

// seen is one second of a job: sums over its nodes.
type seen struct {
	list     []topology.NodeID
	on       []topology.ForwarderID
	tick     history.Tick
	metaWait float64 // metadata operations under way
	served   float64 // and those of them in service of the servers behind gateways
	files    map[topology.NodeID]nodeFiles
	opens    map[topology.NodeID]opened
	locks    lockSecond
}

// add counts a node's newest second. A node waits for its forwarder while a request is under way, and not for more than
// all of its time.
func (s *seen) add(f *collector.Frame, on topology.ForwarderID) {
	t := &s.tick
	if !f.CountsIO() {
		return // LWFS's clients count nothing: that is not 0
	}
	t.Nodes++
	value := func(m collector.Metric) float64 { v, _ := f.Value(m); return v }
	bytes, meta := value(collector.ReadBytes)+value(collector.WriteBytes), value(collector.MetaOps)
	t.Read += value(collector.ReadBytes)
	t.Write += value(collector.WriteBytes)
	t.Ops += value(collector.ReadOps) + value(collector.WriteOps)
	t.Meta += meta
	t.PeakNode = max(t.PeakNode, bytes)
	t.Memory = max(t.Memory, value(collector.MemoryUsedRatio))
	if busy, looked := f.Value(collector.CPUBusyRatio); looked {
		t.Busy, t.Looks = t.Busy+busy, t.Looks+1
	}
	if took, known := f.Value(collector.ClientMeta); known {
		s.metaWait += meta * took
	} else {
		s.metaWait += value(collector.MetaInFlight)
	}
	w, known := collector.WaitingOf(f.Samples)
	if w.Counted {
		t.UnderWay += w.UnderWay
	}
	if known && on != "" {
		if t.Waiting == nil {
			t.Waiting = map[topology.ForwarderID]float64{}
		}
		t.Timed++
		t.Waiting[on] += min(1, w.UnderWay)
	}
}

// note keeps the peaks and the sums.
func (j *job) note(v *seen, now time.Time) {
	if j.since.IsZero() {
		j.since, j.watched = now, now.Add(-watchEvery)
		j.meter = history.NewMeter(j.run.Start, j.run.Nodes)
	}
	under := v.metaWait - v.served
	for _, one := range v.opens {
		under -= one.served
	}
	v.tick.At, v.tick.Seconds = now, min(freshFor, max(0, now.Sub(j.watched))).Seconds()
	j.watched = now
	j.meter.Add(&v.tick)
	j.served += v.served * v.tick.Seconds
	j.live = dfra.Live{BW: max(j.live.BW, v.tick.Read+v.tick.Write), IOPS: max(j.live.IOPS, v.tick.Ops),
		MetaQueue: max(j.live.MetaQueue, under/float64(max(1, len(j.on))))}
}

// profiler builds the profiles of jobs that have ended.
type profiler struct{ *Dispatcher }

// run builds the profiles that are due, a while after each job's end.
func (d profiler) run(ctx context.Context) {
	for {
		wait := d.buildDue(ctx)
		if err := d.learn(time.Now()); err != nil {
			d.log.Warn("what is loud and quiet here was not learned anew", "err", err)
		}
		next := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-d.due:
		case <-next.C:
		}
		next.Stop()
	}
}

// buildDue builds what is due and says when to look again.
func (d profiler) buildDue(ctx context.Context) time.Duration {
	wait := time.Minute
	for _, r := range d.cfg.History.Pending() {
		if due := time.Until(r.End.Add(history.Settle)); due > 0 {
			wait = min(wait, due)
			continue
		}
		if err := d.finish(ctx, r); err != nil && ctx.Err() == nil {
			d.log.Warn("a job's profile was not built; it is tried again", "job", r.Job, "err", err)
		}
	}
	return wait
}

// build builds the profile of a run that has ended; nil where nothing was collected of its nodes.
func (d profiler) build(ctx context.Context, r history.Run) (*history.Profile, error) {
	served := 0.0
	d.mu.RLock()
	if j := d.ended[r.Job]; j != nil {
		served = j.served + j.opens.served
	}
	d.mu.RUnlock()
	p, err := history.Build(ctx, d.cfg.Seconds, r, served)
	if err != nil || p == nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if j := d.ended[r.Job]; j != nil {
		if mode := j.mode(p); mode != "" {
			p.Mode = mode
		}
		if j.meter != nil {
			p.Waits = j.meter.Waits()
		}
	}
	return p, nil
}

// predict is the history's prediction for a run that starts, or one from a run like it whose profile is due: it ended
// a few seconds ago.
func (d profiler) predict(ctx context.Context, k history.Key) (p history.Prediction, known bool) {
	p, known = d.cfg.History.Predict(k)
	for _, r := range d.cfg.History.Pending() {
		if r.Key() != k || known && !r.End.After(p.Run.End) {
			continue
		}
		soon, cancel := context.WithTimeout(ctx, predictWithin)
		profile, err := d.build(soon, r)
		cancel()
		if err != nil || profile == nil {
			continue // it is predicted from the run before
		}
		r.Profile = profile
		p.Run, p.Depth, known = r, p.Depth+1, true
	}
	return p, known
}

// predictWithin is how long a job that starts waits for the profile of the run just before it.
const predictWithin = time.Second

// finish builds one profile and puts it into the ledgers of the job's plans.
func (d profiler) finish(ctx context.Context, r history.Run) error {
	p, err := d.build(ctx, r)
	if err != nil {
		return err
	}
	r.Profile = p
	if err := d.cfg.History.End(r); err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.ended, r.Job)
	d.mu.Unlock()
	if p == nil {
		d.log.Info("a job has ended and nothing was collected of its nodes", "job", r.Job)
		return nil
	}
	plans, err := d.cfg.Desk.OfJob(ctx, r.Job)
	for i := range plans {
		if pl := &plans[i]; pl.Ledger != nil && pl.Ledger.Measured == nil && !pl.Created.Before(r.Start) {
			if merr := d.cfg.Desk.Measure(ctx, pl.ID, figures(&r)); !errors.Is(merr, remap.ErrNotLeading) {
				err = errors.Join(err, merr) // the daemon that leads records it
			}
		}
	}
	return err
}
