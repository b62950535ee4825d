// Package periodic staggers the I/O of periodic applications: it finds a pattern, of length T and
// repeated for ever, that says when each application does its I/O and at what bandwidth, so that they
// do not meet. It is PerSched of "Periodic I/O scheduling for super-computers" (Aupy, Gainaru, Le
// Fèvre), with what the paper leaves open settled so:
//
//   - the next instance goes to the application with the worst (largest) dilation, as the paper's text
//     says and line 13 of its algorithm 2 does not; ties go to the larger w/time_io, then to the
//     earlier in the list;
//   - a first instance fills the intervals first in which it can use most bandwidth, the earlier of
//     equal ones (beyond its own rate free bandwidth counts for nothing, or the sets 2, 3 and 4 of
//     table 4 have dilations 3 to 6 % above the paper's); its computation must then fit the largest
//     gap that its I/O leaves in the cyclic pattern;
//   - a pattern in which an application never runs is not a result;
//   - the smallest pattern length tried is a parameter.
//
// Times are seconds, volumes GB, bandwidths GB/s.
package periodic

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Set is a machine and the applications that run on it together.
type Set struct {
	Procs     float64 `json:"procs"` // processors of the machine (N)
	Link      float64 `json:"b"`     // bandwidth of one processor, GB/s
	Bandwidth float64 `json:"B"`     // bandwidth of the I/O system, GB/s
	KPrime    float64 `json:"kprime"`
	Eps       float64 `json:"eps"`
	// TMin and KPrime * TMin are the shortest and the longest pattern tried, seconds; default is the
	// longest instance. Eps is the step between them.
	TMin float64 `json:"tmin"`
	Aim  Aim     `json:"aim,omitempty"`
	Apps []App   `json:"apps"`
}

// Aim is what a search wants of a pattern.
type Aim string

// Efficiency is the paper's and the default: the most SysEfficiency. LeastDilation is its "min Dilation". Both is
// the least dilation of all patterns with at most 1.5 % less than the most SysEfficiency: in each set of table 4,
// with the text's own T_min, it is at most 1 % worse than the paper in both columns.
const (
	Efficiency    Aim = "efficiency"
	LeastDilation Aim = "dilation"
	Both          Aim = "both"
)

// share is the part of the most SysEfficiency that a pattern must have.
func (a Aim) share() float64 {
	switch a {
	case LeastDilation:
		return 0
	case Both:
		return 1 - 0.015
	}
	return 1
}

// App is one periodic application: it computes, then does its I/O, and again.
type App struct {
	Name   string  `json:"name"`
	Work   float64 `json:"w"`    // seconds of computation in each instance
	Volume float64 `json:"vol"`  // GB of I/O in each instance
	Procs  float64 `json:"beta"` // processors
}

// rate is the most bandwidth an application can use, GB/s; ioTime the least time its I/O takes; cycle
// the least time of an instance (section 2.2).
func (s Set) rate(a App) float64   { return min(a.Procs*s.Link, s.Bandwidth) }
func (s Set) ioTime(a App) float64 { return a.Volume / s.rate(a) }
func (s Set) cycle(a App) float64  { return a.Work + s.ioTime(a) }

// The defaults are the paper's (section 4.4); the bounds keep a search finite.
const (
	defaultKPrime = 10
	defaultEps    = 0.01
	minEps        = 1e-4
	maxKPrime     = 1000
	maxApps       = 1024
	maxInstances  = 1 << 20
)

// Complete fills in the defaults of a set and checks it.
func Complete(s Set) (Set, error) {
	s.KPrime = cmp.Or(s.KPrime, defaultKPrime)
	if s.Eps == 0 {
		s.Eps = defaultEps
	}
	if err := s.check(); err != nil {
		return Set{}, err
	}
	if s.TMin == 0 {
		s.TMin = s.shortest()
	}
	return s, nil
}

// shortest is the least length that holds an instance of every application: T_min of the paper.
func (s Set) shortest() float64 {
	t := 0.0
	for _, a := range s.Apps {
		t = max(t, s.cycle(a))
	}
	return t
}

