package desk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

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
