package failslow

import (
	"math"

	"fairway/anomaly"
	"fairway/anomaly/compare"
)

const (
	blockSeconds = 5
	longSeconds  = 10
	// ratioSeconds is the memory of what a sentence says: shorter than what the worst faults take to be found.
	ratioSeconds = 6
)

// best is the surest kind of evidence in a block.
func best(e *[kinds]estimate) int {
	for kind := range e {
		if e[kind].Weight > 0 {
			return kind
		}
	}
	return streamed
}

// collect adds the node's newest second to its blocks.
func (d *Detector) collect(n *node, o *Observation) {
	s := &n.now
	for c := range Meta { // reads and writes
		if !s.seen[c] || !s.known[c] {
			continue
		}
		if c == Read && n.Back != 0 && float64(d.now-n.Back) < coldFor {
			continue
		}
		regime := s.regime[c]
		n.shown[c][regime].add(d.now, s.log[c], s.size[c], s.ops[c])
		r, kind := d.ownPart(n, c)
		sigma := d.model.sigma(c, s.ops[c])
		n.ratio[c] += (r - n.ratio[c]) / ratioSeconds
		short, long := streamShort, streamLong
		if kind == background {
			short, long = backgroundShort, 0
		}
		n.short[c][kind].add(r, sigma, short)
		n.long[c][kind].add(r, sigma, long)
	}
	d.collectCap(n, o)
	d.collectMeta(n, o)
}

// ownPart is the part of a residual that nothing but the node explains, and how sure that is.
func (d *comparison) ownPart(n *node, c Class) (r float64, kind int) {
	s := &n.now
	r = s.residual[c] - d.common[c]
	level, sure, alone := d.jobLevel(n, c)
	n.unlike[c] = alone && !sure && !n.Bare[c]
	if s.quiet[c] && d.witnessed[c] && !s.guess[c] { // every node has it, whatever its jobs do
		r = d.forgiven(r, d.common[c])
		if d.backend > slowPool { // or a job's steady requests look like it, which lie on the slowest pool
			r = spared(r, level)
		}
		if d.full(n) {
			r = min(r, 0)
		}
		return r, background
	}
	if sure {
		n.sure[c] = d.now
	}
	if alone || s.quiet[c] && len(d.jobs[n]) > 0 { // its job may lie on the slowest pool
		level = max(level, d.backend-max(0, d.common[c]))
	}
	r = spared(r, level)
	if d.full(n) || s.util >= atPeak && n.Waited == d.now {
		r = min(r, 0)
	}
	if s.regime[c] == small {
		r = d.forgiven(r, d.common[c])
	}
	switch {
	case s.quiet[c] && !s.guess[c]:
		return r, background
	case sure:
		return r, compared
	case r > plainSlow && len(d.jobs[n]) > 0:
		return r, past
	case s.regime[c] == small && len(d.jobs[n]) == 0 && !s.guess[c]:
		return r, background
	}
	return r, streamed
}

// full says that a node moves what a forwarder is known to be able to, not what was learnt from what was asked for.
// Then requests take long also where none waits in the server: the queue is in the network.
func (d *comparison) full(n *node) bool { return d.peak.fixed > 0 && n.now.util >= atPeak }

// forgiven is the residual of a background, or of a canary, without what slow storage pools may add to it beyond
// the common factor: both are spread over all pools, what jobs stream is not.
func (ref *reference) forgiven(r, common float64) float64 {
	return spared(r, ref.pools-max(0, common))
}

// spared is a residual without what something else explains of it.
func spared(r, explained float64) float64 {
	if r <= 0 {
		return r
	}
	return max(0, r-max(0, explained))
}

// judge closes the node's blocks when their time has come and gives the verdict. Nodes close in turn,
// so that no second has all the work.
func (d *Detector) judge(n *node) {
	phase := d.now + int64(n.Index)
	if phase%blockSeconds == 0 {
		d.closeShort(n)
	}
	if phase%longSeconds == 0 {
		d.closeLong(n)
		d.closeStorm(n)
	}
	d.decide(n)
}

