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
	"fairway/anomaly/failslow"
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
	limit    anomaly.LogWealth // of an alarm
	targets  map[subject]*target
	order    []*target
	groups   map[string]*group
	logs     []float64
	sorted   []float64
	lessons  []lesson // of the blocks of this interval, which teach when all are judged
	verdicts []anomaly.Verdict
}

// subject is one target in one group: its reads and its writes are judged by themselves.
type subject struct {
	group string
	id    topology.NodeID
}

type target struct {
	kept
	blocks [tests]block
	seen   int64
	newest float64 // log ratio of the newest point
}

// kept is what outlives a restart of one target.
type kept struct {
	Group string
	ID    topology.NodeID
	Tests [tests]failslow.SequentialTest
	Habit scatter
	Alarm bool
	Since int64
	Ratio float64 // smoothed log ratio to the peers, over about a block
}

// group are targets that are compared.
type group struct {
	members []int // of the points of this interval
	lasting lasting
	// median is the variance of the median target, as of the interval asOf.
	median float64
	asOf   int64
}

// lesson is a full block of the mild test that is to teach its target and its group.
type lesson struct {
	target *target
	group  *group
	mean   float64
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

// top is the test with the most wealth.
func (t *target) top() *failslow.SequentialTest {
	if t.Tests[mild].Log > t.Tests[sudden].Log {
		return &t.Tests[mild]
	}
	return &t.Tests[sudden]
}

// New makes a detector that accuses a healthy target once in every on average, if its points come every
// interval; see docs/detection.md for what that rests on.
func New(rules Rules, every, interval time.Duration) *Detector {
	return &Detector{rules: rules,
		limit:   failslow.Threshold(every, blockPoints*max(interval, time.Millisecond), tests),
		targets: map[subject]*target{}, groups: map[string]*group{}}
}

// Take takes one interval's points and returns a verdict for each target that was compared in it. The
// slice is used again by the next call.
func (d *Detector) Take(now time.Time, points []Point) []anomaly.Verdict {
	d.verdicts = d.verdicts[:0]
	d.gather(points)
	for name, g := range d.groups {
		if len(g.members) <= d.rules.FewestPeers {
			continue
		}
		d.logs = d.logs[:0]
		for _, i := range g.members {
			d.logs = append(d.logs, math.Log(points[i].Cost))
		}
		d.sorted = append(d.sorted[:0], d.logs...)
		slices.Sort(d.sorted)
		for k, i := range g.members {
			ratio := d.logs[k] - medianWithout(d.sorted, d.logs[k])
			d.point(now.Unix(), subject{name, points[i].Target}, g, points, ratio)
		}
	}
	for _, l := range d.lessons {
		l.target.Habit.teach(l.mean, d.rules.FirstScatter, &l.group.lasting)
	}
	d.lessons = d.lessons[:0]

	for _, t := range d.order {
		if t.seen == now.Unix() {
			d.decide(t)
		}
	}
	return d.verdicts
}

// gather sorts the points of an interval into their groups.
func (d *Detector) gather(points []Point) {
	for _, g := range d.groups {
		g.members = g.members[:0]
	}
	for i, p := range points {
		if !(p.Cost > 0) || math.IsInf(p.Cost, 1) {
			continue
		}
		g := d.groups[p.Group]
		if g == nil {
			g = &group{}
			d.groups[p.Group] = g
		}
		g.members = append(g.members, i)
	}
}

// medianWithout is the median of sorted values without one of them, x.
func medianWithout(sorted []float64, x float64) float64 {
	at, _ := slices.BinarySearch(sorted, x)
	get := func(i int) float64 {
		if i >= at {
			i++
		}
		return sorted[i]
	}
	n := len(sorted) - 1
	return (get((n-1)/2) + get(n/2)) / 2
}

func (d *Detector) point(now int64, s subject, g *group, points []Point, r float64) {
	t := d.targets[s]
	if t == nil {
		t = &target{kept: kept{ID: s.id, Group: s.group}}
		d.targets[s] = t
		d.order = append(d.order, t)
		slices.SortFunc(d.order, func(a, b *target) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Group, b.Group))
		})
	}
	t.seen = now
	t.Ratio += (r - t.Ratio) / blockPoints
	t.newest = r
	r = max(-d.rules.MostOfAPoint, min(d.rules.MostOfAPoint, r))
	if mean, noise, full := t.blocks[sudden].add(now, r, 0); full {
		d.bet(&t.Tests[sudden], &d.rules.Sudden, now, mean, noise)
	}
	if mean, noise, full := t.blocks[mild].add(now, r, blockSeconds-1); full {
		scatter := t.Habit.variance(d.median(now, s.group, g, points), &g.lasting)
		d.bet(&t.Tests[mild], &d.rules.Mild, now, mean, noise+scatter)
		d.lessons = append(d.lessons, lesson{t, g, mean})
	}
}

// bet lets a full block speak to a test.
func (d *Detector) bet(test *failslow.SequentialTest, rule *TestRules, now int64, mean, variance float64) {
	won := failslow.Against(mean-rule.Tolerated, variance+rule.Doubt*rule.Doubt, rule.SlowBy)
	test.Bet(now, max(-d.rules.MostLoss, min(won, d.rules.MostBet)), d.limit+d.rules.KeptAboveLimit)
}

// median is the variance of the median target of its group, of those seen in this interval.
func (d *Detector) median(now int64, name string, g *group, points []Point) float64 {
	if g.asOf == now {
		return g.median
	}
	var known []float64
	for _, i := range g.members {
		if t := d.targets[subject{name, points[i].Target}]; t != nil && t.Habit.Blocks > 1 {
			known = append(known, t.Habit.Variance)
		}
	}
	g.asOf, g.median = now, medianVariance(known, d.rules.FewestPeers, d.rules.FirstScatter)
	return g.median
}

func (d *Detector) decide(t *target) {
	score := t.top().Log / d.limit
	switch {
	case !t.Alarm && score >= 1:
		t.Alarm, t.Since = true, t.top().Start
	case t.Alarm && score < d.rules.ReleaseBelow:
		t.Alarm = false
	}
	v := anomaly.Verdict{Node: t.ID, Kind: anomaly.TargetSlow, Level: anomaly.Clean, Score: score, Model: Model,
		Class: t.Group, Ratio: math.Exp(t.newest)}
	switch {
	case t.Alarm:
		v.Level = anomaly.Alarm
	case score >= d.rules.DoubtFrom:
		v.Level = anomaly.Doubt
	}
	if v.Level > anomaly.Clean {
		since := t.top().Start
		if t.Alarm {
			since = t.Since
		}
		v.Since = time.Unix(since, 0).UTC()
		v.Confidence = min(0.99, score/1.3)
		v.Evidence = map[string]float64{"score": score, "ratio": math.Exp(t.Ratio)}
		v.Sentence = fmt.Sprintf("%s takes %s as long as the other targets of %s at the same time", t.ID,
			anomaly.Times(math.Exp(t.Ratio)), t.Group)
	}
	d.verdicts = append(d.verdicts, v)
}

// FewestPoints is how many points of a target accuse it at the earliest.
func (d *Detector) FewestPoints() int {
	return blockPoints * int(math.Ceil(float64(d.limit)/d.rules.MostBet))
}

// Forget ends what is held against the targets of a node that has shown that it is well.
func (d *Detector) Forget(id topology.NodeID) {
	for _, t := range d.order {
		if t.ID == id {
			t.Tests, t.Alarm = [tests]failslow.SequentialTest{}, false
		}
	}
}
