package share

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Table is the input of the offline command: jobs, and where it matters what they want and which
// servers they use.
type Table struct {
	Jobs []Row `json:"jobs"`
	// Capacity is what a server moves, in the unit of Demand (bytes/s); needed only with demands.
	Capacity *float64 `json:"capacity"`
	// Servers lists the jobs that have files on each of several equal servers.
	Servers map[string][]string `json:"servers"`
}

// Row is one job of a table. What the policy does not ask for may be absent.
type Row struct {
	Job      string   `json:"job"`
	User     string   `json:"user"`
	Group    string   `json:"group"`
	Size     *float64 `json:"size"`     // compute nodes
	Priority *float64 `json:"priority"` // any positive unit
	Active   *bool    `json:"active"`   // has work; default true
	Demand   *float64 `json:"demand"`   // bytes/s it would take alone; absent is as much as it can get
}

// maxJobs is how many jobs a table may have.
const maxJobs = 1 << 20

// MaxWeight is the largest size and priority; beyond it their sum would lose digits.
const MaxWeight = 1e12

// Check names the first field that a policy cannot work with.
func (t Table) Check(p Policy) error {
	if len(t.Jobs) == 0 || len(t.Jobs) > maxJobs {
		return fmt.Errorf("jobs: %d of them, want 1..%d", len(t.Jobs), maxJobs)
	}
	names := make(map[string]bool, len(t.Jobs))
	demands := false
	for i, j := range t.Jobs {
		if err := j.check(p); err != nil {
			return fmt.Errorf("jobs[%d].%w", i, err)
		}
		if names[j.Job] {
			return fmt.Errorf("jobs[%d].job: %q comes twice", i, j.Job)
		}
		names[j.Job] = true
		demands = demands || j.Demand != nil
	}
	if c := t.Capacity; c != nil && *c <= 0 {
		return fmt.Errorf("capacity: %v is not positive", *c)
	}
	if demands && t.Capacity == nil {
		return errors.New("capacity: missing, and there are demands to divide it among")
	}
	return t.checkServers(names)
}

func (t Table) checkServers(names map[string]bool) error {
	if t.Servers == nil {
		return nil
	}
	placed := make(map[string]bool, len(t.Jobs))
	for _, s := range slices.Sorted(maps.Keys(t.Servers)) {
		here := map[string]bool{}
		for i, j := range t.Servers[s] {
			if !names[j] {
				return fmt.Errorf("servers.%s[%d]: job %q is not in jobs", s, i, j)
			}
			if here[j] {
				return fmt.Errorf("servers.%s[%d]: job %q comes twice", s, i, j)
			}
			here[j], placed[j] = true, true
		}
	}
	for _, j := range t.Jobs {
		if j.active() && !placed[j.Job] {
			return fmt.Errorf("servers: active job %q is on none of them", j.Job)
		}
	}
	return nil
}

func (j Row) active() bool { return j.Active == nil || *j.Active }

func (j Row) check(p Policy) error {
	switch {
	case j.Job == "":
		return errors.New("job: missing")
	case slices.Contains(p, User) && j.User == "":
		return fmt.Errorf("user: missing, and the policy %s divides by it", p)
	case slices.Contains(p, Group) && j.Group == "":
		return fmt.Errorf("group: missing, and the policy %s divides by it", p)
	case j.Demand != nil && *j.Demand < 0:
		return fmt.Errorf("demand: %v is negative", *j.Demand)
	}
	for _, f := range []struct {
		level Level
		value *float64
	}{{Size, j.Size}, {Priority, j.Priority}} {
		switch asked := slices.Contains(p, f.level); {
		case f.value == nil && asked:
			return fmt.Errorf("%s: missing, and the policy %s divides by it", f.level, p)
		case f.value != nil && (*f.value < 0 || *f.value > MaxWeight || asked && *f.value == 0):
			return fmt.Errorf("%s: %v is not in (0, %g]", f.level, *f.value, float64(MaxWeight))
		}
	}
	return nil
}

// Entity is the row as a policy sees it.
func (j Row) Entity() Job {
	job := Job{Name: j.Job, User: j.User, Group: j.Group}
	if j.Size != nil {
		job.Size = *j.Size
	}
	if j.Priority != nil {
		job.Priority = *j.Priority
	}
	return job
}

func (j Row) demand() float64 {
	switch {
	case !j.active():
		return 0
	case j.Demand == nil:
		return math.Inf(1)
	}
	return *j.Demand
}
