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
	Idle       share.Idle    `toml:"idle" help:"Who uses what idle jobs leave: inside (user, then group) or flat."`
	Lease      time.Duration `toml:"lease" help:"How long a queue keeps the policy without a newer table."`
	Lambda     time.Duration `toml:"lambda" help:"How often global shares are divided, 50ms to 1m; 0: local shares."`
	Forwarders []string      `toml:"forwarders" help:"Forwarders with a queue, patterns; empty: all, or only servers."`
	Servers    []string      `toml:"servers" help:"Lustre object servers whose agents keep the shares ([tbf] there)."`
	Priorities
}

// Priorities say what a job's priority is where a policy divides by it.
type Priorities struct {
	From    string             `toml:"priority_from" help:"What priority-fair divides by: scheduler or qos."`
	QOS     map[string]float64 `toml:"qos" help:"Priority by quality of service, above 0: high = 4."`
	Default float64            `toml:"default_priority" help:"Priority of a job without one."`
}

// Where priorities come from: the number that the batch system schedules by, or the job's quality of service.
const (
	FromScheduler = "scheduler"
	FromQOS       = "qos"
)

// Of is a job's priority.
func (p *Priorities) Of(j *remap.Job) float64 {
	value := j.Priority
	if p.From == FromQOS {
		value = p.QOS[j.QOS]
	}
	if value > 0 && value <= share.MaxWeight {
		return value
	}
	return p.Default
}

func (p *Priorities) validate() error {
	if p.From != FromScheduler && p.From != FromQOS {
		return fmt.Errorf("priority_from = %q: want %s or %s", p.From, FromScheduler, FromQOS)
	}
	if p.From == FromQOS && len(p.QOS) == 0 {
		return errors.New("priority_from = \"qos\": queue.qos names no quality of service and its priority")
	}
	if !(p.Default > 0 && p.Default <= share.MaxWeight) {
		return fmt.Errorf("default_priority = %g: want above 0 to %g", p.Default, share.MaxWeight)
	}
	for _, name := range slices.Sorted(maps.Keys(p.QOS)) {
		if v := p.QOS[name]; !(v > 0 && v <= share.MaxWeight) {
			return fmt.Errorf("qos.%s = %g: want above 0 to %g", name, v, share.MaxWeight)
		}
	}
	return nil
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
		Priorities: Priorities{From: FromScheduler, QOS: map[string]float64{}, Default: 1}}
}

// MinLease leaves room for a lost order or two.
const MinLease = 3 * time.Second

// MinLambda is the shortest interval for which shares are global by the second one (section 5.6).
const MinLambda = 50 * time.Millisecond

// Validate refuses what cannot work. Its errors name the setting.
func (s *Settings) Validate() error {
	if s.Policy != "" {
		if _, err := share.ParsePolicy(s.Policy); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	}
	if err := s.Priorities.validate(); err != nil {
		return err
	}
	if s.Idle != share.Inside && s.Idle != share.Flat {
		return fmt.Errorf("idle = %q: want %s or %s", s.Idle, share.Inside, share.Flat)
	}
	if s.Lease < MinLease || s.Lease > 24*time.Hour {
		return fmt.Errorf("lease = %s: want %s to 24h", s.Lease, MinLease)
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
// all its nodes. Of two jobs on one node, the older one is taken for it.
func Of(s *remap.Situation, c *Settings) map[topology.ForwarderID]queue.Table {
	out := map[topology.ForwarderID]queue.Table{}
	for _, f := range s.Index.Forwarders() {
		if c.has(f) {
			out[f] = queue.Table{Policy: c.Policy, Idle: c.Idle, LeaseSeconds: c.Lease.Seconds(), Jobs: []queue.Job{}}
		}
	}
	jobs := oldestFirst(s.Jobs)
	priorities := c.dividedBy()
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
func OfServers(s *remap.Situation, c *Settings) queue.Table {
	t := queue.Table{Policy: c.Policy, Idle: c.Idle, LeaseSeconds: c.Lease.Seconds(), Jobs: []queue.Job{}}
	priorities := c.dividedBy()
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

// dividedBy are the priorities where the policy divides by them.
func (s *Settings) dividedBy() *Priorities {
	if s.ByPriority() {
		return &s.Priorities
	}
	return nil
}

// row is a job as a policy sees it; priorities are nil where the policy does not divide by them: they move by
// themselves, and a table that changed is sent again.
func row(j *remap.Job, priorities *Priorities) share.Row {
	size := float64(max(len(j.Nodes), 1))
	r := share.Row{Job: string(j.ID), User: cmp.Or(j.User, "?"), Group: cmp.Or(j.Project, "?"), Size: &size}
	if priorities != nil {
		p := priorities.Of(j)
		r.Priority = &p
	}
	return r
}
