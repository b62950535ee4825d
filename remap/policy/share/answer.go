package share

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Answer is what a policy makes of a table; shares are 0..1.
type Answer struct {
	Policy string `json:"policy"`
	// Shares of one server, or of all equal servers together; a job without work has 0.
	Shares   map[string]float64    `json:"shares"`
	Segments map[string][2]float64 `json:"segments"`
	// Allocation is the capacity each job gets under opportunity fairness, in the unit of demand;
	// absent without demands.
	Allocation map[string]float64 `json:"allocation,omitempty"`
	*Across
}

// Across is what the policy comes to on several servers.
type Across struct {
	// Local are each server's shares while it knows only its own jobs, Global those that the policy
	// wants of all servers together.
	Local  map[string]map[string]float64 `json:"local"`
	Global map[string]float64            `json:"global"`
	// Together are the shares of all servers that the local ones come to.
	Together map[string]float64 `json:"together"`
	// Reachable says whether the servers can give every job its global share; Reached are the nearest
	// shares they can give, and Split each server's own shares that reach them.
	Reachable bool                          `json:"reachable"`
	Reached   map[string]float64            `json:"reached"`
	Split     map[string]map[string]float64 `json:"split"`
	Why       string                        `json:"why"`
}

// Answer works a checked table out.
func (t Table) Answer(p Policy, idle Idle) Answer {
	shares := t.shares(p, idle)
	a := Answer{Policy: p.String(), Shares: map[string]float64{}, Segments: map[string][2]float64{}}
	cut := Segments(shares)
	demands := false
	for i, j := range t.Jobs {
		a.Shares[j.Job], a.Segments[j.Job] = shares[i], [2]float64{cut[i], cut[i+1]}
		demands = demands || j.Demand != nil
	}
	if demands {
		a.Allocation = t.allocation(p, idle)
	}
	if t.Servers != nil {
		a.Across = t.across(p, idle, shares)
	}
	return a
}

// shares divides among the jobs with work. Inside entities idle jobs are as if they were not there;
// flat, every job with work grows by the same factor.
func (t Table) shares(p Policy, idle Idle) []float64 {
	all := make([]float64, len(t.Jobs))
	var jobs []Job
	var index []int
	for i, j := range t.Jobs {
		if idle == Flat || j.active() {
			jobs, index = append(jobs, j.Entity()), append(index, i)
		}
	}
	sum := 0.0
	for k, s := range Shares(p, jobs) {
		if t.Jobs[index[k]].active() {
			all[index[k]] = s
			sum += s
		}
	}
	if idle == Flat && sum > 0 {
		for i := range all {
			all[i] /= sum
		}
	}
	return all
}

func (t Table) allocation(p Policy, idle Idle) map[string]float64 {
	jobs, demand := make([]Job, len(t.Jobs)), make([]float64, len(t.Jobs))
	for i, j := range t.Jobs {
		jobs[i], demand[i] = j.Entity(), j.demand()
	}
	out := map[string]float64{}
	for i, x := range Allocate(p, jobs, demand, *t.Capacity, idle) {
		out[t.Jobs[i].Job] = x
	}
	return out
}

// across compares local with global shares over the table's servers, in the order of their names.
func (t Table) across(p Policy, idle Idle, global []float64) *Across {
	index := make(map[string]int, len(t.Jobs))
	for i, j := range t.Jobs {
		index[j.Job] = i
	}
	names := slices.Sorted(maps.Keys(t.Servers))
	on := make([][]int, len(names))
	a := &Across{
		Local: map[string]map[string]float64{}, Global: map[string]float64{}, Together: map[string]float64{},
		Reached: map[string]float64{}, Split: map[string]map[string]float64{},
	}
	busy := 0
	for i, s := range names {
		here := Table{}
		for _, j := range t.Servers[s] {
			on[i] = append(on[i], index[j])
			here.Jobs = append(here.Jobs, t.Jobs[index[j]])
		}
		a.Local[s] = map[string]float64{}
		sum := 0.0
		for k, x := range here.shares(p, idle) {
			a.Local[s][here.Jobs[k].Job] = x
			a.Together[here.Jobs[k].Job] += x
			sum += x
		}
		if sum > 0 {
			busy++
		}
	}
	split := Global(global, on)
	a.Reachable = split.Reachable
	for i, j := range t.Jobs {
		a.Global[j.Job], a.Reached[j.Job] = global[i], split.Reached[i]
		a.Together[j.Job] /= math.Max(float64(busy), 1)
	}
	for i, s := range names {
		a.Split[s] = map[string]float64{}
		for k, j := range on[i] {
			a.Split[s][t.Jobs[j].Job] = split.Server[i][k]
		}
	}
	a.Why = t.why(split, names, busy, global)
	return a
}

func (t Table) why(s Split, names []string, busy int, global []float64) string {
	if s.Reachable {
		return fmt.Sprintf("the %d servers with work can give every job its global share", busy)
	}
	want := 0.0
	var jobs, servers []string
	for _, j := range s.Crowded {
		jobs = append(jobs, t.Jobs[j].Job)
		want += global[j]
	}
	for _, i := range s.Servers {
		servers = append(servers, names[i])
	}
	return fmt.Sprintf(
		"%s should have %.4g of the whole together, but they use only %s, which is %d of %d servers, %.4g of the whole",
		few(jobs), want, few(servers), len(servers), busy, float64(len(servers))/float64(busy))
}

// few lists names, the first ten.
func few(names []string) string {
	if n := len(names) - 10; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:10], ", "), n)
	}
	return strings.Join(names, ", ")
}
