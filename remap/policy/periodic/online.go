package periodic

import (
	"cmp"
	"math"
	"slices"
)

// Unplanned is what happens without a pattern: everybody starts at once, asks for I/O when its computation
// is done, and the bandwidth is divided by a rule. Nothing is lost to congestion here, so a real system
// does worse than this.
type Unplanned = Figures

// Rule divides bandwidth among the applications that want it, anew whenever one begins or ends its I/O.
type Rule string

// Fair gives every processor the same, and what one cannot take to the others. The other rules are the online
// heuristics of Gainaru et al., "Scheduling the I/O of HPC applications under congestion", with which section 4.4
// compares: an ordered list of which each gets its full rate or waits, and what is left over stays idle.
const (
	Fair     Rule = "fair"
	Oldest   Rule = "oldest"   // the longest time since its last I/O first
	Progress Rule = "progress" // the smallest efficiency, as a part of what it has alone, first
	Gain     Rule = "gain"     // the most computation for a GB first
	Mix      Rule = "mix"      // those below half of their own efficiency by progress, then the others by gain
)

// Heuristics returns the online rules that the paper compares with.
func Heuristics() []Rule { return []Rule{Oldest, Progress, Gain, Mix} }

// Online follows a checked set without a pattern: every application ends the instance that it is in after the given
// seconds, and no more. Efficiency counts to the end of its last instance (section 2.3).
func Online(s Set, rule Rule, seconds float64) Unplanned {
	apps := make([]fluid, len(s.Apps))
	for i, a := range s.Apps {
		apps[i] = fluid{compute: a.Work, index: i}
	}

	for t := 0.0; ; {
		if rule == Fair {
			shareFairly(s, apps)
		} else {
			shareInOrder(s, apps, rule, t)
		}
		dt := math.Inf(1)
		for i := range apps {
			dt = min(dt, apps[i].left())
		}
		if math.IsInf(dt, 1) {
			break // all have stopped
		}

		t += dt
		for i := range apps {
			if f := &apps[i]; f.run(s.Apps[i], dt) {
				f.n++
				f.end, f.stopped = t, t >= seconds*(1-tiny)
			}
		}
	}

	u := Unplanned{Dilation: 1}
	for i, a := range s.Apps {
		n := float64(apps[i].n)
		u.SysEfficiency += a.Procs * n * a.Work / (s.Procs * apps[i].end)
		u.Dilation = max(u.Dilation, apps[i].end/(n*s.cycle(a)))
	}
	return u
}

// fluid is an application at an instant: seconds of computation left, or GB of I/O at a rate.
type fluid struct {
	compute, volume, rate float64
	index                 int
	settled               bool    // has its rate already
	stopped               bool    // starts no instance any more
	n                     int     // instances so far
	end                   float64 // of the last one
}

// left is how long the phase goes on; for ever where it waits.
func (f *fluid) left() float64 {
	switch {
	case f.stopped:
		return math.Inf(1)
	case f.compute > 0:
		return f.compute
	}
	return f.volume / f.rate
}

// run goes on for dt seconds, no more than left, and changes phase at the end; it says whether that
// ended an instance.
func (f *fluid) run(a App, dt float64) (ended bool) {
	switch ends := dt >= f.left()*(1-tiny); {
	case f.stopped:
	case f.compute > 0:
		f.compute -= dt
		if ends {
			f.compute, f.volume = 0, a.Volume
		}
	case ends:
		f.compute, f.volume = a.Work, 0
		return true
	default:
		f.volume -= f.rate * dt
	}
	return false
}

// wants says whether it is in its I/O.
func (f *fluid) wants() bool { return !f.stopped && f.compute <= 0 }

// shareFairly gives each application in its I/O a rate: the same for every processor, up to what it can
// take; what one cannot take goes to the others.
func shareFairly(s Set, apps []fluid) {
	room, procs := s.Bandwidth, 0.0
	for i := range apps {
		apps[i].settled = !apps[i].wants()
		if !apps[i].settled {
			procs += s.Apps[i].Procs
		}
	}
	for settled := true; settled; {
		settled = false
		level := room / math.Max(procs, 1)
		for i, a := range s.Apps {
			f := &apps[i]
			if f.settled {
				continue
			}
			if most := s.rate(a); most <= level*a.Procs {
				f.rate, f.settled, settled = most, true, true
				room -= most
				procs -= a.Procs
				break
			}
			f.rate = level * a.Procs
		}
	}
}

// shareInOrder gives the applications in their I/O their full rates in the order of a rule, at a time; who does not
// fit beside them waits.
func shareInOrder(s Set, apps []fluid, rule Rule, t float64) {
	var asking []*fluid
	for i := range apps {
		if apps[i].wants() {
			asking = append(asking, &apps[i])
		}
	}
	slices.SortStableFunc(asking, func(a, b *fluid) int {
		x, y := rule.key(s, a, t), rule.key(s, b, t)
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(a.n, b.n))
	})

	room := s.Bandwidth
	for _, f := range asking {
		f.rate = 0
		if most := s.rate(s.Apps[f.index]); most <= room*(1+slack) {
			f.rate = most
			room -= most
		}
	}
}

// key orders an application at a time, the smallest first.
func (r Rule) key(s Set, f *fluid, t float64) [2]float64 {
	a := s.Apps[f.index]
	progress := float64(f.n) * s.cycle(a) / t
	gain := a.Procs * a.Work / a.Volume
	switch {
	case r == Oldest:
		return [2]float64{f.end}
	case r == Progress, r == Mix && progress < 0.5:
		return [2]float64{0, progress}
	}
	return [2]float64{1, -gain}
}
