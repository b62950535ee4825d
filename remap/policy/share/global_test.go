package share

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// busy reports jobs that always have more to ask, on a server that does one.
func busy(server string, jobs ...Job) Report {
	r := Report{Server: server, Capacity: 1}
	for _, j := range jobs {
		r.Jobs = append(r.Jobs, Work{Job: j, Served: 1, Waited: 1})
	}
	return r
}

// Figure 5 of the paper: job 1 (16 nodes) on both servers, jobs 2 and 3 (8 nodes) on one each. Each
// server alone gives job 1 two thirds; after the all-gather it has the half that the sizes mean.
func TestFigure5(t *testing.T) {
	p := mustPolicy(t, "size-fair")
	one, two, three := Job{Name: "1", Size: 16}, Job{Name: "2", Size: 8}, Job{Name: "3", Size: 8}
	near(t, "local", Shares(p, []Job{one, two}), []float64{2. / 3, 1. / 3}, 1e-15)
	r := Gather(p, Inside, []Report{busy("a", one, two), busy("b", one, three)})
	if !r.Reachable {
		t.Error("the global shares are reported out of reach:", r.Why)
	}
	near(t, "global", r.Reached, []float64{.5, .25, .25}, 1e-12)
	const local = reserve / 6 // of the reserve, job 1 has two thirds
	near(t, "server a", r.Server[0], []float64{.5 + local, .5 - local}, 1e-12)
	near(t, "server b", r.Server[1], []float64{.5 + local, .5 - local}, 1e-12)
	near(t, "job 3 ended", Gather(p, Inside, []Report{busy("a", one, two), busy("b", one)}).Reached,
		[]float64{2. / 3, 1. / 3}, 1e-12)
}

func TestGlobalOutOfReach(t *testing.T) {
	// Job 0 alone on one of two servers can have half of the whole, not less; the others share a server.
	s := Global([]float64{.25, .5, .25}, [][]int{{0}, {1, 2}})
	if s.Reachable {
		t.Error("reported as reachable")
	}
	near(t, "reached", s.Reached, []float64{.5, 1. / 3, 1. / 6}, 1e-12)
	if fmt.Sprint(s.Crowded, s.Servers) != "[1 2] [1]" {
		t.Errorf("crowded are %v on %v, want [1 2] on [1]", s.Crowded, s.Servers)
	}
	// A server that only idle jobs use counts for nothing.
	s = Global([]float64{.5, .5, 0}, [][]int{{0, 1}, {2}})
	if !s.Reachable {
		t.Error("an idle server put the shares out of reach")
	}
	near(t, "reached", s.Reached, []float64{.5, .5, 0}, 1e-12)
	if s = Global([]float64{0}, [][]int{{0}, {}}); !s.Reachable || s.Reached[0] != 0 {
		t.Errorf("nobody works: %+v", s)
	}
}

// bound is the best common part of the shares by definition: no set of jobs gets more than the servers
// it uses (every set is tried).
func bound(shares []float64, on [][]int) float64 {
	best := math.Inf(1)
	for set := 1; set < 1<<len(shares); set++ {
		need, servers := 0.0, 0
		for j, s := range shares {
			if set&(1<<j) != 0 {
				need += s
			}
		}
		for _, jobs := range on {
			for _, j := range jobs {
				if set&(1<<j) != 0 {
					servers++
					break
				}
			}
		}
		best = min(best, float64(servers)/float64(len(on))/need)
	}
	return best
}

// randomPlacement puts each of n jobs on one to all of the servers; every server has a job.
func randomPlacement(r *rand.Rand, n, servers int) [][]int {
	for {
		on := make([][]int, servers)
		for j := range n {
			for _, i := range r.Perm(servers)[:1+r.IntN(servers)] {
				on[i] = append(on[i], j)
			}
		}
		full := true
		for _, jobs := range on {
			full = full && len(jobs) > 0
		}
		if full {
			return on
		}
	}
}

