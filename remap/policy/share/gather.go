package share

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Report is what one server says of the interval that has just ended, for an all-gather (section 3.1).
// Amounts are in one unit for all servers; requests, or bytes.
type Report struct {
	Server string
	// Capacity is what the server does in an interval when there is always something to do.
	Capacity float64
	// Jobs are those the server knows, with work or without. A job without a name is this server's own.
	Jobs []Work
}

// Work is one job's part of an interval at one server.
type Work struct {
	Job
	// Served is what was done for it.
	Served float64
	// Waited is the part of the interval, 0..1, in which requests of the job waited.
	Waited float64
}

// What a job can take at a server that gives it more. Where its requests waited for most of the interval
// it is unknown: as much as there is. Else it would have had as many more turns as the time that it
// waited leaves room for, and a little more, for it may grow.
const (
	backlogged = 0.8
	growth     = 1.1
)

func (w *Work) most() float64 {
	if w.Waited >= backlogged {
		return math.Inf(1)
	}
	return w.Served / (1 - w.Waited) * growth
}

// Round is what an all-gather comes to.
type Round struct {
	Jobs []Job // those with work, a job's name only once
	// Shares are what the policy gives to each job of all servers together, when jobs that want less leave
	// the rest to others, and Reached what the servers can do of it.
	Shares, Reached []float64
	// Server holds by which weights each server serves the jobs of its report, in their order: its shares of
	// itself, and for jobs without work what they would have locally, so that one that begins is served at once.
	Server [][]float64
	// Reachable says that every job can have its share within nearly; Why says why not.
	Reachable bool
	Why       string
}

// nearly is what a job may miss of its share before the share counts as out of reach: reports are measurements.
const nearly = 0.05

// reserve is the part of each server that its own jobs divide as if there were no others. A job whose share
// lies wholly at another server is served here too, if slowly: it may need an answer from both to go on.
const reserve = 0.01

// Gather works out shares for the next interval from what the servers say of the last one.
func Gather(p Policy, idle Idle, reports []Report) Round {
	r := Round{Reachable: true, Server: make([][]float64, len(reports))}
	index := map[[2]string]int{}
	places, total := make([]Place, len(reports)), 0.0
	var wants []float64
	for i := range reports {
		places[i].Capacity = reports[i].Capacity
		total += reports[i].Capacity
		for k := range reports[i].Jobs {
			w := &reports[i].Jobs[k]
			most := min(w.most(), reports[i].Capacity)
			if most <= 0 {
				continue
			}
			key := [2]string{w.Name}
			if w.Name == "" {
				key[1] = reports[i].Server
			}
			j, found := index[key]
			if !found {
				j = len(r.Jobs)
				index[key] = j
				r.Jobs, wants = append(r.Jobs, w.Job), append(wants, 0)
			}
			wants[j] += most
			places[i].Jobs, places[i].Most = append(places[i].Jobs, j), append(places[i].Most, w.most())
		}
	}
	target := Allocate(p, r.Jobs, wants, total, idle)
	split := Divide(target, places)
	r.Shares, r.Reached = parts(target, total), parts(split.Reached, total)
	for i := range reports {
		r.Server[i] = reports[i].shares(p, split.Server[i])
	}
	if split.Least < 1-nearly {
		r.Reachable, r.Why = false, r.why(split, reports)
	}
	return r
}

func parts(x []float64, of float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] /= of
	}
	return out
}

// shares are the weights of all jobs of a report; gathered are the shares of those with work.
func (r *Report) shares(p Policy, gathered []float64) []float64 {
	jobs := make([]Job, len(r.Jobs))
	for k := range r.Jobs {
		jobs[k] = r.Jobs[k].Job
	}
	out := Shares(p, jobs)
	used := 0.0
	for _, x := range gathered {
		used += x
	}
	next := 0
	for k := range r.Jobs {
		if min(r.Jobs[k].most(), r.Capacity) <= 0 {
			continue
		}
		out[k] *= reserve
		if used > 0 {
			out[k] += (1 - reserve) * gathered[next] / used
		}
		next++
	}
	return out
}

// why names the jobs that cannot have their shares, and the servers where they have too much work.
func (r *Round) why(s Split, reports []Report) string {
	share, can, reached := 0.0, 0.0, 0.0
	var jobs, servers []string
	for _, j := range s.Crowded {
		name := cmp.Or(r.Jobs[j].Name, "clients in no job")
		jobs = append(jobs, name)
		share += r.Shares[j]
		reached += r.Reached[j]
	}
	for _, i := range s.Servers {
		servers = append(servers, reports[i].Server)
		can += reports[i].Capacity
	}
	total := 0.0
	for i := range reports {
		total += reports[i].Capacity
	}
	return fmt.Sprintf(
		"%s should have %.1f %% of all forwarders together and can have %.1f %%: they have more work than is done "+
			"only at %s, %d of %d forwarders, with %.1f %% of what all do",
		few(jobs), 100*share, 100*reached, few(servers), len(servers), len(reports), 100*can/total)
}

// Has says whether a job has work here.
func (r *Report) Has(name string) bool {
	return slices.ContainsFunc(r.Jobs, func(w Work) bool { return w.Name == name && min(w.most(), r.Capacity) > 0 })
}
