package effect

import (
	"math"
	"slices"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/remap"
)

// Rules of what counts as an effect.
const (
	// block is how many seconds make one value of a mean: requests of neighbouring seconds are alike.
	block = 5
	// fewBlocks with requests say nothing.
	fewBlocks = 2
	// near is how many values are next to the move.
	near = 3
	// elsewhere is how much better than a step at the move one at another time must fit for the change not to be the
	// move's: beyond what the best of all times does by chance.
	elsewhere = 12.0
	// fewGroups of nodes that were not moved say by themselves how much such groups differ; fewer do not.
	fewGroups = 6
	// outlier is how many times the usual deviation a group may be away from the others: beyond, it has an incident of
	// its own.
	outlier = 4.0
	// sure is the error, one-sided, that a verdict may have; the interval's is stated in remap.Gain.
	sure = 0.005
)

// group is what the requests of one class of some nodes did in each second; NaN: nothing was reported.
type group struct {
	ops, took, bytes []float64 // requests that ended, the seconds that they took together, bytes that they moved
	age              []float64 // of the oldest request without an answer, seconds; NaN: nobody counts them
}

func newGroup(seconds int) *group {
	g := &group{}
	for _, row := range []*[]float64{&g.ops, &g.took, &g.bytes, &g.age} {
		*row = make([]float64, seconds)
	}
	for i := range g.age {
		g.age[i] = math.NaN()
	}
	return g
}

// sums adds up the seconds from a to z.
func (g *group) sums(a, z int) (ops, took, bytes float64, busy int) {
	for i := max(a, 0); i < min(z, len(g.ops)); i++ {
		if g.ops[i] > 0 {
			busy++
		}
		ops, took, bytes = ops+g.ops[i], took+g.took[i], bytes+g.bytes[i]
	}
	return ops, took, bytes, busy
}

// oldest is the age of the oldest request in the seconds from a to z; 0: none, or not known.
func (g *group) oldest(a, z int) (age float64) {
	for i := max(a, 0); i < min(z, len(g.age)); i++ {
		if g.age[i] > age {
			age = g.age[i]
		}
	}
	return age
}

// idle reports whether requests of nodes were counted in the seconds from a to z, and there were none of any class.
func idle(of [collector.Classes]*group, a, z int) bool {
	seconds := 0
	for i := max(a, 0); i < min(z, len(of[0].age)); i++ {
		for _, g := range of {
			if g.ops[i] > 0 || g.age[i] > 0 {
				return false
			}
		}
		if !math.IsNaN(of[0].age[i]) {
			seconds++
		}
	}
	return seconds >= least
}

// logs are the logarithms of the mean time of a request in blocks of so many seconds from a to z; NaN: nothing was
// asked for. A block in which none ended and one has waited counts by the age of that: it takes at least so long.
func (g *group) logs(a, z, block int) (out []float64) {
	for ; a+block <= z; a += block {
		ops, took, _, _ := g.sums(a, a+block)
		value := math.NaN()
		if ops > 0 && took > 0 {
			value = math.Log(took / ops)
		} else if age := g.oldest(a, a+block); ops == 0 && age >= float64(block) {
			value = math.Log(age)
		}
		out = append(out, value)
	}
	return out
}

