package periodic

import (
	"math"
	"slices"
)

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
	slices.SortStableFunc(k.items, func(a, b item) int {
		switch x, y := a.work*b.volume, b.work*a.volume; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
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
