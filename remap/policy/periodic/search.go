package periodic

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Schedule is PerSched: the pattern that the set's aim wants of all lengths from TMin to KPrime * TMin
// that grow by 1+Eps, then shortened in steps of Eps^2 as long as nothing falls out of it. The set
// must have been checked. It fails when no length has room for every application.
func Schedule(s Set) (Pattern, error) {
	k := newKnapsack(s)
	workers := make([]*builder, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i] = newBuilder(s)
	}
	best := longest(s, k, workers)
	if best.t == 0 {
		return Pattern{}, fmt.Errorf("no pattern of %g to %g s has room for an instance of every application", s.TMin,
			s.TMin*s.KPrime)
	}
	best = shorten(s, k, workers, best)
	b := workers[0]
	b.record = true
	b.build(best.t)
	return b.pattern(), nil
}

// candidate is a pattern's length, its work and its dilation; efficiency is work / t but for a constant.
type candidate struct{ t, work, dilation float64 }

// better prefers efficiency, then the shorter pattern.
func (c candidate) better(d candidate) bool {
	x, y := c.work*d.t, d.work*c.t
	return d.t == 0 || x > y || x == y && c.t < d.t
}

// choose is the candidate that an aim wants; none has a length of 0.
func (a Aim) choose(found []candidate) (best candidate) {
	for _, c := range found {
		if c.better(best) {
			best = c
		}
	}
	if a.share() == 1 || best.t == 0 {
		return best
	}
	least := best.work / best.t * a.share()
	for _, c := range found {
		if c.work/c.t >= least && (c.dilation < best.dilation || c.dilation == best.dilation && c.better(best)) {
			best = c
		}
	}
	return best
}

// longest tries the lengths that grow by 1+Eps. What cannot have the share of the best so far that the aim asks, by
// the knapsack bound, is not built; the most promising are built first.
func longest(s Set, k knapsack, workers []*builder) candidate {
	var bounds []candidate
	for t := s.TMin; t <= s.TMin*s.KPrime*(1+tiny); t *= 1 + s.Eps {
		if t >= s.shortest()*(1-tiny) {
			bounds = append(bounds, candidate{t: t, work: k.work(t)})
		}
	}
	slices.SortStableFunc(bounds, func(a, b candidate) int { return cmp.Compare(b.work*a.t, a.work*b.t) })
	var next atomic.Int64
	var top atomic.Uint64 // best efficiency so far, as bits
	found := make([][]candidate, len(workers))
	each(workers, func(i int, b *builder) {
		for {
			n := int(next.Add(1) - 1)
			if n >= len(bounds) || bounds[n].work/bounds[n].t < s.Aim.share()*math.Float64frombits(top.Load()) {
				return
			}
			c := candidate{t: bounds[n].t}
			var whole bool
			if c.work, whole = b.build(c.t); !whole {
				continue
			}
			c.dilation = b.dilation()
			found[i] = append(found[i], c)
			raise(&top, c.work/c.t)
		}
	})
	return s.Aim.choose(slices.Concat(found...))
}

// raise makes top at least x. Bits of positive numbers are in the numbers' order.
func raise(top *atomic.Uint64, x float64) {
	for bits := math.Float64bits(x); ; {
		old := top.Load()
		if old >= bits || top.CompareAndSwap(old, bits) {
			return
		}
	}
}

// shorten tries 1/Eps lengths from best down to best/(1+Eps) as long as they hold the same work
// (section 3.1, correcting the period size). The next few are built at the same time.
func shorten(s Set, k knapsack, workers []*builder, best candidate) candidate {
	steps := math.Floor(1 / s.Eps)
	step := (best.t - best.t/(1+s.Eps)) / steps
	same := best.work * (1 - tiny)
	long := best.t
	for n := 1.0; n <= steps; n += float64(len(workers)) {
		fits := make([]bool, len(workers))
		each(workers, func(i int, b *builder) {
			t := long - (n+float64(i))*step
			if t < s.shortest() || n+float64(i) > steps || k.work(t) < same {
				return
			}
			work, whole := b.build(t)
			fits[i] = whole && work >= same && (s.Aim.share() == 1 || b.dilation() <= best.dilation)
		})
		for i, ok := range fits {
			if !ok {
				return best
			}
			best.t = long - (n+float64(i))*step
		}
	}
	return best
}

// each runs f for all workers at once and waits.
func each(workers []*builder, f func(int, *builder)) {
	var all sync.WaitGroup
	for i, b := range workers[1:] {
		all.Go(func() { f(i+1, b) })
	}
	f(0, workers[0])
	all.Wait()
}
