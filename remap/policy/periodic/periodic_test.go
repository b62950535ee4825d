package periodic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The applications of the paper's table 1, scaled to its 640 processors as section 4.2 says: beta / 64,
// w * 64.
var table1 = []App{
	{"T1", 70 * 64, 128.2, 32768 / 64},
	{"T2", 1.2 * 64, 235.8, 4096 / 64},
	{"AP", 240 * 64, 423.4, 8192 / 64},
	{"PP", 7554 * 64, 34304, 32768 / 64},
}

// tables 2 and 4: how many of each application, the smallest pattern length the authors set by hand,
// and what they report.
var table4 = []struct {
	count                        [4]int
	tmin                         float64
	minDilation, upper, dilation float64
	efficiency                   float64
}{
	{[4]int{0, 10, 0, 0}, 900, 1.777, 0.172, 1.896, 0.0973},
	{[4]int{0, 8, 1, 0}, 16000, 1.422, 0.334, 1.429, 0.290},
	{[4]int{0, 6, 2, 0}, 16000, 1.079, 0.495, 1.087, 0.480},
	{[4]int{0, 4, 3, 0}, 16000, 1.014, 0.656, 1.014, 0.647},
	{[4]int{0, 2, 0, 1}, 495000, 1.010, 0.816, 1.024, 0.815},
	{[4]int{0, 2, 4, 0}, 16000, 1.005, 0.818, 1.005, 0.814},
	{[4]int{1, 2, 0, 0}, 4544, 1.007, 0.827, 1.007, 0.824},
	{[4]int{0, 0, 1, 1}, 495000, 1.005, 0.977, 1.005, 0.976},
	{[4]int{0, 0, 5, 0}, 16000, 1.000, 0.979, 1.000, 0.979},
	{[4]int{1, 0, 1, 0}, 4544, 1.009, 0.988, 1.009, 0.986},
}

func paperSet(i int) Set {
	s := Set{Procs: 640, Link: 0.01, Bandwidth: 3, KPrime: 10, Eps: 0.01, TMin: table4[i].tmin}
	for k, n := range table4[i].count {
		for j := range n {
			a := table1[k]
			a.Name = fmt.Sprint(a.Name, "-", j+1)
			s.Apps = append(s.Apps, a)
		}
	}
	return s
}

// Every set of table 4 with the authors' pattern lengths and with the text's own T_min: a valid pattern,
// finite dilation, and no more than 0.5 % less SysEfficiency than they report.
func TestTable4(t *testing.T) {
	for i, row := range table4 {
		for _, own := range []bool{false, true} {
			s := paperSet(i)
			if own {
				s.TMin = s.shortest()
			}
			p, err := Schedule(s)
			if err != nil {
				t.Errorf("set %d: %v", i+1, err)
				continue
			}
			if err := p.Check(s); err != nil {
				t.Errorf("set %d: %v", i+1, err)
			}
			u := FairShare(s, s.TMin*s.KPrime)
			t.Logf(
				"set %2d, T_min %6.0f: T %8.0f, SysEfficiency %.4f (table %.4f, %+.2f %%), dilation %.3f (table "+
					"%.3f), bounds %.4f, %.4f; unplanned %.4f, %.3f",
				i+1, s.TMin, p.T, p.SysEfficiency, row.efficiency, 100*(p.SysEfficiency/row.efficiency-1), p.Dilation,
				row.dilation,
				p.UpperBound, p.KnapsackBound, u.SysEfficiency, u.Dilation)
			if p.SysEfficiency < row.efficiency*.995 {
				t.Errorf("set %d: SysEfficiency %v, the table has %v", i+1, p.SysEfficiency, row.efficiency)
			}
			if math.Abs(p.UpperBound-row.upper) > .00051 {
				t.Errorf("set %d: upper bound %v, the table has %v", i+1, p.UpperBound, row.upper)
			}
			if p.SysEfficiency > p.KnapsackBound || p.KnapsackBound > p.UpperBound*(1+1e-12) {
				t.Errorf("set %d: SysEfficiency %v, knapsack bound %v, upper bound %v", i+1, p.SysEfficiency,
					p.KnapsackBound, p.UpperBound)
			}
			if !(p.Dilation >= 1 && p.Dilation < 2.5) {
				t.Errorf("set %d: dilation %v", i+1, p.Dilation)
			}
		}
	}
}

