// Package tables keeps the queues in front of forwarders supplied with the table of jobs that share
// them: which nodes are whose, under which policy, and for how long that holds without news.
package tables

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/share"
	"fairway/remap/queue"
)

// Settings are what queues are given.
type Settings struct {
	Policy     string        `toml:"policy" help:"Sharing policy of the fairway-queues (docs/shares.md); empty: none."`
	Idle       share.Idle    `toml:"-"`
	Lease      time.Duration `toml:"-"`
	Lambda     time.Duration `toml:"lambda" help:"How often global shares are divided, 50ms to 1m; 0: local shares."`
	Forwarders []string      `toml:"forwarders" help:"Forwarders with a queue, patterns; empty: all, or only servers."`
	Servers    []string      `toml:"servers" help:"Lustre object servers whose agents keep the shares ([tbf] there)."`
	Priorities
}

// Priorities say what a job's priority is where a policy divides by it.
type Priorities struct {
	QOS     map[string]float64 `toml:"qos" help:"What priority-fair divides by; empty: slurm.jobs' priority."`
	Default float64            `toml:"-"`
}

// Of is a job's priority: its quality of service's where those have one, else the number that the batch system
// schedules by.
func (p *Priorities) Of(j *remap.Job) float64 {
	value := j.Priority
	if len(p.QOS) > 0 {
		value = p.QOS[j.QOS]
	}
	if value > 0 && value <= share.MaxWeight {
		return value
	}
	return p.Default
}

func (p *Priorities) validate() error {
	for _, name := range slices.Sorted(maps.Keys(p.QOS)) {
		if v := p.QOS[name]; !(v > 0 && v <= share.MaxWeight) {
			return fmt.Errorf("qos.%s = %g: want above 0 to %g", name, v, share.MaxWeight)
		}
	}
	return nil
}

// ByWindows is the policy by which jobs have the bandwidths of their windows for I/O (docs/periodic.md). Queues and
// object servers get it as priorities.
const ByWindows = "windows"

// method is the policy that queues get.
func (s *Settings) method() string {
	if s.Policy == ByWindows {
		return string(share.Priority) + "-fair"
	}
	return s.Policy
}

// ByPriority says that the policy divides by priority, which only the batch system knows.
func (s *Settings) ByPriority() bool {
	p, err := share.ParsePolicy(s.Policy)
	return err == nil && slices.Contains(p, share.Priority)
}

// Defaults give no queue a table.
func Defaults() Settings {
	return Settings{Idle: share.Inside, Lease: 2 * time.Minute, Lambda: time.Second, Forwarders: []string{},
		Servers:    []string{},
		Priorities: Priorities{QOS: map[string]float64{}, Default: 1}}
}

// MinLambda is the shortest interval for which shares are global by the second one (section 5.6).
const MinLambda = 50 * time.Millisecond

// Validate refuses what cannot work. Its errors name the setting.
func (s *Settings) Validate() error {
	if s.Policy != "" && s.Policy != ByWindows {
		if _, err := share.ParsePolicy(s.Policy); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	}
	if err := s.Priorities.validate(); err != nil {
		return err
	}
	if s.Lambda != 0 && (s.Lambda < MinLambda || s.Lambda > time.Minute) {
		return fmt.Errorf("lambda = %s: want %s to 1m, or 0 for local shares", s.Lambda, MinLambda)
	}
	for _, p := range s.Forwarders {
		if _, err := path.Match(p, ""); err != nil {
			return errors.Join(fmt.Errorf("forwarders: %q is not a pattern", p), err)
		}
	}
	for i, n := range s.Servers {
		if n == "" || slices.Contains(s.Servers[:i], n) {
			return fmt.Errorf("servers: %q is empty or there twice", n)
		}
	}
	return nil
}

func (s *Settings) has(f topology.ForwarderID) bool {
	return len(s.Forwarders)+len(s.Servers) == 0 || slices.ContainsFunc(s.Forwarders, func(p string) bool {
		ok, err := path.Match(p, string(f))
		return ok && err == nil
	})
}

