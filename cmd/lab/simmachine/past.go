package simmachine

import (
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

// PastRun is a run that has ended, as its accounting and its I/O logs show it. Volumes are bytes, peaks 1/s.
type PastRun struct {
	Job
	End                 time.Time
	IONodes             int
	ReadBytes           float64
	WriteBytes          float64
	PeakBytesPerSec     float64
	PeakNodeBytesPerSec float64
	PeakOpsPerSec       float64
	MetaOps             float64
	MetaQueue           float64 // metadata operations waiting at its forwarders, mean of the seconds with I/O
	IOSeconds           float64
}

// Ended are the runs that ended since the last call.
func (m *Machine) Ended() []PastRun {
	out := m.ended
	m.ended = nil
	return out
}

// count adds a job's second of I/O to what it has done.
func (r *PastRun) count(read, write, meta, ops, node, queue float64) {
	r.ReadBytes, r.WriteBytes, r.MetaOps = r.ReadBytes+read, r.WriteBytes+write, r.MetaOps+meta
	r.PeakBytesPerSec, r.PeakOpsPerSec = max(r.PeakBytesPerSec, read+write), max(r.PeakOpsPerSec, ops)
	r.PeakNodeBytesPerSec = max(r.PeakNodeBytesPerSec, node)
	r.MetaQueue = (r.MetaQueue*r.IOSeconds + queue) / (r.IOSeconds + 1)
	r.IOSeconds++
}

// past is a job that has just ended.
func (m *Machine) past(j *job) PastRun {
	r := j.did
	r.Job, r.End, r.IONodes = m.describe(j), m.now, j.io
	return r
}

// Busiest is the forwarder whose slowness somebody notices at once and can be helped: most of its clients run one job
// that has much I/O before it and nodes elsewhere. Of those with one job alone, or else of the others, it is the one
// with the most I/O; false while nobody does I/O.
func (m *Machine) Busiest() (id topology.ForwarderID, ok bool) {
	clients := make([]int, len(m.fwds)) // with a job
	for i := range m.compute {
		if m.compute[i].job != nil {
			clients[m.compute[i].fwd]++
		}
	}
	most := 0.0
	for _, j := range m.jobs {
		left := (j.left.read + j.left.write) / float64(j.io)
		if j.app.mode != topology.ModeNN || left <= 0 {
			continue
		}
		for _, w := range m.waysOf(j) {
			part := w.n / float64(clients[w.fwd])
			if part < mostly || int(w.n) == j.io {
				continue
			}
			worth := left * part
			if part == 1 { // one victim is the clearest story
				worth *= 1e3
			}
			if worth > most {
				most, id, ok = worth, m.fwds[w.fwd].id, true
			}
		}
	}
	return id, ok
}

// mostly is the least share of a forwarder's clients that run its main job.
const mostly = 0.6
