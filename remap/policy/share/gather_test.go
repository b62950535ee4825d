package share

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// boundOf is the best common part of the targets by definition: no set of jobs gets more than some servers
// have and what the jobs can take at all others (every set of jobs and of servers is tried).
func boundOf(target []float64, places []Place) float64 {
	best := math.Inf(1)
	for set := 1; set < 1<<len(target); set++ {
		need := 0.0
		for j, x := range target {
			if set&(1<<j) != 0 {
				need += x
			}
		}
		for servers := range 1 << len(places) {
			can := 0.0
			for i := range places {
				if servers&(1<<i) != 0 {
					can += places[i].Capacity
					continue
				}
				for k, j := range places[i].Jobs {
					if set&(1<<j) != 0 {
						can += places[i].most(k)
					}
				}
			}
			best = min(best, can/need)
		}
	}
	return best
}

// Servers of different speed, and jobs that can take little at some of them: the worst job gets exactly
// what the tightest set allows, nobody gets more than he can take and no server does more than it can.
func TestDivideAgainstEverySet(t *testing.T) {
	short := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 9))
		target := make([]float64, 2+r.IntN(5))
		for j := range target {
			target[j] = .05 + r.Float64()
		}
		places := make([]Place, 2+r.IntN(3))
		for i, jobs := range randomPlacement(r, len(target), len(places)) {
			places[i] = Place{Capacity: .2 + r.Float64(), Jobs: jobs, Most: make([]float64, len(jobs))}
			for k := range jobs {
				if places[i].Most[k] = math.Inf(1); r.IntN(2) == 0 {
					places[i].Most[k] = r.Float64()
				}
			}
		}
		s, want := Divide(target, places), boundOf(target, places)
		if s.Reachable != (want > 1-1e-9) {
			t.Fatalf("seed %d: reachable %v, the tightest set allows %v", seed, s.Reachable, want)
		}
		if !s.Reachable {
			short++
		}
		least, sum := math.Inf(1), make([]float64, len(target))
		for i, p := range places {
			full := 0.0
			for k, x := range s.Server[i] {
				full += x
				sum[p.Jobs[k]] += x * p.Capacity
				if x < -1e-9 || x*p.Capacity > p.Most[k]+1e-9 {
					t.Fatalf("seed %d: job %d gets %v at server %d and can take %v", seed, p.Jobs[k], x*p.Capacity, i,
						p.Most[k])
				}
			}
			if full > 1+1e-9 {
				t.Fatalf("seed %d: server %d is used to %v", seed, i, full)
			}
		}
		for j := range target {
			least = min(least, s.Reached[j]/target[j])
		}
		near(t, fmt.Sprint("seed ", seed, ": the servers' parts"), sum, s.Reached, 1e-9)
		if math.Abs(least-want) > 1e-9*want {
			t.Fatalf("seed %d: the worst job gets %v of its target, %v is possible", seed, least, want)
		}
	}
	if short == 0 || short == 1000 {
		t.Error("the placements test one case only")
	}
}

// Two jobs that use the same servers share each of them: neither is sent to one alone.
func TestSpread(t *testing.T) {
	s := Global([]float64{.5, .5}, [][]int{{0, 1}, {0, 1}})
	near(t, "server 0", s.Server[0], []float64{.5, .5}, 1e-12)
	near(t, "server 1", s.Server[1], []float64{.5, .5}, 1e-12)
	// Where only one division is right it is found exactly: job 0 leaves server 0 to the other.
	s = Global([]float64{.5, .5}, [][]int{{0, 1}, {0}})
	near(t, "server 0", s.Server[0], []float64{0, 1}, 1e-9)
	near(t, "server 1", s.Server[1], []float64{1}, 1e-9)
}

// A job whose requests wait at one server and trickle at the other has its share as far as the one allows,
// and what it does not take at the other goes to those who do.
func TestGatherSaysWhyNot(t *testing.T) {
	p := mustPolicy(t, "job-fair")
	a, b, c := Job{Name: "a", User: "u"}, Job{Name: "b", User: "v"}, Job{Name: "c", User: "w"}
	one, two := busy("fwd0", a, b), busy("fwd1", c)
	r := Gather(p, Inside, []Report{one, two})
	if r.Reachable || !strings.Contains(r.Why,
		"a, b should have 66.7 % of all forwarders together and can have 50.0 %") ||
		!strings.Contains(r.Why, "only at fwd0, 1 of 2 forwarders") {
		t.Errorf("reachable %v: %s", r.Reachable, r.Why)
	}
	near(t, "reached", r.Reached, []float64{.25, .25, .5}, 1e-12)
	two.Jobs = append(two.Jobs, Work{Job: a, Served: .1, Waited: .2})
	r = Gather(p, Inside, []Report{one, two})
	trickle := .1 / .8 * growth
	near(t, "with a trickle", r.Reached, []float64{.25 + trickle/4, .25 + trickle/4, .5 - trickle/2}, 1e-9)
	// A job with little to do leaves its share to the others, and that is not a failure.
	two.Jobs = []Work{{Job: c, Served: .2, Waited: 0}, {Job: a, Served: 1, Waited: 1}}
	r = Gather(p, Inside, []Report{one, two})
	near(t, "shares with demand", r.Shares, []float64{(2 - .22) / 4, (2 - .22) / 4, .11}, 1e-12)
	if !r.Reachable {
		t.Error(r.Why)
	}
	// One without work is in nobody's way and has its local share should it begin.
	two.Jobs = append(two.Jobs, Work{Job: b})
	r = Gather(p, Inside, []Report{one, two})
	near(t, "idle", r.Server[1][2:], []float64{1. / 3}, 1e-12)
	// Clients in no job are different ones at each server.
	none := Gather(p, Inside, []Report{busy("fwd0", Job{}), busy("fwd1", Job{}), {Server: "fwd2"}})
	near(t, "no jobs", none.Reached, []float64{.5, .5}, 1e-12)
	if empty := Gather(p, Inside, nil); !empty.Reachable || len(empty.Jobs) != 0 {
		t.Errorf("%+v", empty)
	}
}

// A server that does next to nothing, less than numbers can be divided by, does not keep the division from its end when
// the other servers have room.
func TestAServerThatDoesNextToNothing(t *testing.T) {
	p := mustPolicy(t, "size-fair")
	for _, capacity := range []float64{1e-290, 1e-300, 1e-305, 1e-310, 5e-324, 0} {
		hangs := busy("hangs", Job{Name: "stuck", Size: 1})
		hangs.Capacity = capacity
		serves := Report{Server: "serves", Capacity: 1e9, Jobs: []Work{{Job: Job{Name: "idle", Size: 1}}}}
		round := make(chan Round, 1)
		go func() { round <- Gather(p, Inside, []Report{hangs, serves}) }()
		select {
		case r := <-round:
			near(t, fmt.Sprintf("beside a server of %g", capacity), r.Server[1], []float64{1}, 1e-9)
		case <-time.After(20 * time.Second):
			t.Fatalf("beside a server of %g the end is missing", capacity)
		}
	}
}
