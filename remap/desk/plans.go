package desk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"fairway/anomaly"
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
		for _, e := range p.rec.state.plans.waiting() {
			out = append(out, e.brief())
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

// Queues keep jobs to the limits of plans (Limits), at the queues of forwarders and at object servers.
type Queues interface {
	// CanLimit says why a node keeps no limits; empty: it does.
	CanLimit(topology.NodeID) string
	// Settle waits until each node of a plan says that it keeps the limit, 0 for none, and reports as a remap.Driver
	// does.
	Settle(ctx context.Context, p remap.Plan, report func(remap.Result)) error
	// Keeps says whether a node has reported since then that it keeps a limit of a job, or with 0 none.
	Keeps(n topology.NodeID, job topology.JobID, limit float64, since time.Time) bool
}

// Limits returns the limits that plans in force set. The map is never changed.
func (p *plans) Limits() remap.Limits { return *p.limits.Load() }

// limits are those that plans have set, or are setting; of several of a job at a node the least.
func (t *planTable) limits() remap.Limits {
	out := remap.Limits{}
	for e := range t.unfinished {
		if !e.Limits() || e.Goal != "" || !slices.Contains([]remap.PlanState{remap.Applying, remap.Applied,
			remap.Verified, remap.Partial}, e.State) {
			continue
		}
		for _, m := range e.Moves {
			if out[m.Node] == nil {
				out[m.Node] = map[topology.JobID]float64{}
			}
			if other, limited := out[m.Node][e.Job]; !limited || m.Limit < other {
				out[m.Node][e.Job] = m.Limit
			}
		}
	}
	return out
}

// checkLimits is checkRequest of limits.
func checkLimits(r *remap.Request, s *remap.Situation) ([]remap.Move, error) {
	if !slices.ContainsFunc(s.Jobs, func(j remap.Job) bool { return string(j.ID) == r.Job }) {
		return nil, fmt.Errorf("%w: job %q does not run here: a limit is for a running job", remap.ErrInvalid, r.Job)
	}
	seen := map[topology.NodeID]bool{}
	for _, m := range r.Moves {
		switch role := s.Index.Role(m.Node); {
		case role != topology.Forwarder && role != topology.Storage:
			return nil, fmt.Errorf("%w: %q is not a forwarding node or object server of %s", remap.ErrInvalid,
				m.Node, s.Machine.Name)
		case seen[m.Node]:
			return nil, fmt.Errorf("%w: %q is there twice", remap.ErrInvalid, m.Node)
		case !(m.Limit >= remap.LeastLimit && m.Limit < 1):
			return nil, fmt.Errorf("%w: a limit of %g: want %g up to below 1 of what %s does", remap.ErrInvalid,
				m.Limit, remap.LeastLimit, m.Node)
		case m.To != "" || r.Dedicated || r.Force:
			return nil, fmt.Errorf("%w: a plan either limits a job or moves nodes", remap.ErrInvalid)
		}
		seen[m.Node] = true
	}
	return slices.Clone(r.Moves), nil
}

// checkLimited asks that the job runs, that each node can keep its limit, and that others are there whom it helps.
func (c *Config) checkLimited(p *remap.Plan, s *remap.Situation) (checks []remap.Check) {
	if !slices.ContainsFunc(s.Jobs, func(j remap.Job) bool { return j.ID == p.Job }) {
		checks = oneCheck("job", remap.Red, fmt.Sprintf("job %s has ended", p.Job))
	}
	for _, m := range p.Moves {
		if c.Queues == nil {
			return append(checks, oneCheck("queue", remap.Red, "no queue keeps limits here (set queue.policy)")...)
		}
		if why := c.Queues.CanLimit(m.Node); why != "" {
			return append(checks, oneCheck("queue", remap.Red, why)...)
		}
	}
	checks = append(checks, oneCheck("queue", remap.Green, "it is kept, and forgotten when the daemon is gone; "+
		"together the jobs may move less than now")...)
	there := map[topology.JobID]bool{}
	for _, j := range s.Jobs {
		there[j.ID] = slices.ContainsFunc(j.Nodes, func(n topology.NodeID) bool {
			return slices.ContainsFunc(p.Moves, func(m remap.Move) bool {
				return s.Index.Role(m.Node) != topology.Forwarder || slices.Contains(s.On(n), m.About())
			})
		})
	}
	maps.DeleteFunc(there, func(_ topology.JobID, is bool) bool { return !is })
	switch others := len(there) - 1; {
	case !there[p.Job]:
		checks = append(checks, oneCheck("beside", remap.Red, fmt.Sprintf("job %s has no node there", p.Job))...)
	case others == 0:
		checks = append(checks, oneCheck("beside", remap.Amber, "no other job is there: nobody gains")...)
	default:
		checks = append(checks, oneCheck("beside", remap.Green, anomaly.Counted(others, "other job")+" there")...)
	}
	return checks
}
