package share

import (
	"math"
	"slices"
)

// Split is how far servers of equal speed can give jobs their global shares, and how.
type Split struct {
	// Reachable says that every job gets its global share in full.
	Reachable bool
	// Reached are the shares of all servers together that the jobs get: their global shares, or where
	// the placement does not allow them, the nearest in the sense of weighted max-min fairness.
	Reached []float64
	// Server holds each server's shares, 0..1, in the order in which its jobs are listed.
	Server [][]float64
	// Crowded are the jobs that get least for their share when it cannot be reached, and Servers the
	// only servers they use: together these are too few for them.
	Crowded, Servers []int
}

// Global divides global shares over servers: on lists the jobs that each server sees, by index.
// Shares count for jobs that are on a server at all. With files on few servers a job's global share
// may be more than its servers have; no division can reach it then, however often they talk.
//
// The best division is found by maximum flows (jobs to servers): the largest common part t of every
// share that fits; the jobs that keep t from growing are settled with the servers they fill, and the
// rest goes on with the rest.
func Global(shares []float64, on [][]int) Split {
	g := newPlacement(shares, on)
	s := Split{Reached: make([]float64, len(shares)), Server: make([][]float64, len(on)), Reachable: true}
	for i := range on {
		s.Server[i] = make([]float64, len(on[i]))
	}
	for first := true; g.open(); first = false {
		t, jobs, servers := g.settle()
		if first && t < 1-tolerance {
			s.Reachable, s.Crowded, s.Servers = false, jobs, servers
		}
	}
	for i := range on {
		for k, j := range on[i] {
			s.Server[i][k] = g.flow[i][k] / g.capacity
			s.Reached[j] += g.flow[i][k]
		}
	}
	return s
}

// tolerance is how much rounding may miss a share by.
const tolerance = 1e-9

// placement is the bipartite graph and its flow so far.
type placement struct {
	share    []float64   // of each job, scaled so that jobs with a server have 1 together
	on       [][]int     // server -> jobs
	flow     [][]float64 // server -> job of on -> share of all servers
	capacity float64     // of a server, as a share of all servers in use
	doneJob  []bool
	doneSrv  []bool
}

func newPlacement(shares []float64, on [][]int) *placement {
	g := &placement{
		share: make([]float64, len(shares)), on: on, flow: make([][]float64, len(on)),
		doneJob: slices.Repeat([]bool{true}, len(shares)), doneSrv: make([]bool, len(on)),
	}
	used := 0
	for i, jobs := range on {
		g.flow[i] = make([]float64, len(jobs))
		works := false
		for _, j := range jobs {
			if shares[j] > 0 {
				g.doneJob[j], works = false, true
			}
		}
		g.doneSrv[i] = !works
		if works {
			used++
		}
	}
	g.capacity = 1 / float64(used)
	sum := 0.0
	for j, s := range shares {
		if !g.doneJob[j] {
			sum += s
		}
	}
	for j, s := range shares {
		g.share[j] = s / sum
	}
	return g
}

func (g *placement) open() bool { return slices.Contains(g.doneSrv, false) }

// settle finds the largest t for which every open job can get t times its share from the open servers,
// fixes the jobs and servers that bound it, and names them.
func (g *placement) settle() (t float64, jobs, servers []int) {
	t = math.Inf(1)
	var f *flow
	for cutJobs, cutServers := g.openJobs(), g.openServers(); len(cutJobs) > 0; cutJobs, cutServers = f.short() {
		// A set of jobs cannot get more than all the servers it uses.
		need := 0.0
		for _, j := range cutJobs {
			need += g.share[j]
		}
		next := float64(len(cutServers)) * g.capacity / need
		if next >= t*(1-1e-13) {
			break // what is short is rounding
		}
		t, jobs, servers = next, cutJobs, cutServers
		f = g.maxFlow(t)
	}
	f.keep(jobs)
	for _, j := range jobs {
		g.doneJob[j] = true
	}
	for _, i := range servers {
		g.doneSrv[i] = true
	}
	return t, jobs, servers
}

func (g *placement) openJobs() (jobs []int) {
	for j, done := range g.doneJob {
		if !done {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func (g *placement) openServers() (servers []int) {
	for i, done := range g.doneSrv {
		if !done {
			servers = append(servers, i)
		}
	}
	return servers
}
