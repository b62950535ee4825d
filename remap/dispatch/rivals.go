package dispatch

import (
	"cmp"
	"slices"
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
	togetherFor  = time.Minute
	togetherMost = 16
)

// Expect takes the batch system's list of waiting jobs, for policies that arbitrate.
func (d *Dispatcher) Expect(waiting []Expected) {
	waiting = slices.Clone(waiting)
	slices.SortFunc(waiting, func(a, b Expected) int {
		return cmp.Or(a.Start.Compare(b.Start),
			cmp.Compare(a.Job, b.Job))
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected = waiting
}

// arrive notes a request that waits for its decision; leave ends that.
func (d *Dispatcher) arrive(r *Request) (leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arrived[r.Job] = r
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.arrived[r.Job] == r {
			delete(d.arrived, r.Job)
		}
	}
}

// rivals are the other jobs that want forwarders at the same time: those whose requests wait for this
// decision, and those that are to start within a minute. Only those with a history claim any. The
// caller holds d.mu.
func (d *Dispatcher) rivals(s *remap.Situation, own topology.JobID) (out []dfra.Rival) {
	add := func(j dfra.Job, k history.Key) {
		if p, ok := d.cfg.History.Predict(k); ok && len(out) < togetherMost {
			out = append(out, dfra.Rival{Job: j, History: []dfra.Run{*Past(&p.Run)}})
		}
	}
	here := make([]*Request, 0, len(d.arrived))
	for _, r := range d.arrived {
		here = append(here, r)
	}
	slices.SortFunc(here, func(a, b *Request) int { return cmp.Compare(a.Job, b.Job) })
	for _, r := range here {
		if r.Job != own && d.jobs[r.Job] == nil {
			add(dfra.Job{App: r.App, User: r.User, Project: r.Project, Nodes: dfra.NodeCount(len(r.Nodes)),
				DefaultForwarders: defaultForwarders(s, r.Nodes)},
				history.Key{User: r.User, App: r.App, Project: r.Project, Nodes: len(r.Nodes)})
		}
	}
	for _, e := range d.expected {
		if e.Start.After(s.At.Add(togetherFor)) {
			break
		}
		if e.Job != own && d.jobs[e.Job] == nil && d.arrived[e.Job] == nil {
			// Its nodes are not known yet: as many forwarders as they need at least.
			add(dfra.Job{App: e.App, User: e.User, Project: e.Project, Nodes: dfra.NodeCount(e.Nodes)},
				history.Key{User: e.User, App: e.App, Project: e.Project, Nodes: e.Nodes})
		}
	}
	return out
}
