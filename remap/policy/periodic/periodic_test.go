package periodic

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every set of table 4 gives both columns and the least dilation with the authors' pattern lengths, to the digits that
// the table prints. With the text's own T_min one pattern for both aims is at most 1 % worse in either column.
func TestTable4(t *testing.T) {
	for i, row := range PaperSets() {
		s := row.Set
		p := scheduled(t, s)
		if math.Abs(p.SysEfficiency-row.PerSched.SysEfficiency) > .0005+1e-6 ||
			math.Abs(p.Dilation-row.PerSched.Dilation) > .001 {
			t.Errorf("set %d: SysEfficiency %v, dilation %v; the table has %+v", i+1, p.SysEfficiency, p.Dilation,
				row.PerSched)
		}
		if math.Abs(p.UpperBound-row.UpperBound) > .00051 {
			t.Errorf("set %d: upper bound %v, the table has %v", i+1, p.UpperBound, row.UpperBound)
		}
		s.Aim = LeastDilation
		if least := scheduled(t, s); least.Dilation > row.MinDilation+.0005 {
			t.Errorf("set %d: least dilation %v, the table has %v", i+1, least.Dilation, row.MinDilation)
		}
		s.Aim, s.TMin = Both, s.shortest()
		both := scheduled(t, s)
		if both.SysEfficiency < .99*row.PerSched.SysEfficiency || both.Dilation > 1.01*row.PerSched.Dilation {
			t.Errorf("set %d: for both aims SysEfficiency %v, dilation %v; the table has %+v", i+1, both.SysEfficiency,
				both.Dilation, row.PerSched)
		}
	}
}

// scheduled is a set's pattern, checked against the model and its bounds.
func scheduled(t *testing.T, s Set) Pattern {
	t.Helper()
	p, err := Schedule(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(s); err != nil {
		t.Fatal(err)
	}
	if p.SysEfficiency > p.KnapsackBound || p.KnapsackBound > p.UpperBound*(1+1e-12) || p.Dilation < 1 {
		t.Fatalf("%+v is outside of its bounds", p)
	}
	return p
}

// The heuristics' best dilation is within 2 % of the paper's online column, and their best efficiency within 3 %, but
// for sets 3 and 6, where the paper's is 7 % less. In set 6 no schedule has both of the paper's figures: who waits no
// more than 3.5 % computes at least 1 / 1.035 of the upper bound.
func TestOnlineColumns(t *testing.T) {
	for i, row := range PaperSets() {
		paper, best := row.Online, row.BestOnline()
		if off := best.Dilation/paper.Dilation - 1; math.Abs(off) > .02 {
			t.Errorf("set %d: dilation %v, the paper has %v", i+1, best.Dilation, paper.Dilation)
		}
		if off := best.SysEfficiency/paper.SysEfficiency - 1; math.Abs(off) > .03 && i != 2 && i != 5 {
			t.Errorf("set %d: SysEfficiency %v, the paper has %v", i+1, best.SysEfficiency, paper.SysEfficiency)
		}
		if impossible := paper.SysEfficiency < row.UpperBound/paper.Dilation-.001; impossible != (i == 5) {
			t.Errorf("set %d: the paper's figures contradict each other: %v", i+1, impossible)
		}
	}
}

// An ordered list leaves idle what its next one cannot use whole: four of ten applications of set 1 write at once.
func TestOnlineLeavesSpareBandwidthIdle(t *testing.T) {
	s := PaperSets()[0].Set
	ordered, fair := Online(s, Progress, 1e6), Online(s, Fair, 1e6)
	rate := s.rate(s.Apps[0])
	if want := 10 / 4. * s.ioTime(s.Apps[0]) / s.cycle(s.Apps[0]); math.Abs(ordered.Dilation/want-1) > .01 {
		t.Errorf("dilation %v; four at %v of %v GB/s give %v", ordered.Dilation, rate, s.Bandwidth, want)
	}
	if want := 10 * s.Apps[0].Volume / s.Bandwidth / s.cycle(s.Apps[0]); math.Abs(fair.Dilation/want-1) > .1 {
		t.Errorf("shared fairly: dilation %v, the whole bandwidth gives %v", fair.Dilation, want)
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
		if u := Online(s, Fair, s.TMin*s.KPrime); u.SysEfficiency > p.UpperBound*(1+1e-9) || u.Dilation < 1 {
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
			if work, whole := b.build(l); whole && (candidate{t: l, work: work}).better(best) {
				best = candidate{l, work, b.dilation()}
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
	if u := Online(s, Fair, 300); math.Abs(u.SysEfficiency-1./3) > 1e-9 || math.Abs(u.Dilation-1.5) > 1e-9 {
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
	s := PaperSets()[6].Set
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

// readSet is a set as people write it.
func readSet(text string) (s Set, err error) {
	if err = json.Unmarshal([]byte(text), &s); err != nil {
		return s, err
	}
	return Complete(s)
}

func TestComplete(t *testing.T) {
	ok := `{"procs":640,"b":0.01,"B":3.0,"apps":[{"name":"x","w":10,"vol":5,"beta":64}]}`
	s, err := readSet(ok)
	if err != nil || s.KPrime != 10 || s.Eps != .01 || s.Link != .01 || s.Bandwidth != 3 || s.TMin != s.shortest() {
		t.Errorf("%+v, %v", s, err)
	}
	for in, want := range map[string]string{
		strings.Replace(ok, "640", "63", 1):                     "apps: they need 64 processors",
		strings.Replace(ok, "3.0", "0", 1):                      "B: 0",
		strings.Replace(ok, "0.01", "-1", 1):                    "b: -1",
		strings.Replace(ok, `"w":10`, `"w":0`, 1):               "apps[0].w",
		strings.Replace(ok, `"vol":5,`, "", 1):                  "apps[0].vol",
		strings.Replace(ok, `"x"`, `""`, 1):                     "apps[0].name",
		strings.Replace(ok, `"apps"`, `"tmin":-1,"apps"`, 1):    "tmin: -1",
		strings.Replace(ok, `"apps"`, `"eps":1e-9,"apps"`, 1):   "eps",
		strings.Replace(ok, `"apps"`, `"kprime":0.5,"apps"`, 1): "kprime",
		strings.Replace(ok, `"apps"`, `"tmin":1e14,"apps"`, 1):  "instances",
		`{"procs":640,"b":0.01,"B":3.0,"apps":[]}`:              "apps: 0",
	} {
		if _, err := readSet(in); err == nil || !strings.Contains(err.Error(), want) {
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
		s, err := readSet(in)
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
	for i, row := range PaperSets() {
		b.Run(fmt.Sprint("set", i+1), func(b *testing.B) {
			s := row.Set
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