func (d *comparison) closeShort(n *node) {
	defer d.closeCap(n)
	worst, classes, streams := math.Inf(1), 0, 0
	least := -shortLoses
	if n.Alarm { // it is to be seen that it is well again
		least = -alarmLoses
	}
	fee := 0.0
	for c := range 2 {
		kind := best(&n.short[c])
		e, doubt := &n.short[c][kind], doubts(kind).short
		if kind == streamed {
			streams++
		}
		if e.Weight == 0 {
			continue
		}
		classes++
		worst = min(worst, compare.Against(e.mean(), e.variance()+doubt*doubt, suddenSlow))
		fee = max(fee, floorFee(e.variance(), doubt*doubt, suddenSlow, least))
	}
	// Two jobs may each make one class dear. That the node is slow needs its background for a witness,
	// if only now and then.
	if streams == int(Meta) && n.Tests[sudden].Log > streamCeiling*d.limit {
		worst = min(worst, 0)
	}
	if classes == int(Meta) {
		bet, most := clip(worst, least, shortWins)-fee, d.limit+overThreshold
		n.Tests[sudden].Bet(d.now, bet, most)
		if streams == int(Meta) { // one unlucky canary must not be enough beside jobs' habits
			most = jointCeiling * d.limit
		}
		n.Tests[joint].Bet(d.now, bet, most)
	}
	if classes == 1 {
		d.closeLone(n, clip(worst, least, shortWins)-fee)
	}
	n.short = [2][kinds]estimate{}
}

// closeLone bets on a node that serves one class only, for the other cannot speak for it: beyond suspicion where the
// other forwarders of its jobs do the same and are faster.
func (d *comparison) closeLone(n *node, bet float64) {
	c := Read
	if best(&n.short[Read]) == streamed && n.short[Read][streamed].Weight == 0 {
		c = Write
	}
	if other := n.shown[1-c]; float64(d.now-max(other[small].at, other[large].at)) < carryFor &&
		float64(d.now-d.began) > carryFor {
		return
	}
	most := loneCeiling * d.limit
	if d.now-n.sure[c] < blockSeconds {
		most = d.limit + overThreshold
	}
	n.Tests[readSlow+int(c)].Bet(d.now, bet, most)
}

// calm says that neither the layer nor the storage pools are slow.
func (ref *reference) calm(c Class) bool { return ref.common[c] < calmCommon && ref.pools < calmPools }

// longBlock is what a long block says of a node.
type longBlock struct {
	fresh    bool // something was seen in it
	mean     [2]float64
	streamed [2]bool // only what jobs stream speaks
	worst    float64 // log, the smaller of the classes' bets; infinite without both
	most     float64 // log, that it can win
}

func (d *comparison) closeLong(n *node) {
	b := d.takeLong(n)
	if !b.fresh || math.IsInf(b.worst, 0) {
		return
	}
	if b.streamed[Read] && b.streamed[Write] && n.Tests[mild].Log > streamCeiling*d.limit { // as in closeShort
		b.most = 0
	}
	bet := clip(b.worst, -longMost, b.most)
	for c := range n.spent {
		n.spent[c] += max(0, bet)
	}
	n.Tests[mild].Bet(d.now, bet, d.limit+overThreshold)
	if float64(d.now-n.compared) > canarySilent { // where requests wait, canaries cannot clear whom they accused
		n.Tests[canary].Bet(d.now, min(bet, 0), d.limit+overThreshold)
	}
	for c := range Meta {
		other := 1 - c
		switch {
		// a job's habit or the node's: enough for a canary, not for an accusation
		case b.streamed[c] || n.kind[c] == past || n.unlike[c]:
			d.oneClass(n, c, b.mean, loneCeiling*d.limit)
		case n.age[c] == d.now && (b.streamed[other] || float64(d.now-n.age[other]) <= carryFor):
			d.oneClass(n, c, b.mean, d.limit+overThreshold)
		}
	}
}

