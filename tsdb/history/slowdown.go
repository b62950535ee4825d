package history

import (
	"cmp"
	"slices"

	"fairway/collector/topology"
)

// Slowdown is how much longer an application's runs took for each byte beside another one on the same forwarders than
// alone there (FAST'19, Table 3).
type Slowdown struct {
	App    string  `json:"app"`
	Beside string  `json:"beside"`
	Times  float64 `json:"times"` // the median; 1: nothing lost
	Runs   int     `json:"runs"`  // beside the other
	Alone  int     `json:"alone"` // runs of the same size that had their forwarders for themselves
}

// Slowdowns compares ended runs with those of the same key that shared no forwarder with anybody. A run beside several
// applications counts for each. Pairs without both kinds of runs are left out.
func Slowdowns(runs []Run) []Slowdown {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		return r.End.IsZero() || len(r.Forwarders) == 0
	})
	slices.SortFunc(runs, func(a, b Run) int { return a.Start.Compare(b.Start) })
	beside := make([]map[string]bool, len(runs)) // by run: the applications that shared a forwarder with it
	var open []int
	for i := range runs {
		beside[i] = map[string]bool{}
		open = slices.DeleteFunc(open, func(k int) bool { return !runs[k].End.After(runs[i].Start) })
		for _, k := range open {
			if slices.ContainsFunc(runs[k].Forwarders, func(f topology.ForwarderID) bool {
				return slices.Contains(runs[i].Forwarders, f)
			}) {
				beside[i][runs[k].App], beside[k][runs[i].App] = true, true
			}
		}
		open = append(open, i)
	}
	alone := map[Key][]float64{} // seconds of I/O a byte
	for i := range runs {
		if s, known := runs[i].secondsPerByte(); known && len(beside[i]) == 0 {
			alone[runs[i].Key()] = append(alone[runs[i].Key()], s)
		}
	}
	type pair struct{ app, beside string }
	ratios, counted := map[pair][]float64{}, map[pair]int{}
	for i := range runs {
		s, known := runs[i].secondsPerByte()
		usual := alone[runs[i].Key()]
		if !known || len(usual) == 0 {
			continue
		}
		for other := range beside[i] {
			p := pair{runs[i].App, other}
			ratios[p] = append(ratios[p], s/middleOf(usual))
			counted[p] = max(counted[p], len(usual))
		}
	}
	out := []Slowdown{}
	for p, r := range ratios {
		out = append(out, Slowdown{App: p.app, Beside: p.beside, Times: middleOf(r), Runs: len(r), Alone: counted[p]})
	}
	slices.SortFunc(out, func(a, b Slowdown) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.App, b.App), cmp.Compare(a.Beside, b.Beside))
	})
	return out
}

// secondsPerByte is a run's time of I/O for each byte; known is false where it moved nothing or nothing is known.
func (r *Run) secondsPerByte() (seconds float64, known bool) {
	p := r.Profile
	if p == nil || p.VolumeBytes() == 0 || p.IOSeconds == 0 {
		return 0, false
	}
	return p.IOSeconds / p.VolumeBytes(), true
}

// middleOf is the median of values, of which there is at least one.
func middleOf(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
