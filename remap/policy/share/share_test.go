package share

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func mustPolicy(t testing.TB, name string) Policy {
	t.Helper()
	p, err := ParsePolicy(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want []float64, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d: %v", what, len(got), len(want), got)
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= within) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestParsePolicy(t *testing.T) {
	for name, want := range map[string]string{
		"job-fair":                      "job-fair",
		"size-fair":                     "size-fair",
		"priority-fair":                 "priority-fair",
		"user-fair":                     "user-job-fair",
		"group-fair":                    "group-job-fair",
		"user-then-job-fair":            "user-job-fair",
		"user-size-fair":                "user-size-fair",
		"user-then-priority-fair":       "user-priority-fair",
		"group-then-user-fair":          "group-user-job-fair",
		"group-user-size-fair":          "group-user-size-fair",
		"group-user-then-size-fair":     "group-user-size-fair",
		"group-then-user-then-job-fair": "group-user-job-fair",
	} {
		if got := mustPolicy(t, name).String(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for name, why := range map[string]string{
		"": "-fair", "fair": "-fair", "job": "-fair", "-fair": "not one of", "Job-fair": "not one of",
		"node-fair": "not one of", "job-job-fair": "twice", "user-user-fair": "twice", "size-user-fair": "inside",
		"user-group-fair": "inside", "job-size-fair": "inside", "then-job-fair": "not one of",
		"user-then-then-job-fair": "not one of", "user-then-fair": "needs a level", "user--job-fair": "not one of",
	} {
		if p, err := ParsePolicy(name); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q gave %v, %v, want an error with %q", name, p, err, why)
		}
	}
}

// The examples of the paper's figures 3 and 4 (two users with two and four jobs), 5 (sizes), 9 and 11.
func TestPaperExamples(t *testing.T) {
	six := []Job{{User: "1"}, {User: "1"}, {User: "2"}, {User: "2"}, {User: "2"}, {User: "2"}}
	nine := []Job{{User: "1", Size: 1}, {User: "1", Size: 2}, {User: "2", Size: 4}, {User: "2", Size: 6}}
	eleven := []Job{
		{Group: "1", User: "1", Size: 1},
		{Group: "2", User: "2", Size: 2}, {Group: "2", User: "2", Size: 3}, {Group: "2", User: "2", Size: 2},
		{Group: "2", User: "3", Size: 3}, {Group: "2", User: "3", Size: 2},
		{Group: "2", User: "4", Size: 1}, {Group: "2", User: "4", Size: 2},
	}
	for _, c := range []struct {
		policy string
		jobs   []Job
		want   []float64
	}{
		{"job-fair", six[:2], []float64{0.5, 0.5}},
		{"user-then-job-fair", six, []float64{.25, .25, .125, .125, .125, .125}},
		{"user-fair", six, []float64{.25, .25, .125, .125, .125, .125}},
		{"size-fair", []Job{{Size: 16}, {Size: 8}}, []float64{2. / 3, 1. / 3}},
		{"size-fair", []Job{{Size: 16}, {Size: 8}, {Size: 8}}, []float64{.5, .25, .25}},
		{"user-then-size-fair", nine, []float64{1. / 6, 1. / 3, .2, .3}},
		{"priority-fair", []Job{{Priority: 1}, {Priority: 3}}, []float64{.25, .75}},
		{"group-user-size-fair", eleven, []float64{1. / 2, 2. / 42, 3. / 42, 2. / 42, 1. / 10, 1. / 15, 1. / 18,
			1. / 9}},
	} {
		near(t, c.policy, Shares(mustPolicy(t, c.policy), c.jobs), c.want, 1e-15)
	}
}

// A user's name in two groups is two users there.
func TestUserInTwoGroups(t *testing.T) {
	jobs := []Job{{Group: "g", User: "u"}, {Group: "h", User: "u"}, {Group: "h", User: "v"}}
	near(t, "shares", Shares(mustPolicy(t, "group-user-fair"), jobs), []float64{.5, .25, .25}, 0)
	near(t, "shares", Shares(mustPolicy(t, "user-fair"), jobs), []float64{.25, .25, .5}, 0)
}

func crowd(n int, seed uint64) []Job {
	r := rand.New(rand.NewPCG(seed, 1))
	jobs := make([]Job, n)
	for i := range jobs {
		g := r.IntN(20)
		jobs[i] = Job{
			Name: fmt.Sprint("j", i), Group: fmt.Sprint("g", g), User: fmt.Sprint("u", g, ".", r.IntN(50)),
			Size: float64(1 + r.IntN(4096)), Priority: float64(1 + r.IntN(1000)),
		}
	}
	return jobs
}

// exact is the share by rational numbers, straight from the definition.
func exact(jobs []Job) []*big.Rat {
	users := map[string]map[string]int64{}
	for _, j := range jobs {
		if users[j.Group] == nil {
			users[j.Group] = map[string]int64{}
		}
		users[j.Group][j.User] += int64(j.Size)
	}
	out := make([]*big.Rat, len(jobs))
	for i, j := range jobs {
		out[i] = big.NewRat(int64(j.Size), int64(len(users))*int64(len(users[j.Group]))*users[j.Group][j.User])
	}
	return out
}

func TestExactForTenThousandJobs(t *testing.T) {
	jobs := crowd(10_000, 1)
	got := Shares(mustPolicy(t, "group-user-size-fair"), jobs)
	sum := 0.0
	for i, want := range exact(jobs) {
		diff := new(big.Rat).Sub(new(big.Rat).SetFloat64(got[i]), want)
		if off, _ := diff.Abs(diff).Float64(); off > 1e-12*got[i] {
			t.Fatalf("job %d has %v, off by %v", i, got[i], off)
		}
		sum += got[i]
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("shares add up to %v", sum)
	}
	cut := Segments(got)
	for i := range got {
		if d := cut[i+1] - cut[i] - got[i]; math.Abs(d) > 1e-12 {
			t.Fatalf("segment %d is %v longer than the share", i, d)
		}
	}
	if cut[0] != 0 || cut[len(got)] != 1 {
		t.Errorf("segments cover [%v, %v]", cut[0], cut[len(got)])
	}
}

func TestSegmentsEndAtOneWithIdleJobsLast(t *testing.T) {
	near(t, "cut", Segments([]float64{.1, .2, .7, 0, 0}), []float64{0, .1, .3, 1, 1, 1}, 1e-15)
	if cut := Segments([]float64{.1, .2, .7, 0}); cut[3] != 1 || cut[4] != 1 {
		t.Errorf("the last shares end at %v, %v, want exactly 1", cut[3], cut[4])
	}
}

func TestAllocateByHand(t *testing.T) {
	inf := math.Inf(1)
	// User a has a busy job and a quiet one, b and c have one each.
	jobs := []Job{{User: "a"}, {User: "a"}, {User: "b"}, {User: "c"}}
	p := mustPolicy(t, "user-fair")
	for _, c := range []struct {
		demand []float64
		idle   Idle
		want   []float64
	}{
		{[]float64{inf, inf, inf, inf}, Inside, []float64{20, 20, 40, 40}},
		// a's idle half stays with a; flat, everybody gets some of it.
		{[]float64{inf, 0, inf, inf}, Inside, []float64{40, 0, 40, 40}},
		{[]float64{inf, 0, inf, inf}, Flat, []float64{24, 0, 48, 48}},
		// c wants 10: its other 30 go to a and b evenly.
		{[]float64{inf, 5, inf, 10}, Inside, []float64{50, 5, 55, 10}},
		{[]float64{1, 2, 3, 4}, Inside, []float64{1, 2, 3, 4}},
		{[]float64{1, 2, 3, 4}, Flat, []float64{1, 2, 3, 4}},
		{[]float64{0, 0, 0, inf}, Inside, []float64{0, 0, 0, 120}},
		{[]float64{0, 0, 0, 0}, Inside, []float64{0, 0, 0, 0}},
	} {
		near(t, fmt.Sprint(c.idle, c.demand), Allocate(p, jobs, c.demand, 120, c.idle), c.want, 1e-12)
	}
}

// For any demands: nobody gets more than he wants, nothing is wasted, and every job gets its share or
// all it wants.
func TestAllocateProperties(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		jobs := crowd(1+r.IntN(60), seed)
		demand := make([]float64, len(jobs))
		total := 0.0
		for i := range demand {
			if r.IntN(3) > 0 {
				demand[i] = math.Floor(r.Float64() * 100)
			}
			total += demand[i]
		}
		for _, idle := range []Idle{Inside, Flat} {
			p := mustPolicy(t, "group-user-size-fair")
			capacity := 500.0
			got := Allocate(p, jobs, demand, capacity, idle)
			sum := 0.0
			for i, s := range Shares(p, jobs) {
				sum += got[i]
				if got[i] > demand[i] {
					t.Errorf("seed %d %s: job %d wants %v, gets %v", seed, idle, i, demand[i], got[i])
				}
				if least := min(s*capacity, demand[i]); got[i] < least-1e-9 {
					t.Errorf("seed %d %s: job %d gets %v, less than its %v", seed, idle, i, got[i], least)
				}
			}
			if want := min(total, capacity); math.Abs(sum-want) > 1e-9 {
				t.Errorf("seed %d %s: %v of %v is used", seed, idle, sum, want)
			}
		}
	}
}

// The bar: 10,000 jobs three levels deep in less than 10 ms, a draw in less than 100 ns.
func BenchmarkShares(b *testing.B) {
	p, jobs := mustPolicy(b, "group-user-size-fair"), crowd(10_000, 1)
	from := cpuTime()
	for b.Loop() {
		Shares(p, jobs)
	}
	b.ReportMetric((cpuTime()-from).Seconds()*1e3/float64(b.N), "cpu-ms/10000jobs")
}
