package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// FromWatching marks a profile that was made while the run went on.
const FromWatching = "watching"

// Wait is how much of a run's time went into waiting for one forwarder.
type Wait struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	// Share is the part of its compute nodes' time, 0..1, in which operations were under way to that
	// forwarder. Operations at the same time on one node count once only where they fill a whole
	// second, so it is at most that much.
	Share float64 `json:"share"`
}

// Tick is what all nodes of a run did in the time since the tick before, as rates per second.
type Tick struct {
	At                     time.Time
	Seconds                float64 // that it stands for
	Nodes                  int     // that reported
	Read, Write, Ops, Meta float64
	PeakNode               float64 // bytes/s of the busiest node
	UnderWay               float64 // requests without an answer, the mean; 0 where nobody counts them
	// Timed counts the nodes that reported how long their operations took, Waiting how many of them were
	// waiting for a forwarder, on average.
	Timed   int
	Waiting map[topology.ForwarderID]float64
	// Looks counts the nodes whose processors were looked at, Busy adds up their shares, Memory is the largest of one
	// node's that is used; 0: not known.
	Looks        int
	Busy, Memory float64
}

// load adds up what a run's nodes used beside its I/O.
type load struct {
	busy, looks float64
	memory      float64 // the largest
}

// addCPU takes looks at processors, so long after the run's start. The first are of the time before it, too.
func (l *load) addCPU(after time.Duration, busy, looks float64) {
	if after >= collector.LoadEvery {
		l.busy, l.looks = l.busy+busy, l.looks+looks
	}
}

// into writes it into a profile.
func (l load) into(p *Profile) {
	if l.looks > 0 {
		mean := l.busy / l.looks
		p.CPUBusy = &mean
	}
	if l.memory > 0 {
		p.MemoryUsed = &l.memory
	}
}

// Meter makes the profile of a run while it goes on. A second that nobody reported counts as one
// without I/O, as it does in Build; Coverage says how many did.
type Meter struct {
	start, since, last time.Time
	nodes              float64
	p                  Profile
	gap                float64 // joins phases that are not further apart, seconds
	reported           float64 // node-seconds
	timed              float64
	waited             map[topology.ForwarderID]float64
	load               load
}

// NewMeter makes one for a run that began at start on so many nodes.
func NewMeter(start time.Time, nodes int) *Meter {
	return &Meter{start: start, nodes: float64(nodes), gap: phaseGap, waited: map[topology.ForwarderID]float64{}}
}

// Add takes the next tick.
func (m *Meter) Add(t *Tick) {
	begin := t.At.Add(-time.Duration(t.Seconds * float64(time.Second)))
	if m.since.IsZero() {
		m.since = begin
	}
	m.last = t.At
	p := &m.p
	p.ReadBytes += t.Read * t.Seconds
	p.WriteBytes += t.Write * t.Seconds
	p.MetaOps += t.Meta * t.Seconds
	p.PeakBytesPerSec = max(p.PeakBytesPerSec, t.Read+t.Write)
	p.PeakNodeBytesPerSec = max(p.PeakNodeBytesPerSec, t.PeakNode)
	p.PeakOpsPerSec = max(p.PeakOpsPerSec, t.Ops)
	m.reported += float64(t.Nodes) * t.Seconds
	m.timed += float64(t.Timed) * t.Seconds
	m.load.addCPU(t.At.Sub(m.start), t.Busy, float64(t.Looks))
	m.load.memory = max(m.load.memory, t.Memory)
	for f, n := range t.Waiting {
		m.waited[f] += n * t.Seconds
	}
	// A run that waits for an answer does I/O, though nothing moves.
	if t.Read+t.Write > 0 || t.Meta > 0 || t.UnderWay > 0 {
		p.IOSeconds += t.Seconds
		m.phase(max(0, begin.Sub(m.start).Seconds()), t)
	}
}

// phase goes on with the newest phase or begins one.
func (m *Meter) phase(at float64, t *Tick) {
	p := &m.p
	if n := len(p.Phases); n == 0 || at-p.Phases[n-1].AtSeconds-p.Phases[n-1].Seconds >= m.gap {
		p.Phases = append(p.Phases, Phase{AtSeconds: at})
	}
	last := &p.Phases[len(p.Phases)-1]
	last.Seconds = at + t.Seconds - last.AtSeconds
	last.ReadBytes += t.Read * t.Seconds
	last.WriteBytes += t.Write * t.Seconds
	last.MetaOps += t.Meta * t.Seconds
	for len(p.Phases) > maxPhases {
		m.gap *= 2
		p.Phases = Joined(p.Phases, m.gap)
	}
}

// Joined joins phases that are at most gap seconds apart, in place.
func Joined(phases []Phase, gap float64) []Phase {
	out := phases[:1]
	for _, p := range phases[1:] {
		last := &out[len(out)-1]
		if p.AtSeconds-last.AtSeconds-last.Seconds > gap {
			out = append(out, p)
			continue
		}
		last.Seconds = p.AtSeconds + p.Seconds - last.AtSeconds
		last.ReadBytes, last.WriteBytes, last.MetaOps = last.ReadBytes+p.ReadBytes, last.WriteBytes+p.WriteBytes,
			last.MetaOps+p.MetaOps
	}
	return out
}

// Since is when watching began: after the run's start where the daemon was started later. It is zero
// before the first tick.
func (m *Meter) Since() time.Time { return m.since }

// Profile is what the run did up to the newest tick, nil before the first one. IONodes and MetaQueue
// are not known while a run goes on.
func (m *Meter) Profile() *Profile {
	if m.since.IsZero() {
		return nil
	}
	p := m.p
	p.From, p.StepSeconds = FromWatching, 1
	p.Phases = slices.Clone(p.Phases)
	if all := m.nodes * m.last.Sub(m.start).Seconds(); all > 0 {
		p.Coverage = min(1, m.reported/all)
	}
	p.Waits = m.Waits()
	m.load.into(&p)
	return &p
}

// Waits says which forwarders the run waited for, the longest first; nil where no node reported how long
// its operations took.
func (m *Meter) Waits() []Wait {
	if m.timed == 0 {
		return nil
	}
	out := make([]Wait, 0, len(m.waited))
	for _, f := range slices.Sorted(maps.Keys(m.waited)) {
		out = append(out, Wait{f, min(1, m.waited[f]/m.timed)})
	}
	slices.SortStableFunc(out, func(a, b Wait) int { return cmp.Compare(b.Share, a.Share) })
	return out[:min(len(out), maxWaits)]
}

// maxWaits bounds what is kept of a run that used very many forwarders.
const maxWaits = 64
