// Package targetslow accuses storage targets, metadata servers and disks that are slower than their peers: those
// that hold pieces of the same files, and so get the same kind of work.
package targetslow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// Model is the version that findings carry.
const Model = "targetslow-1"

// Point is what one target did in one interval, such as a second or a Darshan log.
type Point struct {
	Target topology.NodeID
	// Group are the targets that are each other's peers (a pool, the disks of a host); it names the
	// operations too where several classes are distinguished.
	Group string
	// Cost is the mean seconds of an operation or, of rates, the seconds of a byte: only its ratio to
	// the peers' counts.
	Cost float64
}

const (
	// blockPoints make one bet of the test sudden, and of the test mild when they span blockSeconds: what lasts for
	// minutes is chance as well.
	blockPoints  = 40
	blockSeconds = 600
)

// The tests of a target.
const (
	sudden = iota
	mild
	tests
)

// Detector compares targets interval by interval. It has no clock; its methods must not be called concurrently.
type Detector struct {
	rules    Rules
	bar      compare.Bar
	groups   map[string]*group
	sorted   []float64
	verdicts []anomaly.Verdict
}

// group are targets that are compared, and what is saved of them. A target's reads are judged apart from its writes.
type group struct {
	Targets compare.Subjects[target, *target]
	Lasting lasting

	points []Point // of this interval
}

type target struct {
	compare.Case
	Habit scatter
	Ratio float64 // smoothed log ratio to the peers, over about a block

	blocks [tests]block // what is not full is not saved
	newest float64      // log ratio of the newest point
}

// block gathers points for one bet.
type block struct {
	begun        int64
	n            int
	sum, squares float64
}

// add takes one point; full says that the block makes a bet now.
func (b *block) add(now int64, r float64, seconds int64) (mean, variance float64, full bool) {
	if b.n == 0 {
		b.begun = now
	}
	b.sum, b.squares, b.n = b.sum+r, b.squares+r*r, b.n+1
	if b.n < blockPoints || now-b.begun < seconds {
		return 0, 0, false
	}
	n := float64(b.n)
	mean = b.sum / n
	variance = (b.squares/n - mean*mean) / n
	*b = block{}
	return mean, variance, true
}

// New makes a detector that accuses a healthy target once in every on average, if its points come every
// interval; see docs/detection.md for what that rests on.
func New(rules Rules, every, interval time.Duration) *Detector {
	return &Detector{rules: rules, groups: map[string]*group{}, bar: compare.Bar{Kind: anomaly.TargetSlow, Model: Model,
		Alarm: compare.Threshold(every, blockPoints*max(interval, time.Millisecond), tests), Doubt: rules.DoubtFrom}}
}

// Take takes one interval's points and returns a verdict for each target that was compared in it, in order of targets.
// The slice is used again by the next call.
func (d *Detector) Take(now time.Time, points []Point) []anomaly.Verdict {
	for _, p := range points {
		if !(p.Cost > 0) || math.IsInf(p.Cost, 1) {
			continue
		}
		g := anomaly.Entry(d.groups, p.Group)
		g.points = append(g.points, p)
	}
	d.verdicts = d.verdicts[:0]
	for name, g := range d.groups {
		if len(g.points) > d.rules.FewestPeers {
			d.compare(now.Unix(), name, g)
		}
		g.points = g.points[:0]
	}
	slices.SortFunc(d.verdicts, order)
	d.verdicts = slices.CompactFunc(d.verdicts, func(a, b anomaly.Verdict) bool { return order(a, b) == 0 })
	return d.verdicts
}

func order(a, b anomaly.Verdict) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Class, b.Class))
}

// compare compares the targets of a group. What a full block teaches counts when all are judged.
func (d *Detector) compare(now int64, name string, g *group) {
	d.sorted = d.sorted[:0]
	for _, p := range g.points {
		d.sorted = append(d.sorted, math.Log(p.Cost))
	}
	slices.Sort(d.sorted)
	lessons, usual := map[*target]float64{}, 0.0
	for _, p := range g.points {
		x, t := math.Log(p.Cost), g.Targets.Get(p.Target)
		t.newest = x - compare.MedianOfOthers(d.sorted, x)
		t.Ratio += (t.newest - t.Ratio) / blockPoints
		r := max(-d.rules.MostOfAPoint, min(d.rules.MostOfAPoint, t.newest))
		if mean, noise, full := t.blocks[sudden].add(now, r, 0); full {
			d.bet(t, sudden, &d.rules.Sudden, now, mean, noise)
		}
		if mean, noise, full := t.blocks[mild].add(now, r, blockSeconds-1); full {
			if len(lessons) == 0 {
				usual = d.medianVariance(g)
			}
			d.bet(t, mild, &d.rules.Mild, now, mean, noise+t.Habit.variance(usual, &g.Lasting))
			lessons[t] = mean
		}
	}
	for _, p := range g.points {
		t := g.Targets.Get(p.Target)
		if mean, full := lessons[t]; full {
			t.Habit.teach(mean, d.rules.FirstScatter, &g.Lasting)
			delete(lessons, t)
		}
		v, _ := t.Verdict(&d.bar, p.Target)
		v.Class, v.Ratio = name, math.Exp(t.newest)
		if v.Level > anomaly.Clean {
			v.Evidence["ratio"] = math.Exp(t.Ratio)
			v.Sentence = fmt.Sprintf("%s takes %s as long as the other targets of %s at the same time", p.Target,
				anomaly.Times(math.Exp(t.Ratio)), name)
		}
		d.verdicts = append(d.verdicts, v)
	}
}

// bet lets a full block speak to a test.
func (d *Detector) bet(t *target, test int, rule *TestRules, now int64, mean, variance float64) {
	won := compare.Against(mean-rule.Tolerated, variance+rule.Doubt*rule.Doubt, rule.SlowBy)
	t.Bet(&d.bar, test, now, max(-d.rules.MostLoss, min(won, d.rules.MostBet)))
}

// medianVariance is the variance of the median target of a group, of those seen in this interval.
func (d *Detector) medianVariance(g *group) float64 {
	var known []float64
	for _, p := range g.points {
		if t := g.Targets.Get(p.Target); t.Habit.Blocks > 1 {
			known = append(known, t.Habit.Variance)
		}
	}
	if len(known) <= d.rules.FewestPeers {
		return d.rules.FirstScatter * d.rules.FirstScatter
	}
	return anomaly.Median(known)
}

// FewestPoints is how many points of a target accuse it at the earliest.
func (d *Detector) FewestPoints() int {
	return blockPoints * int(math.Ceil(d.bar.Alarm/d.rules.MostBet))
}

// Forget ends what is held against the targets of a node that has shown that it is well.
func (d *Detector) Forget(id topology.NodeID) {
	for _, g := range d.groups {
		g.Targets.Forget(id)
	}
}

// MarshalBinary saves what was learnt and the evidence so far; blocks that are not full are lost.
func (d *Detector) MarshalBinary() ([]byte, error) { return anomaly.Save(d.groups) }

// UnmarshalBinary takes up a saved state; the rules stay those of New. On an error the detector is as it was.
func (d *Detector) UnmarshalBinary(b []byte) error { return anomaly.Load(b, &d.groups) }