// takeLong empties the node's long block.
func (d *comparison) takeLong(n *node) longBlock {
	b := longBlock{worst: math.Inf(1), most: longMost}
	for c := range Meta { // reads and writes
		e, doubt := d.takeClass(n, c, &b)
		if e.Weight == 0 {
			b.worst = math.Inf(-1)
			continue
		}
		// The offset is itself known only so well.
		b.mean[c] = e.mean()
		variance := e.variance() + doubt*doubt + 0.04/max(n.Habit.Offset[c][small].N, 60)
		bet := compare.Against(b.mean[c], variance, mildSlow)
		if bet > 0 && !b.streamed[c] && n.age[c] != d.now { // what it showed once wins once, however long it speaks
			bet = max(0, bet-n.spent[c])
		}
		b.worst = min(b.worst, bet)
		if n.Alarm { // what is hardly slower than its peers is not what was accused
			b.worst = min(b.worst, compare.Against(b.mean[c], variance, wellSlow))
		}
	}
	return b
}

// takeClass is what speaks for a class in a long block, and how far it may be wrong: its background or what was
// compared, of this block or of an earlier one, or else what jobs stream; without weight: nothing.
func (d *comparison) takeClass(n *node, c Class, b *longBlock) (e estimate, doubt float64) {
	kind := best(&n.long[c])
	e = n.long[c][kind]
	stream := n.long[c][streamed]
	n.long[c] = [kinds]estimate{}
	if kind != streamed {
		n.carried[c], n.age[c], n.spent[c], n.kind[c] = e, d.now, 0, kind
		b.fresh = true
	}
	switch {
	case n.carried[c].Weight > 0 && float64(d.now-n.age[c]) <= carryFor:
		if n.Habit.Offset[c][small].N < youngFor && n.kind[c] == background {
			b.most = 0 // too young to accuse; not to be found well
		}
		return n.carried[c], doubts(n.kind[c]).long
	case stream.Weight > 0:
		b.streamed[c], b.fresh = true, true
	}
	return stream, doubts(streamed).long
}

// oneClass bets on one class being slow while the other is not.
func (d *comparison) oneClass(n *node, c Class, mean [2]float64, most float64) {
	variance, margin := oneCarriedDoubt*oneCarriedDoubt, 0.0
	if n.kind[c] != background && d.now == n.age[c] {
		margin = comparedMargin
	}
	if e := n.carried[c]; d.now == n.age[c] {
		variance = e.variance() + oneDoubt*oneDoubt
	}
	bet := compare.Against(mean[c]-margin-max(0, mean[1-c]), variance, oneSlow)
	n.Tests[readSlow+int(c)].Bet(d.now, clip(bet, -2*oneMost, oneMost), most)
}

// decide turns the tests into a level.
func (d *Detector) decide(n *node) {
	was := n.Alarm
	v, top := n.Verdict(&d.bar, n.ID)
	if n.Alarm && !was {
		n.Cause = top
	}
	if v.Level == anomaly.Clean && n.Seen != d.now {
		n.level = anomaly.Unseen
		return
	}
	if n.Alarm {
		top = n.Cause
	}
	v.Ratio = n.shownRatio(top)
	n.level = v.Level
	if v.Level >= anomaly.Doubt {
		d.explain(n, top, &v)
	}
	d.verdicts = append(d.verdicts, v)
}

// shownRatio is by how much longer the node's requests took in the newest second, by what speaks most against it; 0
// where the load does not show it: a canary, a capped link and quick answers are no ratio.
func (n *node) shownRatio(top int) float64 {
	if top == canary || top == capped || top == metaSlow || !n.now.seen[Read] && !n.now.seen[Write] {
		return 0
	}
	shown := math.Inf(-1)
	for c := range Meta {
		if n.now.seen[c] && n.now.known[c] && (top != readSlow && top != writeSlow || top == readSlow+int(c)) {
			shown = max(shown, n.ratio[c])
		}
	}
	return math.Exp(shown)
}
