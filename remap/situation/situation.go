// Package situation builds the immutable snapshot of the machine that people and policies decide on: the
// newest second of the window, the occupancy from the store, and what desk, detectors and batch
// system know.
package situation

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb"
	"fairway/tsdb/window"
)

// Config is what situations are built from.
type Config struct {
	Machine *topology.Machine // as configured
	// PeakBytesPerSec is of a forwarder that has none of its own.
	PeakBytesPerSec float64
	Board           *window.Board
	Store           tsdb.Store // for the occupancy
	Log             *slog.Logger
}

// Desk is what a situation shows of the desk. The maps are never changed.
type Desk interface {
	Owners() map[topology.ForwarderID]topology.JobID
	Excluded() map[topology.ForwarderID]string // the reason
	Promises() topology.Mapping                // of plans under way
}

// Builder builds situations. Its methods may be called concurrently.
type Builder struct {
	cfg  Config
	made atomic.Pointer[made] // the newest; read without a lock, so that readers do not wait for the next one

	mu        sync.Mutex // guards everything that follows
	desk      Desk       // nil until it is open
	findings  func() []anomaly.Finding
	jobs      func() []remap.Job
	machine   *topology.Machine
	learned   time.Time
	members   int
	index     *topology.Index // of machine
	occupancy map[topology.NodeID]float64
}

// New returns a builder of a machine without desk, findings and jobs.
func New(cfg Config) *Builder { return &Builder{cfg: cfg} }

const (
	learnEvery           = 2 * time.Second        // a forwarder that only routes name is found within this time
	situationEvery       = 100 * time.Millisecond // one situation serves all who ask within this time,
	situationShare       = 100                    // or within this many times what it took to build,
	situationAtMost      = 1500 * time.Millisecond
	occupancyEvery       = 10 * time.Second
	remoteOccupancyEvery = time.Minute
	occupancySpan        = time.Hour
)

// SetDesk has situations show the plans and exclusions of a desk.
func (b *Builder) SetDesk(d Desk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.desk = d
}

// SetJobs has situations show the running jobs.
func (b *Builder) SetJobs(running func() []remap.Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs = running
}

// SetFindings has situations show findings.
func (b *Builder) SetFindings(findings func() []anomaly.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.findings = findings
}

// Machine returns the configured nodes and those that were learned from frames and routes.
func (b *Builder) Machine() *topology.Machine {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.machineLocked(time.Now())
}

func (b *Builder) machineLocked(now time.Time) *topology.Machine {
	m := b.cfg.Board.Members()
	if b.machine != nil && m == b.members && now.Sub(b.learned) <= learnEvery {
		return b.machine
	}
	b.members, b.learned = m, now
	machine := b.cfg.Board.Learn(*b.cfg.Machine, now)
	for i := range machine.Nodes {
		if n := &machine.Nodes[i]; n.Role == topology.Forwarder && n.PeakBytesPerSec == 0 {
			n.PeakBytesPerSec = b.cfg.PeakBytesPerSec
		}
	}
	if b.machine == nil || !slices.Equal(machine.Nodes, b.machine.Nodes) {
		b.machine, b.index = machine, topology.NewIndex(machine)
	}
	return b.machine
}

// made is one situation, when it was built and how long that took.
type made struct {
	situation *remap.Situation
	at        time.Time
	took      time.Duration
}

// Situation returns a situation of the last 100 ms, or on a machine so large that building one is work, of the last
// second and a half: frames come once a second. It is shared and must not be changed.
func (b *Builder) Situation() *remap.Situation {
	m := b.made.Load()
	if m != nil && time.Since(m.at) < min(situationAtMost, max(situationEvery, situationShare*m.took)) {
		return m.situation
	}
	return b.Fresh()
}

// Fresh returns a situation of the last 100 ms. It is shared and must not be changed.
func (b *Builder) Fresh() *remap.Situation {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if m := b.made.Load(); m != nil && now.Sub(m.at) < situationEvery {
		return m.situation
	}
	s := b.makeLocked(now)
	b.made.Store(&made{s, now, time.Since(now)})
	return s
}

func (b *Builder) makeLocked(now time.Time) *remap.Situation {
	machine := b.machineLocked(now)
	parts := remap.SituationParts{At: now, Machine: machine, Index: b.index, Routes: b.cfg.Board.Routes(now),
		Load: map[topology.ForwarderID]remap.Load{}}
	if b.desk != nil {
		parts.Owner, parts.Excluded, parts.Promised = b.desk.Owners(), b.desk.Excluded(), b.desk.Promises()
	}
	if b.findings != nil {
		parts.Findings = b.findings()
	}
	if b.jobs != nil {
		parts.Jobs = b.jobs()
	}
	s := remap.BuildSituation(parts)
	forwarders := parts.Machine.ByRole(topology.Forwarder)
	ids := make([]topology.NodeID, len(forwarders))
	for i, n := range forwarders {
		ids[i] = n.ID
	}
	b.cfg.Board.Nodes(ids, func(i int, f *window.Node) {
		id := topology.ForwarderID(f.Node)
		s.Load[id] = b.load(&f.Frame, forwarders[i], s.Clients[id], now)
	})
	return s
}