// randomSet is a small machine with up to ten applications, some of them alike.
func randomSet(seed uint64) Set {
	r := rand.New(rand.NewPCG(seed, 4))
	s := Set{Procs: 1000, Link: .01, Bandwidth: .5 + 3*r.Float64(), KPrime: 1 + float64(r.IntN(6)), Eps: .05}
	for i := range 1 + r.IntN(10) {
		a := App{fmt.Sprint("app", i), 1 + 1000*r.Float64(), math.Exp(8 * r.Float64()), float64(1 + r.IntN(100))}
		if i > 0 && r.IntN(3) == 0 {
			a = s.Apps[i-1]
		}
		s.Apps = append(s.Apps, a)
	}
	s.TMin = s.shortest() * (1 + r.Float64())
	return s
}

func TestRandomSetsAreValid(t *testing.T) {
	none := 0
	for seed := range uint64(300) {
		s := randomSet(seed)
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		p, err := Schedule(s)
		if err != nil {
			none++
			continue
		}
		if err := p.Check(s); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if p.SysEfficiency > p.KnapsackBound*(1+1e-12) {
			t.Errorf("seed %d: SysEfficiency %v is over the bound %v", seed, p.SysEfficiency, p.KnapsackBound)
		}
		if u := FairShare(s, s.TMin*s.KPrime); u.SysEfficiency > p.UpperBound*(1+1e-9) || u.Dilation < 1 {
			t.Errorf("seed %d: unplanned %+v", seed, u)
		}
	}
	t.Logf("%d of 300 have no pattern", none)
	if none > 30 {
		t.Error("too many sets have no pattern")
	}
}

// Leaving out what cannot win must not change what wins, nor may the number of workers.
func TestSearchIsExhaustive(t *testing.T) {
	for seed := range uint64(40) {
		s := randomSet(seed)
		b, best := newBuilder(s), candidate{}
		for l := s.TMin; l <= s.TMin*s.KPrime*(1+tiny); l *= 1 + s.Eps {
			if work, whole := b.build(l); whole && (candidate{l, work}).better(best) {
				best = candidate{l, work}
			}
		}
		for workers := 1; workers < 4; workers++ {
			bs := make([]*builder, workers)
			for i := range bs {
				bs[i] = newBuilder(s)
			}
			k := newKnapsack(s)
			if got := longest(s, k, bs); got != best {
				t.Fatalf("seed %d, %d workers: found %v, the best is %v", seed, workers, got, best)
			}
		}
	}
}

