package live

import (
	"math"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console"
	"fairway/remap"
)

// Snapshot is one immutable picture of the machine.
type Snapshot struct {
	Made    time.Time
	Machine *topology.Machine
	// Generation changes when the machine's list of nodes does, and with it the cells of a grid.
	Generation uint32
	Situation  *remap.Situation
	Overview   console.Overview // of nobody: User and Role are empty
	tops       map[topology.NodeID]topJob
	flow       func() Flow
}

// topJob is the job with the largest share of a node's bytes in its newest second.
type topJob struct {
	job         topology.JobID
	bytesPerSec float64
}

// build makes the snapshot that follows old.
func (p *Picture) build(old *Snapshot) *Snapshot {
	sit := p.cfg.Situation()
	now := time.Now()
	s := &Snapshot{Made: now, Machine: sit.Machine, Generation: 1, Situation: sit, tops: map[topology.NodeID]topJob{}}
	s.flow = sync.OnceValue(func() Flow { return p.countFlow(s) })
	if old != nil {
		s.Generation = old.Generation
		if !sameNodes(old.Machine, s.Machine) {
			s.Generation++
		}
	}
	forwarders := s.Machine.ByRole(topology.Forwarder)
	o := console.Overview{
		Machine: s.Machine.Name, Simulated: p.cfg.Simulated, ComputeNodes: len(s.Machine.ByRole(topology.Compute)),
		Forwarders: make([]console.ForwarderRow, len(forwarders)), Findings: sit.Findings, Waiting: []console.PlanRow{},
	}
	if o.Findings == nil {
		o.Findings = []anomaly.Finding{}
	}
	if p.cfg.JobsKnown != nil && p.cfg.JobsKnown() {
		n := len(sit.Jobs)
		o.Jobs = &n
	}
	rows := make(map[topology.NodeID]*console.ForwarderRow, len(forwarders))
	for i, n := range forwarders {
		o.Forwarders[i] = newRow(sit, n)
		rows[n.ID] = &o.Forwarders[i]
	}
	for _, f := range sit.Observed {
		if row := rows[f.Node()]; row != nil {
			row.Clients++
		}
	}
	o.At = p.readBoard(s, rows, now)
	s.nameTopJobs(rows)
	p.addPlans(&o, rows)
	s.Overview = o
	return s
}

// newRow is a forwarder's line without its newest values.
func newRow(sit *remap.Situation, n topology.Node) console.ForwarderRow {
	id := topology.ForwarderID(n.ID)
	load, seen := sit.Load[id]
	row := console.ForwarderRow{ID: id, Rack: n.Rack, PeakBytesPerSec: n.PeakBytesPerSec, State: console.ForwarderState(sit.State(id)), LastSeen: load.LastSeen.UTC()}
	if !seen {
		row.LastSeen = time.Time{}
	}
	if n.PeakBytesPerSec > 0 && seen { // without a peak no second can count as occupied
		row.Occupancy = &load.Occupancy
	}
	return row
}

// readBoard fills in every forwarder's newest second and every node's top job; it returns the
// newest second of a forwarder. A stale row stays empty: old numbers lie.
func (p *Picture) readBoard(s *Snapshot, rows map[topology.NodeID]*console.ForwarderRow, now time.Time) time.Time {
	newest, latest := int64(0), now.Add(maxAhead).UnixMilli()
	oldest := now.Add(-remap.StaleAfter - time.Second).UnixMilli()
	p.cfg.Board.Visit(func(f *collector.Frame) {
		if len(f.Jobs) > 0 && f.TimeMillis >= oldest {
			s.tops[f.Node] = topOf(f)
		}
		row := rows[f.Node]
		if row == nil {
			return
		}
		if f.TimeMillis > newest && f.TimeMillis <= latest {
			newest = f.TimeMillis
		}
		if row.State != console.StateStale {
			fill(row, f)
		}
	})
	if newest == 0 {
		return time.Time{}
	}
	return time.UnixMilli(newest).UTC()
}

func fill(row *console.ForwarderRow, f *collector.Frame) {
	for _, m := range f.Samples {
		v := m.Value
		switch m.Metric {
		case collector.ReadBytes:
			row.ReadBytesPerSec = known(v)
		case collector.WriteBytes:
			row.WriteBytesPerSec = known(v)
		case collector.QueueLen:
			row.QueueLen = known(v)
		case collector.MetaWait:
			row.MetaWaitSeconds = known(v)
		case collector.ServerTime:
			row.ServerTime = known(v)
		case collector.MetaOps:
			row.MetaOpsPerSec = known(v)
		case collector.Errors:
			row.ErrorsPerSec = known(v)
		}
	}
}

// known leaves out what is not a number.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func topOf(f *collector.Frame) (top topJob) {
	for _, j := range f.Jobs {
		bytes := 0.0
		for _, s := range j.Samples {
			if s.Metric == collector.ReadBytes || s.Metric == collector.WriteBytes {
				bytes += s.Value
			}
		}
		if top.job == "" || bytes > top.bytesPerSec {
			top = topJob{j.Job, bytes}
		}
	}
	return top
}

// addPlans lists the plans that wait for a person and marks the forwarders that they touch.
func (p *Picture) addPlans(o *console.Overview, rows map[topology.NodeID]*console.ForwarderRow) {
	for i := range p.plans {
		q := &p.plans[i]
		o.Waiting = append(o.Waiting, PlanRow(q))
		for _, m := range q.Moves {
			for _, id := range []topology.ForwarderID{m.From, m.To} {
				if row := rows[id.Node()]; row != nil {
					row.Plan = q.ID
				}
			}
		}
	}
}

// nameTopJobs finds the job with the largest share of each forwarder's bytes, from what the mounts
// and, where they are silent, the forwarder itself say of jobs.
func (s *Snapshot) nameTopJobs(rows map[topology.NodeID]*console.ForwarderRow) {
	bytes := map[topology.ForwarderID]map[topology.JobID]float64{}
	for n, t := range s.tops {
		f, ok := s.Situation.Observed[n]
		if !ok {
			continue
		}
		if bytes[f] == nil {
			bytes[f] = map[topology.JobID]float64{}
		}
		bytes[f][t.job] += t.bytesPerSec
	}
	for n, row := range rows {
		if row.State == console.StateStale {
			continue
		}
		jobs := bytes[row.ID]
		if jobs == nil {
			row.TopJob = s.tops[n].job
			continue
		}
		most, total := 0.0, 0.0
		for j, b := range jobs {
			total += b
			if row.TopJob == "" || b > most || b == most && j < row.TopJob {
				row.TopJob, most = j, b
			}
		}
		if total > 0 {
			part := most / total
			row.TopJobShare = &part
		}
	}
}
