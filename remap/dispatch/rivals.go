package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// Expected is a job that waits for its nodes.
type Expected struct {
	Job                topology.JobID
	User, App, Project string
	Nodes              int
	Start              time.Time // as the batch system plans it
}

// Jobs that start so close are decided on together, and so many of them at most; as in the back-test.
const (
	TogetherFor  = time.Minute
	TogetherMost = 16
)

// contenders are other jobs that want forwarders: requests that wait for their decision, and jobs that wait for nodes.
type contenders struct {
	mu       sync.Mutex // guards what follows
	arrived  map[topology.JobID]*Request
	expected []Expected // by their start
}

// Expect takes the batch system's list of waiting jobs, for policies that arbitrate.
func (c *contenders) Expect(waiting []Expected) {
	waiting = slices.Clone(waiting)
	slices.SortFunc(waiting, func(a, b Expected) int {
		return cmp.Or(a.Start.Compare(b.Start),
			cmp.Compare(a.Job, b.Job))
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = waiting
}

// arrive notes a request that waits for its decision; leave ends that.
func (c *contenders) arrive(r *Request) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrived[r.Job] = r
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.arrived[r.Job] == r {
			delete(c.arrived, r.Job)
		}
	}
}

// awaited are the default forwarders of the jobs whose requests wait for this decision: they start at this moment.
func (c *contenders) awaited(s *remap.Situation, own topology.JobID) (out []topology.ForwarderID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.arrived {
		if r.Job != own {
			out = append(out, s.Forwarders(r.Nodes)...)
		}
	}
	return out
}

// rivals are the other jobs that want forwarders at the same time: those whose requests wait for this
// decision, and those that are to start within a minute. Only those with a history claim any. The
// caller holds d.mu.
func (d *Dispatcher) rivals(s *remap.Situation, own topology.JobID) (out []dfra.Rival) {
	add := func(k history.Key, on []topology.ForwarderID) {
		if p, ok := d.cfg.History.Predict(k); ok && len(out) < TogetherMost {
			out = append(out, dfra.Rival{Job: dfra.Job{App: k.App, User: k.User, Project: k.Project,
				Nodes: dfra.NodeCount(k.Nodes), DefaultForwarders: on}, History: []dfra.Run{*Past(&p.Run)}})
		}
	}
	c := &d.contenders
	c.mu.Lock()
	defer c.mu.Unlock()
	byJob := func(a, b *Request) int { return cmp.Compare(a.Job, b.Job) }
	for _, r := range slices.SortedFunc(maps.Values(c.arrived), byJob) {
		if r.Job != own && d.jobs[r.Job] == nil {
			add(r.key(), s.Forwarders(r.Nodes))
		}
	}
	for _, e := range c.expected {
		if e.Start.After(s.At.Add(TogetherFor)) {
			break
		}
		if e.Job != own && d.jobs[e.Job] == nil && c.arrived[e.Job] == nil {
			// Its nodes are not known yet: as many forwarders as they need at least.
			add(history.Key{User: e.User, App: e.App, Project: e.Project, Nodes: e.Nodes}, nil)
		}
	}
	return out
}