// Two applications that need the whole bandwidth for half of their time each take turns.
func TestTwoTakeTurns(t *testing.T) {
	s := Set{Procs: 200, Link: .01, Bandwidth: 1, KPrime: 2, Eps: .01,
		Apps: []App{{"a", 10, 10, 100}, {"b", 10, 10, 100}}}
	s.TMin = s.shortest()
	p, err := Schedule(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(s); err != nil {
		t.Fatal(err)
	}
	if p.T != 20 || p.Dilation != 1 || p.SysEfficiency != .5 {
		t.Errorf("T %v, dilation %v, SysEfficiency %v; want 20, 1, 0.5", p.T, p.Dilation, p.SysEfficiency)
	}
	// Without a plan they meet: 10 s of computing, 20 s of I/O at half the speed, and again.
	if u := FairShare(s, 300); math.Abs(u.SysEfficiency-1./3) > 1e-9 || math.Abs(u.Dilation-1.5) > 1e-9 {
		t.Errorf("unplanned: %+v, want a third and 1.5", u)
	}
}

func TestNoPattern(t *testing.T) {
	// The first application takes the bandwidth all the time but for its own computation.
	s := Set{Procs: 20, Link: 1, Bandwidth: 1, KPrime: 1, Eps: .01, Apps: []App{{"a", 1, 100, 10}, {"b", 1, 100, 10}}}
	s.TMin = s.shortest()
	if p, err := Schedule(s); err == nil {
		t.Errorf("a pattern in which not everybody runs is a result: %+v", p)
	}
}

func TestCheckSeesWhatIsBroken(t *testing.T) {
	s := paperSet(6)
	for want, spoil := range map[string]func(*Pattern){
		"never runs":        func(p *Pattern) { p.Apps[0].Instances = nil },
		"applications":      func(p *Pattern) { p.Apps = p.Apps[1:] },
		"GB are moved":      func(p *Pattern) { p.Apps[1].Instances[3].IO[0][1] -= 1 },
		"more than its":     func(p *Pattern) { p.Apps[1].Instances[0].IO[0][2] *= 1.1 },
		"before its":        func(p *Pattern) { p.Apps[0].Instances[0].InitW += 60 },
		"GB/s of 3":         func(p *Pattern) { p.Apps[2].Instances = p.Apps[1].Instances },
		"round the pattern": func(p *Pattern) { i := p.Apps[1].Instances; i[1], i[2] = i[2], i[1] },
		"not one of":        func(p *Pattern) { p.Apps[0].Instances[0].IO[0][1] = p.T + 1 },
	} {
		// Full rates, so that a copy of another's I/O is too much.
		p, err := Schedule(s)
		if err != nil {
			t.Fatal(err)
		}
		if want == "GB/s of 3" {
			p = crowded(s)
		} else {
			spoil(&p)
		}
		if err := p.Check(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// crowded is a pattern in which everybody does I/O at once at full speed.
func crowded(s Set) Pattern {
	p := Pattern{T: 6000}
	for _, a := range s.Apps {
		end := 5000 + s.ioTime(a)
		p.Apps = append(p.Apps, Placed{Name: a.Name, Instances: []Instance{{end, []Interval{{5000, end, s.rate(a)}}}}})
	}
	return p
}

func TestReadSet(t *testing.T) {
	ok := `{"procs":640,"b":0.01,"B":3.0,"apps":[{"name":"x","w":10,"vol":5,"beta":64}]}`
	s, err := ReadSet(strings.NewReader(ok))
	if err != nil || s.KPrime != 10 || s.Eps != .01 || s.Link != .01 || s.Bandwidth != 3 || s.TMin != s.shortest() {
		t.Errorf("%+v, %v", s, err)
	}
	for in, want := range map[string]string{
		``:                                   "EOF",
		ok + "1":                             "something follows",
		strings.Replace(ok, "640", "63", 1):  "apps: they need 64 processors",
		strings.Replace(ok, "3.0", "0", 1):   "B: 0",
		strings.Replace(ok, "0.01", "-1", 1): "b: -1",
		strings.Replace(ok, `"w":10`, `"w":0`, 1):               "apps[0].w",
		strings.Replace(ok, `"vol":5,`, "", 1):                  "apps[0].vol",
		strings.Replace(ok, `"x"`, `""`, 1):                     "apps[0].name",
		strings.Replace(ok, `"w"`, `"W2"`, 1):                   "unknown field",
		strings.Replace(ok, `"apps"`, `"tmin":-1,"apps"`, 1):    "tmin: -1",
		strings.Replace(ok, `"apps"`, `"eps":1e-9,"apps"`, 1):   "eps",
		strings.Replace(ok, `"apps"`, `"kprime":0.5,"apps"`, 1): "kprime",
		strings.Replace(ok, `"apps"`, `"tmin":1e14,"apps"`, 1):  "instances",
		`{"procs":640,"b":0.01,"B":3.0,"apps":[]}`:              "apps: 0",
	} {
		if _, err := ReadSet(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gave %v, want %q", in, err, want)
		}
	}
}

// Whatever set is taken gives a valid pattern or none.
func FuzzSet(f *testing.F) {
	f.Add(
		`{"procs":640,"b":0.01,"B":3.0,"kprime":2,"eps":0.1,"apps":[` +
			`{"name":"x","w":10,"vol":5,"beta":64},{"name":"y","w":1,"vol":15,"beta":400}]}`)
	f.Add(
		`{"procs":10,"b":1,"B":1,"kprime":3,"eps":0.5,"tmin":40,"apps":[` +
			`{"name":"x","w":1e-3,"vol":5,"beta":1},{"name":"y","w":9,"vol":15,"beta":4}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ReadSet(strings.NewReader(in))
		if err != nil {
			return
		}
		n := 0.0
		for _, a := range s.Apps {
			n += s.TMin * s.KPrime / s.cycle(a)
		}
		if n > 1e4 || s.Eps < .01 || s.KPrime > 20 {
			return // would take long and show nothing more
		}
		p, err := Schedule(s)
		if err != nil {
			return
		}
		if err := p.Check(s); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
	})
}

// The bar: ten times faster than the authors' program, which takes 2 ms (set 10) to 2.2 s (set 5).
func BenchmarkTable4(b *testing.B) {
	for i := range table4 {
		b.Run(fmt.Sprint("set", i+1), func(b *testing.B) {
			s := paperSet(i)
			from := cpuTime()
			for b.Loop() {
				if _, err := Schedule(s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuTime()-from).Seconds()*1e3/float64(b.N), "cpu-ms/set")
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/set")
		})
	}
}

// cpuTime is what this process has computed, on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