// check names the first field that makes a set impossible.
func (s Set) check() error {
	for _, f := range []struct {
		name   string
		v      float64
		lo, hi float64
	}{
		{"procs", s.Procs, 1, 1e12}, {"b", s.Link, 1e-12, 1e12}, {"B", s.Bandwidth, 1e-12, 1e12},
		{"kprime", s.KPrime, 1, maxKPrime}, {"eps", s.Eps, minEps, 1},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("%s: %v is not in %g..%g", f.name, f.v, f.lo, f.hi)
		}
	}
	if s.Aim != "" && s.Aim != Efficiency && s.Aim != LeastDilation && s.Aim != Both {
		return fmt.Errorf("aim: %q is not one of %s, %s, %s", s.Aim, Efficiency, LeastDilation, Both)
	}
	if len(s.Apps) == 0 || len(s.Apps) > maxApps {
		return fmt.Errorf("apps: %d of them, want 1..%d", len(s.Apps), maxApps)
	}
	procs := 0.0
	for i, a := range s.Apps {
		if err := a.check(); err != nil {
			return fmt.Errorf("apps[%d].%w", i, err)
		}
		procs += a.Procs
	}
	if procs > s.Procs {
		return fmt.Errorf("apps: they need %v processors together, the machine has %v (procs)", procs, s.Procs)
	}
	if s.TMin < 0 || s.TMin > 1e15 {
		return fmt.Errorf("tmin: %v is not in 0..1e15 s (0 is the longest instance)", s.TMin)
	}
	longest, n := max(s.TMin, s.shortest())*s.KPrime, 0.0
	for _, a := range s.Apps {
		n += math.Floor(longest / s.cycle(a))
	}
	if n > maxInstances {
		return fmt.Errorf(
			"apps: a pattern of kprime * tmin = %g s could hold %g instances, more than %d; leave out the shortest, "+
				"or lower kprime", longest, n, maxInstances)
	}
	return nil
}

func (a App) check() error {
	if a.Name == "" {
		return errors.New("name: missing")
	}
	for _, f := range []struct {
		name string
		v    float64
	}{{"w", a.Work}, {"vol", a.Volume}, {"beta", a.Procs}} {
		if f.v < 1e-9 || f.v > 1e12 {
			return fmt.Errorf("%s: %v is not in 1e-9..1e12", f.name, f.v)
		}
	}
	return nil
}

// UpperBound is the SysEfficiency if nobody ever waited (equation 5).
func (s Set) UpperBound() float64 {
	sum := 0.0
	for _, a := range s.Apps {
		sum += a.Procs * a.Work / s.cycle(a)
	}
	return sum / s.Procs
}

// KnapsackBound is a tighter bound than equation 5: nobody waits, but all I/O together fits the
// bandwidth. Applications get bandwidth in the order of the computation that a GB carries (fractional
// knapsack); no schedule, periodic or not, does better.
func (s Set) KnapsackBound() float64 {
	k := newKnapsack(s)
	return k.fill(1, func(a *item) float64 { return 1 / a.cycle }) / s.Procs
}

// Work bounds the instances that Schedule places for a checked set, over all lengths it may build.
func (s Set) Work() float64 {
	instances := 0.0
	for _, a := range s.Apps {
		instances += math.Floor(s.TMin * s.KPrime / s.cycle(a))
	}
	return (math.Log(s.KPrime)/math.Log1p(s.Eps) + 1/s.Eps) * instances
}

// Steps estimates what a search looks at: for each length all instances, and for each first one all that are there.
func (s Set) Steps() float64 {
	lengths := math.Log(s.KPrime)/math.Log1p(s.Eps) + 1/s.Eps
	return s.Work() + 2*lengths*float64(len(s.Apps)*len(s.Apps))
}

// knapsack bounds the work (processor seconds) that fits a length of time.
type knapsack struct {
	items     []item // most work for a GB first
	bandwidth float64
}

type item struct{ work, volume, cycle float64 }

func newKnapsack(s Set) knapsack {
	k := knapsack{bandwidth: s.Bandwidth}
	for _, a := range s.Apps {
		k.items = append(k.items, item{a.Procs * a.Work, a.Volume, s.cycle(a)})
	}
	slices.SortStableFunc(k.items, func(a, b item) int { return cmp.Compare(b.work*a.volume, a.work*b.volume) })
	return k
}

// fill is the most work in t seconds when each application has at most the given instances.
func (k knapsack) fill(t float64, most func(*item) float64) float64 {
	room, work := k.bandwidth*t, 0.0
	for i := range k.items {
		n := min(most(&k.items[i]), room/k.items[i].volume)
		work += n * k.items[i].work
		room -= n * k.items[i].volume
	}
	return work
}

// work bounds what a pattern of length t can hold: whole instances of each application.
func (k knapsack) work(t float64) float64 {
	w := k.fill(t, func(a *item) float64 { return math.Floor(t / a.cycle * (1 + 1e-9)) })
	return w * (1 + 1e-9) // rounding does not make a bound of it that is too low
}
