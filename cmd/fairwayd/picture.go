package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/tsdb"
	"fairway/tsdb/window"
)

// picture puts together what the rooms know into the one Situation that people and policies see.
type picture struct {
	conf  *topology.Machine
	peak  float64 // of a forwarder that has none of its own
	board *window.Board
	store tsdb.Store
	log   *slog.Logger

	made atomic.Pointer[made] // the newest; read without a lock, so that nobody waits for the next one

	mu        sync.Mutex // guards everything that follows
	desk      *desk.Desk // nil until it is open
	findings  func() []anomaly.Finding
	jobs      func() []remap.Job
	machine   *topology.Machine
	learned   time.Time
	members   uint64
	index     *topology.Index // of machine
	occupancy map[topology.NodeID]float64
}

const (
	learnEvery           = 2 * time.Second        // forwarders seen only in routes are found this late
	situationEvery       = 100 * time.Millisecond // one picture serves all who ask within this time,
	situationShare       = 100                    // or within so many times what it took to make,
	situationAtMost      = 1500 * time.Millisecond
	occupancyEvery       = 10 * time.Second
	remoteOccupancyEvery = time.Minute
	occupancySpan        = time.Hour
)

func (p *picture) setDesk(d *desk.Desk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.desk = d
}

func (p *picture) setJobs(running func() []remap.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = running
}

func (p *picture) setFindings(findings func() []anomaly.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findings = findings
}

// Machine returns the configured nodes and those that were learned.
func (p *picture) Machine() *topology.Machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machineLocked(time.Now())
}

func (p *picture) machineLocked(now time.Time) *topology.Machine {
	m := p.board.Members()
	if p.machine != nil && m == p.members && now.Sub(p.learned) <= learnEvery {
		return p.machine
	}
	p.members, p.learned = m, now
	machine := p.board.Learn(*p.conf, now)
	for i := range machine.Nodes {
		if n := &machine.Nodes[i]; n.Role == topology.Forwarder && n.PeakBytesPerSec == 0 {
			n.PeakBytesPerSec = p.peak
		}
	}
	if p.machine == nil || !slices.Equal(machine.Nodes, p.machine.Nodes) {
		p.machine, p.index = machine, topology.NewIndex(machine)
	}
	return p.machine
}

// made is one picture, when it was made and how long that took.
type made struct {
	situation *remap.Situation
	at        time.Time
	took      time.Duration
}

// Situation returns a picture of now: of the last 100 ms, or on a machine so large that making one is
// work, of the last second and a half, for the frames come once a second. It is shared and must not
// be changed.
func (p *picture) Situation() *remap.Situation {
	m := p.made.Load()
	if m != nil && time.Since(m.at) < min(situationAtMost, max(situationEvery, situationShare*m.took)) {
		return m.situation
	}
	return p.Fresh()
}

// Fresh returns a picture of the last 100 ms.
func (p *picture) Fresh() *remap.Situation {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if m := p.made.Load(); m != nil && now.Sub(m.at) < situationEvery {
		return m.situation
	}
	s := p.makeLocked(now)
	p.made.Store(&made{s, now, time.Since(now)})
	return s
}

func (p *picture) makeLocked(now time.Time) *remap.Situation {
	machine := p.machineLocked(now)
	parts := remap.SituationParts{At: now, Machine: machine, Index: p.index, Routes: p.board.Routes(now),
		Load: map[topology.ForwarderID]remap.Load{}}
	if p.desk != nil {
		parts.Owner, parts.Excluded = p.desk.Owners(), p.desk.Excluded()
	}
	if p.findings != nil {
		parts.Findings = p.findings()
	}
	if p.jobs != nil {
		parts.Jobs = p.jobs()
	}
	s := remap.BuildSituation(parts)
	for _, n := range parts.Machine.ByRole(topology.Forwarder) {
		id := topology.ForwarderID(n.ID)
		if f, ok := p.board.Frame(n.ID); ok {
			s.Load[id] = p.load(&f, n, s.Clients[id], now)
		}
	}
	return s
}

func (p *picture) load(f *collector.Frame, n topology.Node, clients int, now time.Time) remap.Load {
	l := remap.Load{LastSeen: time.UnixMilli(f.TimeMillis + 1000), Connections: clients,
		PeakBytesPerSec: n.PeakBytesPerSec, Occupancy: p.occupancy[n.ID]}
	if l.LastSeen.After(now) {
		l.LastSeen = now
	}
	l.ReadBytesPerSec, _ = f.Value(collector.ReadBytes)
	l.MetaOpsPerSec, _ = f.Value(collector.MetaOps)
	l.WriteBytesPerSec, _ = f.Value(collector.WriteBytes)
	return l
}

// peaks returns the forwarders' peak bandwidths, bytes/s, where they are known.
func (p *picture) peaks() map[topology.NodeID]float64 {
	out := map[topology.NodeID]float64{}
	for _, n := range p.Machine().ByRole(topology.Forwarder) {
		if n.PeakBytesPerSec > 0 {
			out[n.ID] = n.PeakBytesPerSec
		}
	}
	return out
}

// racks returns where the nodes stand, as far as that is known.
func (p *picture) racks() map[topology.NodeID]string {
	out := map[topology.NodeID]string{}
	for _, n := range p.Machine().Nodes {
		if n.Rack != "" {
			out[n.ID] = n.Rack
		}
	}
	return out
}

// role returns what layer a node belongs to, as far as that is known.
func (p *picture) role(id topology.NodeID) topology.Role {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machineLocked(time.Now())
	return p.index.Role(id)
}

// keepOccupancy computes the forwarders' occupancy of the last hour now and then, until ctx ends,
// and tells the store the peaks that it is counted by, where setPeaks is not nil.
func (p *picture) keepOccupancy(ctx context.Context, setPeaks func(bytesPerSec map[topology.NodeID]float64,
	threshold float64)) {
	every := occupancyEvery
	if setPeaks == nil { // a server counts nothing ahead: the hour's seconds come over the network
		every = remoteOccupancyEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if setPeaks != nil {
			setPeaks(p.peaks(), tsdb.DefaultThreshold)
		}
		if err := p.countOccupancy(ctx, time.Now()); err != nil && ctx.Err() == nil {
			p.log.Warn("occupancy could not be read; the last known one is shown", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *picture) countOccupancy(ctx context.Context, now time.Time) error {
	q := tsdb.OccupancyQuery{FromMillis: now.Add(-occupancySpan).UnixMilli(), ToMillis: now.UnixMilli(),
		PeakBytesPerSec: p.peaks()}
	for node := range q.PeakBytesPerSec {
		q.Nodes = append(q.Nodes, node)
	}
	if len(q.Nodes) == 0 {
		return nil
	}
	answers, err := p.store.Occupancy(ctx, q)
	if err != nil {
		return err
	}
	found := make(map[topology.NodeID]float64, len(answers))
	for _, a := range answers {
		var sum tsdb.OccupancyBucket
		for _, b := range a.Buckets {
			sum.Occupied += b.Occupied
			sum.Seconds += b.Seconds
		}
		if sum.Seconds > 0 {
			found[a.Node] = sum.Share()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.occupancy = found
	return nil
}
