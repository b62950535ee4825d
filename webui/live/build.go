package live

import (
	"math"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// Snapshot is one immutable picture of the machine.
type Snapshot struct {
	Made    time.Time
	Machine *topology.Machine
	// Generation changes when the machine's list of nodes does, and with it the cells of a grid.
	Generation uint32
	Situation  *remap.Situation
	Overview   api.Overview // of nobody: User and Role are empty
	tops       map[topology.NodeID]topJob
	flow       func() Flow
}

// topJob is the job that did most on a node in its newest second.
type topJob struct {
	job topology.JobID
	did work
}

// work is what a job does somewhere in a second.
type work struct{ bytes, ops float64 }

func (w work) plus(o work) work { return work{w.bytes + o.bytes, w.ops + o.ops} }

// more says which of two does more: bytes count, and where none move, metadata operations.
func (w work) more(o work) bool { return w.bytes > o.bytes || w.bytes == o.bytes && w.ops > o.ops }

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
	o := api.Overview{
		Machine: s.Machine.Name, Simulated: p.cfg.Simulated, ComputeNodes: len(s.Machine.ByRole(topology.Compute)),
		Forwarders: make([]api.ForwarderRow, len(forwarders)), Findings: sit.Findings, Waiting: []api.PlanRow{},
	}
	if o.Findings == nil {
		o.Findings = []anomaly.Finding{}
	}
	if p.cfg.JobsKnown != nil && p.cfg.JobsKnown() {
		n := len(sit.Jobs)
		o.Jobs = &n
	}
	rows := make(map[topology.NodeID]*api.ForwarderRow, len(forwarders))
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
func newRow(sit *remap.Situation, n topology.Node) api.ForwarderRow {
	id := topology.ForwarderID(n.ID)
	load, seen := sit.Load[id]
	row := api.ForwarderRow{ID: id, Rack: n.Rack, PeakBytesPerSec: n.PeakBytesPerSec,
		State: api.ForwarderState(sit.State(id)), LastSeen: load.LastSeen.UTC()}
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
func (p *Picture) readBoard(s *Snapshot, rows map[topology.NodeID]*api.ForwarderRow, now time.Time) time.Time {
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
		if row.State != api.StateStale {
			fill(row, f)
		}
	})
	if newest == 0 {
		return time.Time{}
	}
	return time.UnixMilli(newest).UTC()
}

func fill(row *api.ForwarderRow, f *collector.Frame) {
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
		var did work
		for _, s := range j.Samples {
			switch s.Metric {
			case collector.ReadBytes, collector.WriteBytes:
				did.bytes += s.Value
			case collector.MetaOps:
				did.ops += s.Value
			}
		}
		if did.more(top.did) {
			top = topJob{j.Job, did}
		}
	}
	return top
}

// addPlans lists the plans that wait for a person and marks the forwarders that they touch.
func (p *Picture) addPlans(o *api.Overview, rows map[topology.NodeID]*api.ForwarderRow) {
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

// nameTopJobs finds the job that does most on each forwarder, from what the mounts and, where they are
// silent, the forwarder itself say of jobs.
func (s *Snapshot) nameTopJobs(rows map[topology.NodeID]*api.ForwarderRow) {
	did := map[topology.ForwarderID]map[topology.JobID]work{}
	for n, t := range s.tops {
		f, ok := s.Situation.Observed[n]
		if !ok {
			continue
		}
		if did[f] == nil {
			did[f] = map[topology.JobID]work{}
		}
		did[f][t.job] = did[f][t.job].plus(t.did)
	}
	for n, row := range rows {
		if row.State == api.StateStale {
			continue
		}
		if jobs := did[row.ID]; jobs != nil {
			nameTopJob(row, jobs)
		} else {
			row.TopJob = s.tops[n].job
		}
	}
}

// nameTopJob gives a row the job that does most there, with its share of what jobs move; of one that moves
// nothing and only works on metadata the name alone. One that does nothing is not named: it may be over.
func nameTopJob(row *api.ForwarderRow, jobs map[topology.JobID]work) {
	var most work
	total := 0.0
	for j, did := range jobs {
		total += did.bytes
		if did.more(most) || did == most && j < row.TopJob {
			row.TopJob, most = j, did
		}
	}
	if total > 0 {
		part := most.bytes / total
		row.TopJobShare = &part
	}
}
