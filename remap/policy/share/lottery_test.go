package share

import (
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// What a lottery serves over many draws is what Shares says of the jobs with work, for every policy,
// while jobs come and go.
func TestLotteryServesShares(t *testing.T) {
	for _, name := range []string{"job-fair", "user-fair", "size-fair", "group-user-size-fair"} {
		p, jobs := mustPolicy(t, name), crowd(12, 7)
		for _, idle := range []Idle{Inside, Flat} {
			r := rand.New(rand.NewPCG(1, 2))
			l := NewLottery(p, jobs, idle)
			works := make([]bool, len(jobs))
			for round := range 20 {
				for range 4 {
					k := r.IntN(len(jobs))
					works[k] = !works[k]
					l.Work(k, works[k])
					l.Work(k, works[k]) // saying it again changes nothing
				}
				checkDraws(t, name, l, works, lotteryShares(p, jobs, works, idle))
				if t.Failed() {
					t.Fatalf("%s %s, round %d", name, idle, round)
				}
			}
		}
	}
}

func lotteryShares(p Policy, jobs []Job, works []bool, idle Idle) []float64 {
	demand := make([]float64, len(jobs))
	for i, w := range works {
		if w {
			demand[i] = math.Inf(1)
		}
	}
	return Allocate(p, jobs, demand, 1, idle)
}

// checkDraws draws at evenly spread numbers: each job is hit in proportion to its share.
func checkDraws(t *testing.T, name string, l *Lottery, works []bool, want []float64) {
	t.Helper()
	const draws = 20_000
	hits := make([]float64, len(works))
	any := false
	for i := range draws {
		k, found := l.Draw((float64(i) + .5) / draws)
		if !found {
			break
		}
		any = true
		if !works[k] {
			t.Fatalf("%s: idle job %d was drawn", name, k)
		}
		hits[k] += 1. / draws
	}
	for i, h := range hits {
		if !any && works[i] {
			t.Errorf("%s: job %d works, but nothing was drawn", name, i)
		}
		if any {
			near(t, name, []float64{h}, []float64{want[i]}, 1e-3)
		}
	}
}

func TestLotteryAtTheEdges(t *testing.T) {
	l := NewLottery(mustPolicy(t, "size-fair"), []Job{{Size: 1e12}, {Size: 1}, {Size: 3}}, Inside)
	if _, found := l.Draw(.5); found {
		t.Error("an idle lottery drew a job")
	}
	l.Work(1, true)
	for _, u := range []float64{0, .5, 1 - 1e-16, 1} {
		if k, found := l.Draw(u); !found || k != 1 {
			t.Errorf("Draw(%v) = %d, %v with only job 1 working", u, k, found)
		}
	}
	if _, found := NewLottery(mustPolicy(t, "user-size-fair"), nil, Inside).Draw(0); found {
		t.Error("a lottery without jobs drew one")
	}
}

func BenchmarkDraw(b *testing.B) {
	for _, idle := range []Idle{Inside, Flat} {
		b.Run(string(idle), func(b *testing.B) {
			jobs := crowd(10_000, 1)
			l := NewLottery(mustPolicy(b, "group-user-size-fair"), jobs, idle)
			for i := range jobs {
				l.Work(i, i%3 > 0)
			}
			r := rand.New(rand.NewPCG(1, 2))
			from := cpuTime()
			for b.Loop() {
				l.Draw(r.Float64())
			}
			b.ReportMetric(float64((cpuTime()-from).Nanoseconds())/float64(b.N), "cpu-ns/draw")
		})
	}
}

// cpuTime is what this process has computed: a neighbour on the machine does not lengthen it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
