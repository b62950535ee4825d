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

// Busiest is the forwarder with the most I/O before it, among those whose clients all run one job that has more of them
// elsewhere; false while nobody does I/O.
func (m *Machine) Busiest() (id topology.ForwarderID, ok bool) {
	one := make(map[int]*job, len(m.fwds)) // nil: several
	for i := range m.compute {
		c := &m.compute[i]
		if c.job == nil {
			continue
		}
		if j, seen := one[c.fwd]; seen && j != c.job {
			one[c.fwd] = nil
		} else if !seen {
			one[c.fwd] = c.job
		}
	}
	most := 0.0
	for i := range m.fwds {
		j := one[i]
		if j == nil || j.app.mode != ModeNN || j.io <= m.fwds[i].clients {
			continue
		}
		if left := (j.left.read + j.left.write) / float64(j.io); left > most {
			most, id, ok = left, m.fwds[i].id, true
		}
	}
	return id, ok
}
