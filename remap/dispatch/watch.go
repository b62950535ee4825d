package dispatch

import (
	"context"
	"errors"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dfra"
	"fairway/tsdb/history"
)

const (
	watchEvery = time.Second
	// freshFor is how old a frame may be to count as what a node does now.
	freshFor = 5 * time.Second
)

// Run watches the running jobs and builds the profiles of those that have ended, until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	profiled := make(chan struct{})
	go func() { defer close(profiled); d.keepProfiles(ctx) }()
	for {
		select {
		case <-ctx.Done():
			<-profiled
			return
		case now := <-tick.C:
			d.watch(now)
		}
	}
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
	of := map[topology.NodeID]*seen{}
	for _, s := range all {
		for _, n := range s.list {
			of[n] = s
		}
	}
	if len(all) == 0 {
		return
	}
	d.cfg.Frames(func(f *collector.Frame) {
		if now.UnixMilli()-f.TimeMillis >= freshFor.Milliseconds() {
			return
		}
		if s := of[f.Node]; s != nil {
			s.add(f)
		}
		for i := range f.Jobs {
			if s := all[f.Jobs[i].Job]; s != nil {
				s.addFiles(f.Node, f.Jobs[i].Samples)
			}
		}
	})
	// A job that starts waits for the lock: what takes long is done before it.
	s := d.cfg.Situation()
	for _, v := range all {
		v.on = defaultOrObserved(s, v.list)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, j := range d.ended {
		if v := all[id]; v != nil {
			j.noteFiles(v)
		}
	}
	for id, j := range d.jobs {
		v := all[id]
		if v == nil {
			continue
		}
		j.noteFiles(v)
		if len(v.on) > 0 {
			j.on = v.on
		}
		if v.nodes > 0 {
			j.note(v, now)
		}
	}
}

// defaultOrObserved are the forwarders that nodes are seen on; of a node that is not seen, the
// default one.
func defaultOrObserved(s *remap.Situation, nodes []topology.NodeID) (out []topology.ForwarderID) {
	have := map[topology.ForwarderID]bool{}
	for _, n := range nodes {
		f, ok := s.Observed[n]
		if !ok {
			f = s.Machine.Default[n]
		}
		if f != "" && !have[f] {
			have[f] = true
			out = append(out, f)
		}
	}
	return out
}

// seen is one second of a job: sums over its nodes.
type seen struct {
	list                 []topology.NodeID
	on                   []topology.ForwarderID
	nodes                int
	bytes, ops, metaWait float64
	files                map[topology.NodeID]nodeFiles
}

func (s *seen) add(f *collector.Frame) {
	s.nodes++
	var meta, duration float64
	for _, v := range f.Samples {
		switch v.Metric {
		case collector.ReadBytes, collector.WriteBytes:
			s.bytes += v.Value
		case collector.ReadOps, collector.WriteOps:
			s.ops += v.Value
		case collector.MetaOps:
			meta = v.Value
		case collector.ClientMeta:
			duration = v.Value
		}
	}
	s.metaWait += meta * duration // Little's law: metadata operations under way
}

// note keeps the peaks.
func (j *job) note(v *seen, now time.Time) {
	if j.since.IsZero() {
		j.since = now
	}
	j.live = dfra.Live{BW: max(j.live.BW, v.bytes), IOPS: max(j.live.IOPS, v.ops),
		MetaQueue: max(j.live.MetaQueue, v.metaWait/float64(max(1, len(j.on))))}
}

// keepProfiles builds the profiles that are due, a while after each job's end.
func (d *Dispatcher) keepProfiles(ctx context.Context) {
	for {
		wait := d.profile(ctx)
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

// profile builds what is due and says when to look again.
func (d *Dispatcher) profile(ctx context.Context) time.Duration {
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

// finish builds one profile, and tells the ledgers of the job's plans.
func (d *Dispatcher) finish(ctx context.Context, r history.Run) error {
	p, err := history.Build(ctx, d.cfg.Seconds, r)
	if err != nil {
		return err
	}
	d.mu.RLock()
	if j := d.ended[r.Job]; j != nil && p != nil {
		if mode := modeOf(j.files, p); mode != "" {
			p.Mode = mode
		}
	}
	d.mu.RUnlock()
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
			err = errors.Join(err, d.cfg.Desk.Measure(ctx, pl.ID, figures(&r)))
		}
	}
	return err
}
