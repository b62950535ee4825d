package share

import (
	"math"
	"slices"
)

// Place is one of several servers: what it can do, and for whom.
type Place struct {
	// Capacity is in the unit of the targets.
	Capacity float64
	// Jobs are those with work here, by index.
	Jobs []int
	// Most is what each of Jobs can take here at most; nil: as much as there is.
	Most []float64
}

func (p *Place) most(k int) float64 {
	if p.Most == nil {
		return math.Inf(1)
	}
	return p.Most[k]
}

// Split is how far servers can give jobs their targets, and how.
type Split struct {
	// Reachable says that every job gets its target in full.
	Reachable bool
	// Least is the smallest part of its target that a job gets, at most 1.
	Least float64
	// Reached is what the jobs get of all servers together: their targets, or where the placement does
	// not allow them, the nearest in the sense of weighted max-min fairness.
	Reached []float64
	// Server holds each server's shares, parts of its capacity, in the order in which its jobs are listed.
	Server [][]float64
	// Crowded are the jobs that get least for their target when it cannot be reached, and Servers the
	// only servers where they have more work than is done: together these are too few for them.
	Crowded, Servers []int
}

// Global divides global shares over servers of equal speed: on lists the jobs that each server sees, by
// index. Shares count for jobs that are on a server at all, and capacity on servers that have work.
func Global(shares []float64, on [][]int) Split {
	placed := make([]bool, len(shares))
	places, used := make([]Place, len(on)), 0.0
	for i, jobs := range on {
		places[i].Jobs = jobs
		for _, j := range jobs {
			if shares[j] > 0 {
				placed[j], places[i].Capacity = true, 1
			}
		}
		used += places[i].Capacity
	}
	sum := 0.0
	for j, s := range shares {
		if placed[j] {
			sum += s
		}
	}
	target := make([]float64, len(shares))
	for j, s := range shares {
		if placed[j] {
			target[j] = s / sum
		}
	}
	for i := range places {
		places[i].Capacity /= max(used, 1)
	}
	return Divide(target, places)
}

// Divide gives jobs their targets on the servers where they have work. With work on few servers a job's
// target may be more than these have; no division can reach it then, however often they talk.
//
// The best division is found by maximum flows (jobs to servers): the largest common part t of every
// target that fits; the jobs that keep t from growing are settled with the servers they fill, and the
// rest goes on with the rest. Of all divisions that give the same, one is taken that spreads each job
// over its servers as they are able, for a job seldom gains by being served at one server only.
func Divide(target []float64, places []Place) Split {
	g := newPlacement(target, places)
	s := Split{Reached: make([]float64, len(target)), Server: make([][]float64, len(places)), Reachable: true, Least: 1}
	for first := true; slices.Contains(g.done, false); first = false {
		t, jobs, servers := g.settle()
		if len(jobs) == 0 {
			break // what is left to place is too little to reckon with
		}
		if first && t < 1-tolerance {
			s.Reachable, s.Least, s.Crowded, s.Servers = false, t, jobs, servers
		}
	}
	for i := range places {
		for k, j := range places[i].Jobs {
			s.Reached[j] += g.flow[i][k]
		}
	}
	for i, flow := range g.spread(s.Reached) {
		s.Server[i] = flow
		for k := range flow {
			if c := places[i].Capacity; c > 0 {
				flow[k] /= c
			}
		}
	}
	return s
}

// tolerance is how much rounding may miss a share by.
const tolerance = 1e-9

// placement is the bipartite graph and its flow so far.
type placement struct {
	target []float64
	places []Place
	flow   [][]float64 // server -> job of its list
	room   []float64   // server -> what the settled jobs leave; 0 when it was settled with them
	done   []bool      // jobs that are settled, or want nothing
}

func newPlacement(target []float64, places []Place) *placement {
	g := &placement{
		target: target, places: places, flow: make([][]float64, len(places)),
		room: make([]float64, len(places)), done: slices.Repeat([]bool{true}, len(target)),
	}
	for i := range places {
		g.flow[i], g.room[i] = make([]float64, len(places[i].Jobs)), places[i].Capacity
		for _, j := range places[i].Jobs {
			if target[j] > 0 {
				g.done[j] = false
			}
		}
	}
	return g
}

