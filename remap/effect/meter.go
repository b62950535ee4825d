package effect

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

// Desk is where plans are followed and effects are recorded; a desk.Desk is one.
type Desk interface {
	Watch(buffer int) (changed <-chan string, stop func())
	Plans(ctx context.Context, limit int) ([]remap.Plan, error)
	Plan(ctx context.Context, id string) (remap.Plan, error)
	RecordEffect(ctx context.Context, id string, e *remap.Effect) error
}

// Config is what a Meter works with.
type Config struct {
	Desk      Desk
	Situation func() *remap.Situation
	Seconds   Selector
	Log       *slog.Logger
}

// Meter measures the effect of every plan that has moved nodes: live for the minute after, then for the record.
type Meter struct {
	cfg Config

	mu     sync.Mutex // guards what follows
	newest map[string]*remap.Effect
}

// NewMeter returns a meter that Run sets to work.
func NewMeter(c Config) *Meter { return &Meter{cfg: c, newest: map[string]*remap.Effect{}} }

const (
	// tooLate is how old a move may be that nobody has measured, after a restart.
	tooLate = 10 * time.Minute
	// looksAt is how many plans are looked through at start: the newest.
	looksAt = 200
)

// Newest returns the effect of a plan as measured so far, nil when it is not being measured now, or by a nil Meter.
func (m *Meter) Newest(plan string) *remap.Effect {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest[plan]
}

func (m *Meter) set(plan string, e *remap.Effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e == nil {
		delete(m.newest, plan)
		return
	}
	m.newest[plan] = e
}

// following is a plan under measurement.
type following struct {
	plan     remap.Plan
	jobNodes []topology.NodeID
	since    time.Time // of the finding on the forwarder that it leaves
}

// Run measures until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	changed, stop := m.cfg.Desk.Watch(256)
	defer stop()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		clear(m.newest) // nobody measures any more
	}()
	followed := map[string]*following{}
	plans, err := m.cfg.Desk.Plans(ctx, looksAt)
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.Warn("the effect of plans from before the start is not measured", "err", err)
	}
	for i := range plans {
		m.look(ctx, plans[i].ID, followed)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case id, ok := <-changed:
			if !ok {
				return
			}
			m.look(ctx, id, followed)
		case <-tick.C:
			for id, f := range followed {
				if m.measure(ctx, f) {
					delete(followed, id)
				}
			}
		}
	}
}

// look takes a plan up when its moves have been observed, and lets go of one that has gone on.
func (m *Meter) look(ctx context.Context, id string, followed map[string]*following) {
	p, err := m.cfg.Desk.Plan(ctx, id)
	wanted := err == nil && p.Effect == nil && (p.State == remap.Verified || p.State == remap.Partial &&
		p.Goal == "") &&
		time.Since(p.Changed) < tooLate
	if !wanted {
		if f := followed[id]; f != nil && err == nil && p.Effect == nil &&
			(p.Goal == remap.Restored || p.State == remap.Restored) {
			m.end(ctx, f)
		}
		delete(followed, id)
		m.set(id, nil)
		return
	}
	if followed[id] != nil {
		return
	}
	f := &following{plan: p}
	s := m.cfg.Situation()
	for i := range s.Jobs {
		if s.Jobs[i].ID == p.Job {
			f.jobNodes = s.Jobs[i].Nodes
		}
	}
	for _, move := range p.Moves {
		if g, ok := s.Accused(move.From); ok && g.Since.After(f.since) {
			f.since = g.Since
		}
	}
	followed[id] = f
}

// end records what was measured of a plan whose job ended before the time was over.
func (m *Meter) end(ctx context.Context, f *following) {
	e, err := Measure(ctx, m.cfg.Seconds, Ask{Plan: f.plan, JobNodes: f.jobNodes, NotBefore: f.since, Now: time.Now(),
		Ended: true})
	if err == nil {
		err = m.cfg.Desk.RecordEffect(ctx, f.plan.ID, e)
	}
	if err != nil && !errors.Is(err, remap.ErrState) && ctx.Err() == nil {
		m.cfg.Log.Warn("the effect of a plan could not be measured", "plan", f.plan.ID, "err", err)
	}
}

// measure reads the effect so far; done says that it is on record or cannot be.
func (m *Meter) measure(ctx context.Context, f *following) (done bool) {
	now := time.Now()
	e, err := Measure(ctx, m.cfg.Seconds, Ask{Plan: f.plan, JobNodes: f.jobNodes, NotBefore: f.since, Now: now,
		Ended: f.jobNodes != nil && !m.running(f.plan.Job)})
	if err == nil && e.Verdict != remap.Measuring {
		err = m.cfg.Desk.RecordEffect(ctx, f.plan.ID, e)
		if err == nil {
			m.set(f.plan.ID, nil)
			return true
		}
	}
	if err != nil {
		if now.Sub(f.plan.Changed) < tooLate {
			return false // the store or the journal may come back
		}
		m.cfg.Log.Warn("the effect of a plan could not be measured", "plan", f.plan.ID, "err", err)
		m.set(f.plan.ID, nil)
		return true
	}
	m.set(f.plan.ID, e)
	return false
}

func (m *Meter) running(job topology.JobID) bool {
	for _, j := range m.cfg.Situation().Jobs {
		if j.ID == job {
			return true
		}
	}
	return false
}