// Of makes the table of every forwarder that has a queue: the running jobs with those of their nodes that
// use it, or would by the default mapping where nothing is observed of the node. A job's size is that of
// all its nodes. Of two jobs on one node, the older one is taken for it. Rates are the jobs' in their windows.
func Of(s *remap.Situation, c *Settings, rates map[topology.JobID]float64) map[topology.ForwarderID]queue.Table {
	out := map[topology.ForwarderID]queue.Table{}
	for _, f := range s.Index.Forwarders() {
		if c.has(f) {
			out[f] = queue.Table{Policy: c.method(), Idle: c.Idle, LeaseSeconds: c.Lease.Seconds(), Jobs: []queue.Job{}}
		}
	}
	jobs := oldestFirst(s.Jobs)
	priorities := c.dividedBy(rates)
	taken := map[topology.NodeID]bool{}
	for i := range jobs {
		on := map[topology.ForwarderID][]topology.NodeID{}
		for _, n := range jobs[i].Nodes {
			if taken[n] {
				continue
			}
			taken[n] = true
			if at := s.On(n); len(at) == 1 {
				on[at[0]] = append(on[at[0]], n)
			}
		}
		for f, nodes := range on {
			if t, ok := out[f]; ok {
				t.Jobs = append(t.Jobs, queue.Job{Row: row(&jobs[i], priorities), Nodes: nodes})
				out[f] = t
			}
		}
	}
	return out
}

// OfServers is the table of every object server: all running jobs, for a server may hold files of any of them. It names
// jobs as the clients' requests do, and no nodes.
func OfServers(s *remap.Situation, c *Settings, rates map[topology.JobID]float64) queue.Table {
	t := queue.Table{Policy: c.method(), Idle: c.Idle, LeaseSeconds: c.Lease.Seconds(), Jobs: []queue.Job{}}
	priorities := c.dividedBy(rates)
	for _, j := range oldestFirst(s.Jobs) {
		t.Jobs = append(t.Jobs, queue.Job{Row: row(&j, priorities)})
	}
	return t
}

func oldestFirst(jobs []remap.Job) []remap.Job {
	return slices.SortedStableFunc(slices.Values(jobs), func(a, b remap.Job) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID))
	})
}

// dividedBy is the priority of a job; nil where the policy does not divide by it.
func (s *Settings) dividedBy(rates map[topology.JobID]float64) func(*remap.Job) float64 {
	switch {
	case s.Policy == ByWindows:
		return byWindows(rates)
	case s.ByPriority():
		return s.Priorities.Of
	}
	return nil
}

// closedPart is what a job with a closed window weighs beside the least open one: it takes what the others leave, and
// is never starved.
const closedPart = 0.01

// byWindows weighs jobs by the bandwidth of their windows, MB/s; one without a window like the mean of those that are
// open.
func byWindows(rates map[topology.JobID]float64) func(*remap.Job) float64 {
	least, sum, open := 1.0, 0.0, 0
	for _, r := range rates {
		if megabytes := r / 1e6; megabytes > 0 {
			if open == 0 || megabytes < least {
				least = megabytes
			}
			sum += megabytes
			open++
		}
	}
	usual := 1.0
	if open > 0 {
		usual = sum / float64(open)
	}
	return func(j *remap.Job) float64 {
		r, has := rates[j.ID]
		switch {
		case !has:
			return usual
		case r <= 0:
			return least * closedPart
		}
		return r / 1e6
	}
}

// row is a job as a policy sees it; priority is nil where the policy does not divide by it: priorities move by
// themselves, and a table that changed is sent again.
func row(j *remap.Job, priority func(*remap.Job) float64) share.Row {
	size := float64(max(len(j.Nodes), 1))
	r := share.Row{Job: string(j.ID), User: cmp.Or(j.User, "?"), Group: cmp.Or(j.Project, "?"), Size: &size}
	if priority != nil {
		p := priority(j)
		r.Priority = &p
	}
	return r
}