// settle finds the largest t for which every open job can get t times its target from the open servers,
// fixes the jobs and servers that bound it, and names them.
func (g *placement) settle() (t float64, jobs, servers []int) {
	t = math.Inf(1)
	var f *flow
	for cutJobs, cutServers := g.open(); len(cutJobs) > 0; cutJobs, cutServers = f.short() {
		next := g.bound(cutJobs, cutServers)
		if next >= t*(1-1e-13) {
			break // what is short is rounding
		}
		t, jobs, servers = next, cutJobs, cutServers
		need := make([]float64, len(g.target))
		for j := range need {
			if !g.done[j] {
				need[j] = t * g.target[j]
			}
		}
		f = newFlow(g.places, need, g.room, nil)
		f.run()
	}
	for _, j := range jobs {
		g.done[j] = true
		for _, e := range f.uses[j] {
			g.flow[e.server][e.place] = f.on[e.server][e.place]
			g.room[e.server] = max(g.room[e.server]-f.on[e.server][e.place], 0)
		}
	}
	for _, i := range servers {
		g.room[i] = 0
	}
	return t, jobs, servers
}

// bound is the part of their targets that a set of jobs can get at most: what the given servers have left
// for them, and what they can take at all others.
func (g *placement) bound(jobs, servers []int) float64 {
	in, here := make([]bool, len(g.target)), make([]bool, len(g.places))
	need, can := 0.0, 0.0
	for _, j := range jobs {
		in[j] = true
		need += g.target[j]
	}
	for _, i := range servers {
		here[i] = true
		can += g.room[i]
	}
	for i := range g.places {
		p := &g.places[i]
		for k, j := range p.Jobs {
			if in[j] && !here[i] && g.room[i] > 0 {
				can += p.most(k)
			}
		}
	}
	return can / need
}

// open are the jobs that are not settled, and the servers that have something left.
func (g *placement) open() (jobs, servers []int) {
	for j, done := range g.done {
		if !done {
			jobs = append(jobs, j)
		}
	}
	for i, room := range g.room {
		if room > 0 {
			servers = append(servers, i)
		}
	}
	return jobs, servers
}

// spreadRounds is how often sums of jobs and of servers are set right in turn; what is then left is little
// and set right by a flow.
const spreadRounds = 30

// spread gives every job what it reached, divided over its servers as evenly as these allow: scaling rows
// and columns in turn leads to the division nearest to the one it begins with (iterative proportional
// fitting), a flow that begins there makes it exact.
func (g *placement) spread(reached []float64) [][]float64 {
	x := make([][]float64, len(g.places))
	for i := range g.places {
		p := &g.places[i]
		x[i] = make([]float64, len(p.Jobs))
		for k, j := range p.Jobs {
			x[i][k] = min(reached[j]*p.Capacity, p.most(k))
		}
	}
	for range spreadRounds {
		g.fitJobs(x, reached, math.Inf(1))
		if g.fitServers(x) < 1.001 {
			break
		}
	}
	g.fitJobs(x, reached, 1)
	room := make([]float64, len(g.places))
	for i := range g.places {
		room[i] = g.places[i].Capacity
	}
	f := newFlow(g.places, reached, room, x)
	f.run()
	return f.on
}

// fitJobs scales each job's parts so that they come to what it reached, by no more than a factor.
func (g *placement) fitJobs(x [][]float64, reached []float64, most float64) {
	sum := make([]float64, len(reached))
	for i := range x {
		for k, j := range g.places[i].Jobs {
			sum[j] += x[i][k]
		}
	}
	for i := range x {
		for k, j := range g.places[i].Jobs {
			if sum[j] > 0 {
				x[i][k] = min(x[i][k]*min(reached[j]/sum[j], most), g.places[i].most(k))
			}
		}
	}
}

// fitServers scales the parts of servers that have more than they can do, and says how much more at most.
func (g *placement) fitServers(x [][]float64) (over float64) {
	for i := range x {
		sum := 0.0
		for _, v := range x[i] {
			sum += v
		}
		if c := g.places[i].Capacity; sum > c {
			over = max(over, sum/c)
			for k := range x[i] {
				x[i][k] *= c / sum
			}
		}
	}
	return over
}
