package desk

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
)

// plans answers what plans there are.
type plans struct {
	rec *recorder
	// What follows is published by the owner after each step.
	owners, claims atomic.Pointer[map[topology.ForwarderID]topology.JobID]
	promised       atomic.Pointer[map[topology.ForwarderID]string]
	promises       atomic.Pointer[topology.Mapping]
	limits         atomic.Pointer[remap.Limits]
	count          atomic.Pointer[map[remap.PlanState]int]
}

// publish shows the plans' dedications and counts to those who do not wait for the owner.
func (p *plans) publish() {
	t := &p.rec.state.plans
	owners, claims := map[topology.ForwarderID]topology.JobID{}, map[topology.ForwarderID]topology.JobID{}
	promised, promises := map[topology.ForwarderID]string{}, topology.Mapping{}
	limits := t.limits()
	for e := range t.unfinished {
		if e.Limits() {
			continue
		}
		if e.State.Moving() || e.State == remap.Applied { // applied: not seen there yet
			e.promise(promises)
		}
		if slices.Contains([]remap.PlanState{remap.Proposed, remap.Approved, remap.Applying, remap.Applied}, e.State) {
			last := topology.ForwarderID("") // neighbours go the same way, and there may be thousands
			for _, m := range e.Moves {
				if m.To != last {
					promised[m.To], last = e.ID, m.To
				}
			}
		}
		if !e.Dedicated || e.Back != nil { // what waits for its way back serves nobody alone any more
			continue
		}
		for _, m := range e.Moves {
			claims[m.To] = e.Job
			if e.State.Holds() {
				owners[m.To] = e.Job
			}
		}
	}
	count := maps.Clone(t.count)
	p.owners.Store(&owners)
	p.claims.Store(&claims)
	p.promised.Store(&promised)
	p.promises.Store(&promises)
	p.limits.Store(&limits)
	p.count.Store(&count)
}

// Owners returns the forwarders that plans have dedicated to a job. The map is never changed.
func (p *plans) Owners() map[topology.ForwarderID]topology.JobID { return *p.owners.Load() }

// Claims returns Owners and the forwarders that proposed plans would dedicate: whoever looks for free
// ones leaves both alone. The map is never changed.
func (p *plans) Claims() map[topology.ForwarderID]topology.JobID { return *p.claims.Load() }

// Promised returns the forwarders that plans send nodes to which are not there yet, with the newest such plan: they
// look idle still. The map is never changed.
func (p *plans) Promised() map[topology.ForwarderID]string { return *p.promised.Load() }

// Promises returns the nodes that plans under way are bringing somewhere, and where. The mapping is never changed.
func (p *plans) Promises() topology.Mapping { return *p.promises.Load() }

// promise adds where the plan's nodes will be when it is done. Nodes that go back to several forwarders are left out.
func (e *entry) promise(out topology.Mapping) {
	for i := range e.Moves {
		m := &e.Moves[i]
		switch {
		case e.Goal == "":
			out[m.Node] = m.To
		case m.From != "":
			out[m.Node] = m.From
		}
	}
}

// Plan returns one plan with its results, or ErrNotFound.
func (p *plans) Plan(ctx context.Context, id string) (out remap.Plan, err error) {
	t := &p.rec.state.plans
	err = p.rec.do(ctx, func() error {
		e, err := t.get(id)
		if err == nil {
			out = t.whole(e)
		}
		return err
	})
	return out, err
}

// Plans returns the newest plans first, at most limit (0: all). They have no results of moves, and those that have
// ended no moves: there may be thousands each. Plan returns one whole.
func (p *plans) Plans(ctx context.Context, limit int) (out []remap.Plan, err error) {
	err = p.rec.do(ctx, func() error {
		for e := range p.rec.state.plans.newest {
			if out = append(out, e.brief()); len(out) == limit {
				break
			}
		}
		return nil
	})
	return out, err
}

// Waiting returns the plans that wait for a person, the newest first, as Plans does.
func (p *plans) Waiting(ctx context.Context) (out []remap.Plan, err error) {
	err = p.rec.do(ctx, func() error {
		for e := range p.rec.state.plans.unfinished {
			if e.State == remap.Proposed {
				out = append(out, e.brief())
			}
		}
		return nil
	})
	slices.Reverse(out)
	return out, err
}

// OfJob returns the plans of a job, the newest first.
func (p *plans) OfJob(ctx context.Context, job topology.JobID) (out []remap.Plan, err error) {
	t := &p.rec.state.plans
	err = p.rec.do(ctx, func() error {
		for e := range t.newest {
			if e.Job == job {
				out = append(out, t.whole(e))
			}
		}
		return nil
	})
	return out, err
}

// JobPlan is a plan of a job in short.
type JobPlan struct {
	ID      string
	Job     topology.JobID
	Created time.Time
	State   remap.PlanState
}

// OfJobs returns the plans of many jobs in short, the newest first.
func (p *plans) OfJobs(ctx context.Context, jobs map[topology.JobID]bool) (out []JobPlan, err error) {
	err = p.rec.do(ctx, func() error {
		for e := range p.rec.state.plans.newest {
			if jobs[e.Job] {
				out = append(out, JobPlan{ID: e.ID, Job: e.Job, Created: e.Created, State: e.State})
			}
		}
		return nil
	})
	return out, err
}
