package effect

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
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

	later map[string]*later // by plan; Run's alone
}

// NewMeter returns a meter that Run sets to work.
func NewMeter(c Config) *Meter {
	return &Meter{cfg: c, newest: map[string]*remap.Effect{}, later: map[string]*later{}}
}

const (
	// tooLate is how old a move may be that nobody has measured, after a restart.
	tooLate = 10 * time.Minute
	// looksAt is how many plans are looked through at start: the newest.
	looksAt = 200
	// lookEvery is how often a plan is looked at that the first window has not decided: it reads much.
	lookEvery = 10 * time.Second
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
	of       string    // whose nodes are measured; empty: the moved ones
	since    time.Time // of the finding on the forwarder that it leaves
	then     *remap.Situation
	next     time.Time // to look, once the first window is over
	ended    time.Time // when its job was seen to have ended; zero: it runs
	mates    []topology.NodeID
}

// beside are the nodes that the plan did not move and nothing else did since.
func (f *following) beside(now *remap.Situation) (b Beside) {
	moved, left, reached := map[topology.NodeID]bool{}, map[topology.ForwarderID]bool{}, map[topology.ForwarderID]bool{}
	for _, m := range f.plan.Moves {
		moved[m.Node], left[m.From], reached[m.To] = true, true, true
	}
	of := map[topology.NodeID]bool{}
	for _, n := range f.mates {
		of[n] = true
	}
	mates, layer := map[topology.ForwarderID][]topology.NodeID{}, map[topology.ForwarderID][]topology.NodeID{}
	for n, at := range f.then.Used {
		switch {
		case moved[n] || now.Used[n] != at || reached[at]:
		case left[at]:
			b.Stayed = append(b.Stayed, n)
		case of[n]:
			mates[at] = append(mates[at], n)
		default:
			layer[at] = append(layer[at], n)
		}
	}
	slices.Sort(b.Stayed)
	b.Mates, b.Layer = byForwarder(mates), byForwarder(layer)
	for f := range layer {
		b.Forwarders = append(b.Forwarders, f.Node())
	}
	slices.Sort(b.Forwarders)
	return b
}

// byForwarder are groups of nodes in the order of their forwarders, so that the same ones are read each time.
func byForwarder(groups map[topology.ForwarderID][]topology.NodeID) (out [][]topology.NodeID) {
	for _, f := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[f])
		out = append(out, groups[f])
	}
	return out
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
			m.lookLater(ctx, time.Now())
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
	s := m.cfg.Situation()
	f := &following{plan: p, then: s, of: othersOf(&p)}
	if f.of != "" {
		f.plan.App, f.plan.Moves = "", served(s, &p)
		p.Moves = f.plan.Moves
	}
	moved := func(n topology.NodeID) bool {
		return slices.ContainsFunc(p.Moves, func(m remap.Move) bool { return m.Node == n })
	}
	for i := range s.Jobs {
		if s.Jobs[i].ID == p.Job && f.of == "" {
			f.jobNodes = s.Jobs[i].Nodes
		}
		if slices.ContainsFunc(s.Jobs[i].Nodes, moved) {
			f.mates = append(f.mates, s.Jobs[i].Nodes...)
		}
	}
	for _, move := range p.Moves {
		if g, ok := s.Accused(move.From); ok && g.Began().After(f.since) {
			f.since = g.Began()
		}
	}
	followed[id] = f
}

// othersOf says whose nodes are measured of a plan that limits its job; empty of one that moves nodes.
func othersOf(p *remap.Plan) string {
	if p.Limits() {
		return "the other jobs' nodes"
	}
	return ""
}

// served are moves of the nodes that a limit is for: those of other jobs behind its forwarders, which stay there.
func served(s *remap.Situation, p *remap.Plan) (out []remap.Move) {
	for i := range s.Jobs {
		if s.Jobs[i].ID == p.Job {
			continue
		}
		for _, n := range s.Jobs[i].Nodes {
			on := s.On(n)
			if len(on) == 1 && slices.ContainsFunc(p.Moves, func(m remap.Move) bool {
				return m.About() == on[0] ||
					!s.IsForwarder(m.About())
			}) {
				out = append(out, remap.Move{Node: n, From: on[0], To: on[0]})
			}
		}
	}
	return out
}

// end records what was measured of a plan whose job ended before the time was over.
func (m *Meter) end(ctx context.Context, f *following) {
	e, err := Measure(ctx, m.cfg.Seconds, m.ask(f, time.Now(), true))
	if err == nil {
		err = m.record(ctx, f, e)
	}
	if err != nil && !errors.Is(err, remap.ErrState) && ctx.Err() == nil {
		m.cfg.Log.Warn("the effect of a plan could not be measured", "plan", f.plan.ID, "err", err)
	}
}

// measure reads the effect so far; done says that it is on record or cannot be.
func (m *Meter) measure(ctx context.Context, f *following) (done bool) {
	now := time.Now()
	if f.ended.IsZero() && f.jobNodes != nil && !m.running(f.plan.Job) {
		f.ended = now
	}
	ended := !f.ended.IsZero() && now.Sub(f.ended) >= late // its last seconds are in the store
	if now.Before(f.next) && !ended {
		return false
	}
	if now.Sub(f.plan.Changed) >= Window+settle+late {
		f.next = now.Add(lookEvery)
	}
	until := now
	if ended {
		until = f.ended
	}
	e, err := Measure(ctx, m.cfg.Seconds, m.ask(f, until, ended))
	if err == nil && e.Verdict != remap.Measuring {
		err = m.record(ctx, f, e)
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

// record puts an effect on record. Where it is not known, the next runs of the application may show it.
func (m *Meter) record(ctx context.Context, f *following, e *remap.Effect) error {
	if err := m.cfg.Desk.RecordEffect(ctx, f.plan.ID, e); err != nil {
		return err
	}
	l, err := newLater(ctx, m.cfg.Seconds, f.plan, e)
	if l != nil {
		m.later[f.plan.ID] = l
	}
	return err
}

// lookLater adds later runs that have done their first minute.
func (m *Meter) lookLater(ctx context.Context, now time.Time) {
	for id, l := range m.later {
		for _, j := range l.due(m.cfg.Situation(), now) {
			ok, err := l.take(ctx, m.cfg.Seconds, &j)
			if ok && err == nil {
				err = m.cfg.Desk.RecordEffect(ctx, id, l.effect)
			}
			if err != nil && ctx.Err() == nil {
				m.cfg.Log.Warn("a later run of a plan's application could not be measured", "plan", id, "job", j.ID,
					"err", err)
			}
		}
		if l.over(now) {
			delete(m.later, id)
		}
	}
}

func (m *Meter) ask(f *following, now time.Time, ended bool) Ask {
	return Ask{Plan: f.plan, JobNodes: f.jobNodes, Of: f.of, NotBefore: f.since, Now: now, Ended: ended,
		Beside: func() Beside { return f.beside(m.cfg.Situation()) }}
}

func (m *Meter) running(job topology.JobID) bool {
	for _, j := range m.cfg.Situation().Jobs {
		if j.ID == job {
			return true
		}
	}
	return false
}