func TestGlobalAgainstEverySet(t *testing.T) {
	p := mustPolicy(t, "size-fair")
	unreachable := 0
	const runs = 1000
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 3))
		jobs := crowd(2+r.IntN(7), seed)
		shares := Shares(p, jobs)
		on := randomPlacement(r, len(jobs), 2+r.IntN(4))
		s := Global(shares, on)
		want := bound(shares, on)
		if s.Reachable != (want > 1-1e-9) {
			t.Fatalf("seed %d: reachable %v, but the tightest set allows %v", seed, s.Reachable, want)
		}
		if !s.Reachable {
			unreachable++
		}
		least, sum := math.Inf(1), 0.0
		for j, x := range s.Reached {
			least = min(least, x/shares[j])
			sum += x
		}
		if math.Abs(least-want) > 1e-9 || math.Abs(sum-1) > 1e-9 {
			t.Fatalf("seed %d: the worst job gets %v of its share, %v is possible; all get %v", seed, least, want, sum)
		}
		for i, server := range s.Server {
			full := 0.0
			for _, x := range server {
				full += x
			}
			if math.Abs(full-1) > 1e-9 {
				t.Fatalf("seed %d: server %d is used to %v", seed, i, full)
			}
		}
	}
	t.Logf("%d of %d random placements cannot reach the global shares", unreachable, runs)
	if unreachable == 0 || unreachable == runs {
		t.Error("the placements test one case only")
	}
}

// lambdaRun serves jobs by draws over two servers that gather every interval, requests a server and
// interval, and returns each job's part in each interval.
func lambdaRun(p Policy, on [][]Job, requests, intervals int, r *rand.Rand) [][]float64 {
	shares := make([][]float64, len(on))
	for i, jobs := range on {
		shares[i] = Shares(p, jobs)
	}
	var parts [][]float64
	for range intervals {
		served := map[string]float64{}
		reports := make([]Report, len(on))
		for i, jobs := range on {
			l := NewLottery(mustSize, weighted(shares[i]), Inside)
			for k := range jobs {
				l.Work(k, true)
			}
			for range requests {
				k, _ := l.Draw(r.Float64())
				served[jobs[k].Name] += 1 / float64(requests*len(on))
			}
			reports[i] = busy(fmt.Sprint(i), jobs...)
		}
		parts = append(parts, []float64{served["1"], served["2"], served["3"]})
		shares = Gather(p, Inside, reports).Server
	}
	return parts
}

var mustSize = Policy{Size}

// weighted turns shares into sizes, so that a lottery serves by them.
func weighted(shares []float64) []Job {
	jobs := make([]Job, len(shares))
	for k, x := range shares {
		jobs[k].Size = x
	}
	return jobs
}

// Section 5.6: with lambda of 50 ms and more the shares are global by the second interval. A server
// does 22,000 requests of 1 MB a second there.
func TestLambdaDelayedFairness(t *testing.T) {
	on := [][]Job{{{Name: "1", Size: 16}, {Name: "2", Size: 8}}, {{Name: "1", Size: 16}, {Name: "3", Size: 8}}}
	r := rand.New(rand.NewPCG(5, 6))
	for _, ms := range []int{10, 50, 200, 500} {
		parts := lambdaRun(mustPolicy(t, "size-fair"), on, 22*ms, 10, r)
		t.Logf("lambda %d ms: job 1 has %.4f, then %.4f, %.4f, %.4f", ms, parts[0][0], parts[1][0], parts[2][0],
			parts[3][0])
		if ms < 50 {
			continue
		}
		near(t, "first interval", parts[0], []float64{2. / 3, 1. / 6, 1. / 6}, .05)
		for _, part := range parts[1:] {
			near(t, fmt.Sprint(ms, " ms"), part, []float64{.5, .25, .25}, .05)
		}
	}
}

// A thousand jobs over 64 servers are split in little time; run with -bench.
func BenchmarkGlobal(b *testing.B) {
	jobs := crowd(1000, 1)
	shares := Shares(mustPolicy(b, "size-fair"), jobs)
	on := randomPlacement(rand.New(rand.NewPCG(1, 2)), len(jobs), 64)
	for b.Loop() {
		Global(shares, on)
	}
}