func (b *Builder) load(f *collector.Frame, n topology.Node, clients int, now time.Time) remap.Load {
	l := remap.LoadOfFrame(f, n.PeakBytesPerSec, now)
	l.Connections = clients
	if len(f.Targets) == 1 && !f.Targets[0].Target.IsNID() {
		l.BackEnd = topology.NodeID(f.Targets[0].Target)
	}
	if share, counted := b.occupancy[n.ID]; counted {
		l.Occupancy = &share
	}
	return l
}

// Peaks returns the forwarders' peak bandwidths, bytes/s, where they are known.
func (b *Builder) Peaks() map[topology.NodeID]float64 {
	out := map[topology.NodeID]float64{}
	for _, n := range b.Machine().ByRole(topology.Forwarder) {
		if n.PeakBytesPerSec > 0 {
			out[n.ID] = n.PeakBytesPerSec
		}
	}
	return out
}

// Racks returns the racks of the nodes, where they are known.
func (b *Builder) Racks() map[topology.NodeID]string {
	out := map[topology.NodeID]string{}
	for _, n := range b.Machine().Nodes {
		if n.Rack != "" {
			out[n.ID] = n.Rack
		}
	}
	return out
}

// Role returns the layer of a node, where it is known.
func (b *Builder) Role(id topology.NodeID) topology.Role {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machineLocked(time.Now())
	return b.index.Role(id)
}

// KeepOccupancy computes the forwarders' occupancy of the last hour now and then, until ctx ends. setPeaks gives
// the store the peaks that it counts occupancy by; nil for a store that does not count ahead.
func (b *Builder) KeepOccupancy(ctx context.Context, setPeaks func(bytesPerSec map[topology.NodeID]float64)) {
	every := occupancyEvery
	if setPeaks == nil { // the hour's seconds come over the network
		every = remoteOccupancyEvery
	}
	pace.Every(ctx, 0, every, func(time.Time) {
		if setPeaks != nil {
			setPeaks(b.Peaks())
		}
		if err := b.countOccupancy(ctx, time.Now()); err != nil && ctx.Err() == nil {
			b.cfg.Log.Warn("the forwarders' occupancy could not be read; the last one is shown", "err", err)
		}
	})
}

func (b *Builder) countOccupancy(ctx context.Context, now time.Time) error {
	q := tsdb.OccupancyQuery{FromMillis: now.Add(-occupancySpan).UnixMilli(), ToMillis: now.UnixMilli(),
		PeakBytesPerSec: b.Peaks()}
	if q.Nodes = slices.Collect(maps.Keys(q.PeakBytesPerSec)); len(q.Nodes) == 0 {
		return nil
	}
	answers, err := b.cfg.Store.Occupancy(ctx, q)
	if err != nil {
		return err
	}
	found := make(map[topology.NodeID]float64, len(answers))
	for _, a := range answers {
		var sum tsdb.OccupancyBucket
		for _, one := range a.Buckets {
			sum.Occupied += one.Occupied
			sum.Seconds += one.Seconds
		}
		if sum.Seconds > 0 {
			found[a.Node] = sum.Share()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.occupancy = found
	return nil
}

// ForWatch is what the detectors' loop must know of a situation. The exclusions are the desk's newest: the
// situation's may be a moment old.
func ForWatch(s *remap.Situation, exclusions []remap.Exclusion) *watch.Machine {
	m := &watch.Machine{Forwarders: s.Index.Forwarders(), Excluded: map[topology.NodeID]string{}, Mapping: s.Used}
	for _, n := range s.SpreadNodes() {
		if m.Spread == nil {
			m.Spread = map[topology.NodeID][]topology.Share{}
		}
		m.Spread[n] = s.SpreadOf(n)
	}
	m.Healthy, _ = s.Healthy()
	m.Peaks = make(map[topology.NodeID]float64, len(s.Load))
	for f, l := range s.Load {
		m.Peaks[f.Node()] = l.PeakBytesPerSec
	}
	for _, e := range exclusions {
		m.Excluded[e.Forwarder.Node()] = e.By
		if e.Maintenance {
			if m.Quiet == nil {
				m.Quiet = map[topology.NodeID]bool{}
			}
			m.Quiet[e.Forwarder.Node()] = true
		}
	}
	for i := range s.Jobs {
		m.Jobs = append(m.Jobs, watch.Job{ID: s.Jobs[i].ID, Nodes: s.Jobs[i].Nodes})
	}
	return m
}
