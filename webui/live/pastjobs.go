package live

import (
	"context"
	"slices"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

// recallJobs names each forwarder's largest job of that second. The store keeps no shares of jobs, but what
// each compute node did and, in the history, which job had it: a job did what its nodes did.
func (p *past) recallJobs(ctx context.Context, m *moment, sit *remap.Situation) error {
	o := &m.overview
	if p.cfg.JobsAt == nil || p.cfg.JobsKnown == nil || !p.cfg.JobsKnown() {
		o.NotKept = append(o.NotKept, "jobs: no batch system reports them, so top jobs are not known")
		return nil
	}
	jobs, err := p.cfg.JobsAt(o.At)
	if err != nil {
		return err
	}
	o.Jobs, sit.Jobs = new(len(jobs)), jobs
	if err := p.forgetEnded(sit); err != nil {
		return err
	}
	m.jobs = ownersOf(jobs)
	quiet := map[topology.ForwarderID]bool{} // most are in most seconds: their clients need not be read
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		quiet[r.ID] = r.State == remap.ForwarderStale ||
			(r.Value(collector.ReadBytes) != nil || r.Value(collector.WriteBytes) != nil) &&
				orZero(r.Value(collector.ReadBytes))+orZero(r.Value(collector.WriteBytes))+
					orZero(r.Value(collector.MetaOps)) == 0
	}
	nodes := make([]topology.NodeID, 0, len(m.jobs))
	for n, job := range m.jobs {
		if f, ok := m.mapping[n]; ok && job != "" && !quiet[f] {
			nodes = append(nodes, n)
		}
	}
	o.NotKept = append(o.NotKept,
		"top jobs: by what their compute nodes did; those of nodes that two jobs had at once, or that nobody "+
			"measured, are left out")
	slices.Sort(nodes) // sums do not wobble
	frames, err := p.frames(ctx, nodes, o.At, collector.ReadBytes, collector.WriteBytes, collector.MetaOps)
	if err != nil {
		return err
	}
	on := map[topology.ForwarderID]map[topology.JobID]did{}
	for _, n := range nodes {
		if frames[n] == nil {
			continue
		}
		f := m.mapping[n]
		if on[f] == nil {
			on[f] = map[topology.JobID]did{}
		}
		on[f][m.jobs[n]] = on[f][m.jobs[n]].plus(didOf(frames[n].Samples), 1)
	}
	for i := range o.Forwarders {
		nameTopJob(&o.Forwarders[i], on[o.Forwarders[i].ID])
	}
	return nil
}

// forgetEnded takes the jobs off findings that had ended by then: a finding keeps whom it hurt until it changes.
func (p *past) forgetEnded(sit *remap.Situation) error {
	runs := func(jobs []remap.Job, id topology.JobID) bool {
		return slices.ContainsFunc(jobs, func(j remap.Job) bool { return j.ID == id })
	}
	for i := range sit.Findings {
		f := &sit.Findings[i]
		if !slices.ContainsFunc(f.Impact, func(hurt anomaly.Impact) bool { return !runs(sit.Jobs, hurt.Job) }) {
			continue
		}
		before, err := p.cfg.JobsAt(f.Changed)
		if err != nil {
			return err
		}
		f.Impact = slices.DeleteFunc(slices.Clone(f.Impact), func(hurt anomaly.Impact) bool {
			return runs(before, hurt.Job) && !runs(sit.Jobs, hurt.Job)
		})
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

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
