package live

import (
	"context"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console"
	"fairway/remap"
	"fairway/tsdb"
)

// recallJobs names each forwarder's largest job of that second. The store keeps no shares of jobs, but the
// bytes of each compute node and, in the history, which job had it: a job's bytes are those of its nodes.
func (p *Picture) recallJobs(ctx context.Context, m *moment) error {
	o := &m.overview
	if p.cfg.JobsAt == nil || p.cfg.JobsKnown == nil || !p.cfg.JobsKnown() {
		o.NotKept = append(o.NotKept, "jobs: no batch system tells of them, so top jobs are not known")
		return nil
	}
	jobs, err := p.cfg.JobsAt(o.At)
	if err != nil {
		return err
	}
	n := len(jobs)
	o.Jobs = &n
	m.jobs = ownersOf(jobs)
	quiet := map[topology.ForwarderID]bool{} // most are in most seconds: their clients need not be read
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		quiet[r.ID] = r.State == console.StateStale || (r.ReadBytesPerSec != nil || r.WriteBytesPerSec != nil) && orZero(r.ReadBytesPerSec)+orZero(r.WriteBytesPerSec) == 0
	}
	nodes := make([]topology.NodeID, 0, len(m.jobs))
	for n, job := range m.jobs {
		if f, ok := m.mapping[n]; ok && job != "" && !quiet[f] {
			nodes = append(nodes, n)
		}
	}
	o.NotKept = append(o.NotKept, "top jobs: by the bytes of their compute nodes; those of nodes that two jobs had at once, or that nobody measured, are left out")
	if len(nodes) == 0 {
		return nil
	}
	moved := map[topology.ForwarderID]map[topology.JobID]float64{}
	for _, metric := range []collector.Metric{collector.ReadBytes, collector.WriteBytes} {
		err := p.newest(ctx, nodes, metric, o.At, func(n topology.NodeID, newest tsdb.Point) {
			f := m.mapping[n]
			if moved[f] == nil {
				moved[f] = map[topology.JobID]float64{}
			}
			moved[f][m.jobs[n]] += newest.Value
		})
		if err != nil {
			return err
		}
	}
	for i := range o.Forwarders {
		nameTopJob(&o.Forwarders[i], moved[o.Forwarders[i].ID])
	}
	return nil
}

// ownersOf is the job of each node; "" where two had it at once.
func ownersOf(jobs []remap.Job) map[topology.NodeID]topology.JobID {
	owners := map[topology.NodeID]topology.JobID{}
	for i := range jobs {
		for _, n := range jobs[i].Nodes {
			if before, ok := owners[n]; ok && before != jobs[i].ID {
				owners[n] = ""
				continue
			}
			owners[n] = jobs[i].ID
		}
	}
	return owners
}

// nameTopJob gives a row the job that moved most, and its share of what jobs moved there. One that moved
// nothing is nobody's.
func nameTopJob(row *console.ForwarderRow, moved map[topology.JobID]float64) {
	most, total := 0.0, 0.0
	for j, b := range moved {
		total += b
		if b > most || b == most && b > 0 && j < row.TopJob {
			row.TopJob, most = j, b
		}
	}
	if total > 0 {
		part := most / total
		row.TopJobShare = &part
	}
}
