package periodic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Check proves a pattern against the model of section 2, from its numbers alone: every application
// runs; its instances follow each other round the pattern, each computes its w seconds before its I/O
// and has its whole volume in order; no application exceeds its own bandwidth and all together never
// the system's. It says what is broken.
func (p Pattern) Check(s Set) error {
	if len(p.Apps) != len(s.Apps) {
		return fmt.Errorf("the pattern has %d applications, the set %d", len(p.Apps), len(s.Apps))
	}
	var loads []load
	for i, a := range p.Apps {
		if err := p.checkApp(s, s.Apps[i], a); err != nil {
			return fmt.Errorf("%s (apps[%d]): %w", a.Name, i, err)
		}
		for _, in := range a.Instances {
			for _, x := range in.IO {
				loads = append(loads, load{x[0], x[2]}, load{x[1], -x[2]})
			}
		}
	}
	slices.SortFunc(loads, func(a, b load) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.change, b.change))
	})
	sum := 0.0
	for _, l := range loads {
		if sum += l.change; sum > s.Bandwidth*(1+slack) {
			return fmt.Errorf("at %v s the applications use %v GB/s of %v", l.at, sum, s.Bandwidth)
		}
	}
	return nil
}

// load is a change of the bandwidth in use; at one instant those that end come first.
type load struct{ at, change float64 }

// slack is the part of a quantity that rounding may be off by.
const slack = 1e-9

func (p Pattern) checkApp(s Set, app App, a Placed) error {
	if len(a.Instances) == 0 {
		return fmt.Errorf("it never runs")
	}
	// How far round the pattern the whole sequence goes, from where the first computation starts.
	clock := p.T * slack
	at := a.Instances[0].InitW
	round := 0.0
	wait := func(to float64) { // go forward in time to a time of the pattern
		d := math.Mod(to-at+2*p.T, p.T)
		if d > p.T-clock { // an instant before: rounding
			d = 0
		}
		round += d
		at = to
	}
	for i, in := range a.Instances {
		wait(in.InitW)
		compute := round + app.Work
		volume := 0.0
		for k, x := range in.IO {
			if x[0] < 0 || x[1] > p.T || x[1] <= x[0] {
				return fmt.Errorf("instance %d: interval %v..%v s is not one of the pattern", i, x[0], x[1])
			}
			if x[2] <= 0 || x[2] > s.rate(app)*(1+slack) {
				return fmt.Errorf("instance %d: %v GB/s is more than its %v", i, x[2], s.rate(app))
			}
			wait(x[0])
			if k == 0 && round < compute-clock {
				return fmt.Errorf("instance %d: its I/O starts %v s before its computation ends", i, compute-round)
			}
			wait(x[1])
			volume += (x[1] - x[0]) * x[2]
		}
		if math.Abs(volume-app.Volume) > app.Volume*slack*10 {
			return fmt.Errorf("instance %d: %v GB are moved, not %v", i, volume, app.Volume)
		}
	}
	wait(a.Instances[0].InitW)
	if round > p.T+clock*float64(len(a.Instances)+1) {
		return fmt.Errorf("its instances go %v times round the pattern", round/p.T)
	}
	return nil
}