// known are the values that are.
func known(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// span is where the move is among the seconds of groups: the first ones are before it, those from after on after it.
type span struct{ before, after, end int }

// step is by how much the logarithm of a group's latency changed at the move.
type step struct {
	by float64
	// atMove is false where the change came blocks before or after the move.
	atMove bool
	// before and after are its blocks; NaN: nothing was asked for.
	before, after []float64
}

// stepOf measures a group's change; ok is false where it did too little.
func stepOf(g *group, s span) (d step, ok bool) {
	d = step{before: g.logs(s.before%block, s.before, block), after: g.logs(s.after, s.end, block)}
	b, a := known(d.before), known(d.after)
	if len(b) < fewBlocks || len(a) < fewBlocks {
		return d, false
	}
	mb, _ := squaresOf(b)
	ma, _ := squaresOf(a)
	d.by = ma - mb
	seconds := known(g.logs(0, s.before, 1))
	d.atMove = closeBy(b, a) && stepsAt(append(seconds, known(g.logs(s.after, s.end, 1))...), len(seconds))
	return d, true
}

// closeBy reports whether at least half of a change came between the values next to the move, but for what those after
// it differ by chance.
func closeBy(before, after []float64) bool {
	b, a := before[max(0, len(before)-near):], after[:min(near, len(after))]
	mb, _ := squaresOf(before)
	ma, squares := squaresOf(after)
	nb, _ := squaresOf(b)
	na, _ := squaresOf(a)
	chance := 2 * math.Sqrt(squares/float64(len(after)-1)*(1/float64(len(b))+1/float64(len(a))))
	return math.Abs(nb-na)+chance > math.Abs(ma-mb)/2 && (nb > na == (mb > ma) || chance > math.Abs(ma-mb)/2)
}

// stepsAt reports whether values step where the move was, give or take three, and not elsewhere. Values like their
// neighbours make a step anywhere fit better by as much as they are alike.
func stepsAt(values []float64, at int) bool {
	squares := func(at int) float64 {
		_, b := squaresOf(values[:at])
		_, a := squaresOf(values[at:])
		return a + b
	}
	here, best, where := squares(at), math.Inf(1), at
	for i := 1; i < len(values); i++ {
		if s := squares(i); s < best {
			best, where = s, i
		}
	}
	if there := where >= at-near && where <= at+near; there || best <= 0 {
		return there
	}
	alike := max(alikeOf(values[:where]), alikeOf(values[where:]))
	return (here-best)/best*float64(len(values)-2)*(1-alike)/(1+alike) < elsewhere
}

// squaresOf are a mean and the squares of what values differ from it.
func squaresOf(values []float64) (mean, squares float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, squares
}

// alikeOf is how much values are like those before them, 0..0.7. The estimate of n is low by about 1/n.
func alikeOf(values []float64) float64 {
	mean, squares := squaresOf(values)
	next := 0.0
	for i := 1; i < len(values); i++ {
		next += (values[i] - mean) * (values[i-1] - mean)
	}
	if squares <= 0 {
		return 0
	}
	return min(0.7, max(0, next/squares+1/float64(len(values))))
}

// meanOf is a mean with its variance and degrees of freedom. Blocks that follow each other are alike by as much as the
// first correlation says, so that they count for fewer.
func meanOf(values []float64) (mean, variance, freedom float64) {
	n := float64(len(values))
	mean, squares := squaresOf(values)
	if n < 2 || squares <= 0 {
		return mean, 0, max(1, n-1)
	}
	alike := alikeOf(values)
	counts := max(2, n*(1-alike)/(1+alike))
	return mean, squares / (n - 1) / counts, counts - 1
}

// compared is the change of the moved nodes beyond that of groups which were not.
type compared struct {
	gain, err, freedom float64 // gain is a logarithm: above 0 is faster
	groups             int
}

// compare takes the change of the moved nodes beyond that of the job's other nodes, or where it has none, of other
// jobs'; ok is false where there is nothing to compare with.
func compare(moved step, mates, layer []step) (c compared, ok bool) {
	own, wide := usualOf(mates), usualOf(layer)
	if len(own) == 0 {
		own = wide
	}
	c.groups = len(own)
	if c.groups == 0 {
		return c, false
	}
	b, a := beyond(moved.before, own, func(s *step) []float64 { return s.before }), beyond(moved.after, own,
		func(s *step) []float64 { return s.after })
	if len(b) < fewBlocks || len(a) < fewBlocks {
		return c, false
	}
	mb, vb, fb := meanOf(b)
	ma, va, fa := meanOf(a)
	c.gain, c.err, c.freedom = mb-ma, math.Sqrt(va+vb), fa+fb
	// Many groups show how much one changes by itself, whatever makes it.
	if n := float64(len(wide)); n >= fewGroups {
		by := make([]float64, len(wide))
		for i := range wide {
			by[i] = wide[i].by
		}
		_, squares := squaresOf(by)
		if err := math.Sqrt(squares / (n - 1) * (1 + 1/n)); err > c.err {
			c.err, c.freedom = err, n-1
		}
	}
	return c, true
}

// usualOf leaves out the groups that change far more than the others do: those have an incident of their own.
func usualOf(groups []step) []step {
	by := make([]float64, len(groups))
	for i := range groups {
		by[i] = groups[i].by
	}
	mid := anomaly.Median(by)
	for i := range by {
		by[i] = math.Abs(by[i] - mid)
	}
	away := outlier * max(1.4826*anomaly.Median(by), 0.02)
	return slices.DeleteFunc(slices.Clone(groups), func(s step) bool { return math.Abs(s.by-mid) > away })
}

// beyond are the blocks of the moved nodes less the mean of the groups in the same seconds: what all have
// in common goes.
func beyond(moved []float64, groups []step, of func(*step) []float64) (out []float64) {
	for i, v := range moved {
		sum, n := 0.0, 0.0
		for k := range groups {
			if other := of(&groups[k])[i]; !math.IsNaN(other) {
				sum, n = sum+other, n+1
			}
		}
		if !math.IsNaN(v) && n > 0 {
			out = append(out, v-sum/n)
		}
	}
	return out
}

// bounds are the interval in which the gain is but for an error of p on each side.
func (c *compared) bounds(p float64) (low, high float64) {
	d := student(p, c.freedom) * c.err
	return c.gain - d, c.gain + d
}

// verdict is what the gain says; decided is false where its interval holds more than one answer. What the interval that
// is shown has wholly beyond HelpedFrom has helped, too, if by few bursts.
func (c *compared) verdict() (v remap.Verdict, decided bool) {
	low, high := c.bounds(sure)
	least, most := c.bounds(0.025)
	from := math.Log(remap.HelpedFrom)
	switch {
	case low > 0 && c.gain >= from || least >= from:
		return remap.Helped, true
	case high < 0 && c.gain <= -from || most <= -from:
		return remap.Worse, true
	case low > -from && high < from:
		return remap.NoEffect, true
	case least > -from && most < from:
		return remap.NoEffect, false
	}
	return remap.EffectUnknown, false
}

// student is the value that Student's t exceeds with the probability p, by Hill's expansion around the normal one
// (Cornish and Fisher; exact to 1 % from 3 degrees of freedom on).
func student(p, freedom float64) float64 {
	z := math.Sqrt2 * math.Erfinv(1-2*p)
	f := max(freedom, 1)
	z3, z5, z7 := z*z*z, math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*f) + (5*z5+16*z3+3*z)/(96*f*f) + (3*z7+19*z5+17*z3-15*z)/(384*f*f*f)
}
