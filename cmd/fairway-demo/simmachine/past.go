package simmachine

import (
	"math/rand/v2"
	"time"

	"fairway/collector/topology"
)

// Changes are the jobs that began, in the order of their start, and those that ended since the last
// call: what a scheduler's prolog and epilog would report. The first call lists every running job.
func (m *Machine) Changes() (began []Job, ended []topology.JobID) {
	running := make(map[topology.JobID]bool, len(m.jobs))
	for _, j := range m.jobs {
		if running[j.id] = true; !m.listed[j.id] {
			began = append(began, m.describe(j))
		}
	}
	for id := range m.listed {
		if !running[id] {
			ended = append(ended, id)
		}
	}
	m.listed = running
	return began, ended
}

// PastRun is a run of before the machine's first second, as its accounting and its I/O logs would show
// of it. Volumes are bytes, peaks 1/s.
type PastRun struct {
	Job
	NodeCount           int // Nodes is empty: where it ran is forgotten
	End                 time.Time
	IONodes             int
	ReadBytes           float64
	WriteBytes          float64
	PeakBytesPerSec     float64
	PeakNodeBytesPerSec float64
	PeakOpsPerSec       float64
	MetaOps             float64
	MetaQueue           float64 // metadata operations waiting at a forwarder, mean
	IOSeconds           float64
}

// metaSeconds is what a metadata operation takes on an idle forwarder.
const metaSeconds = 2e-4

// Past makes up as many runs of every program at every size as are asked for, the newest ending before
// now, on a machine that repeats sizes: what the model does without waiting, and volumes that differ by some percent
// from run to run.
func (m *Machine) Past(now time.Time, each int) []PastRun {
	rng := rand.New(rand.NewPCG(m.cfg.Seed, 2))
	var out []PastRun
	for i := range each {
		for k := range apps {
			a := &apps[k]
			for _, nodes := range a.sizes(m.scale()) {
				r := m.pastRun(a, nodes, rng)
				r.End = now.Add(-time.Duration(each-i)*6*time.Hour + time.Duration(rng.Float64()*float64(time.Hour)))
				r.Start = r.End.Add(-time.Duration(m.cfg.JobSeconds * (0.8 + 0.4*rng.Float64()) * float64(time.Second)))
				r.ID = topology.JobID("past-" + r.App + "-" + r.End.UTC().Format("0102-150405"))
				out = append(out, r)
			}
		}
	}
	return out
}

func (m *Machine) pastRun(a *app, nodes int, rng *rand.Rand) PastRun {
	r := PastRun{Job: Job{User: a.user, App: a.name, Mode: a.mode}, NodeCount: nodes, IONodes: nodes}
	if a.mode == Mode11 {
		r.IONodes = 1
	}
	io, phases := float64(r.IONodes), max(1, m.cfg.JobSeconds/a.period)*(0.97+0.06*rng.Float64())
	r.ReadBytes, r.WriteBytes = io*a.readBytes*phases, io*a.writeBytes*phases
	w := m.wish(&job{app: a, io: r.IONodes, left: phase{read: io * a.readBytes, write: io * a.writeBytes,
		meta: io * a.metaPerNode}})
	r.PeakNodeBytesPerSec = w.read + w.write
	r.PeakBytesPerSec = io * r.PeakNodeBytesPerSec
	r.PeakOpsPerSec = r.PeakBytesPerSec / a.request
	r.MetaOps = io * a.metaPerNode * 10 * phases
	perForwarder := min(io, float64(m.cfg.Compute)/float64(m.cfg.InService))
	r.MetaQueue = perForwarder * a.metaPerNode * metaSeconds
	if r.PeakNodeBytesPerSec > 0 {
		r.IOSeconds = phases * max(1, (a.readBytes+a.writeBytes)/r.PeakNodeBytesPerSec)
	}
	return r
}
