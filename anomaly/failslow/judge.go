package failslow

import (
	"math"

	"fairway/anomaly"
)

const (
	blockSeconds = 5
	longSeconds  = 10
	metaSeconds  = 30
	// carryFor is how long a class that was not seen speaks through what it last showed.
	carryFor = 300
	// ratioSeconds is the memory of what a sentence says: shorter than what the worst faults take to be found.
	ratioSeconds = 6
)

// What a long block can win at most, log capital.
const (
	longMost = 2
	oneMost  = 1
)

// What estimates may be wrong by beyond their noise, log time: bets are made against that much doubt.
const (
	smallDoubt = 0.12
	largeDoubt = 0.3
	longDoubt  = 0.052
	// streamDoubt is that of a class whose background is hidden by streaming jobs for a long time.
	streamDoubt = 0.26
	oneDoubt    = 0.087
	// wellDelta is the slowness against which an accused node's health is weighed, log time: below half of
	// it the accusation loses.
	wellDelta = 0.3
)

// collect adds the node's newest second to its blocks.
func (d *Detector) collect(n *node, o *Observation) {
	s := &n.now
	for c := range 2 {
		if !s.seen[c] || !s.known[c] {
			continue
		}
		if Class(c) == Read && n.Back != 0 && d.now-n.Back < coldFor {
			continue
		}
		r := s.residual[c] - d.common[c]
		switch {
		case s.regime[c] == large: // it may all be behind the slowest pool
			r = spared(r, d.backend-max(0, d.common[c]))
		case !d.witnessed[c]:
			r = d.forgiven(r, d.common[c])
		}
		sigma := d.model.sigma(Class(c), s.ops[c])
		n.ratio[c] += (r - n.ratio[c]) / ratioSeconds
		n.short[c][s.regime[c]].add(r, sigma, [regimes]float64{0.6, 1.2}[s.regime[c]])
		n.long[c][s.regime[c]].add(r, sigma, [regimes]float64{0, 0.6}[s.regime[c]])
	}
	d.collectAmong(n)
	d.collectCap(n, o)
	d.collectMeta(n, o)
}

// forgiven is the residual of a background, or of a canary, without what slow storage pools may add to it beyond
// the common factor, where no other background tells: both are spread over all pools, what jobs stream is not.
func (d *Detector) forgiven(r, common float64) float64 {
	return spared(r, d.pools-max(0, common))
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
	phase := d.now + int64(n.index)
	if phase%blockSeconds == 0 {
		d.closeShort(n)
	}
	if phase%longSeconds == 0 {
		d.closeLong(n)
	}
	if phase%metaSeconds == 0 {
		d.closeMeta(n)
	}
	d.decide(n)
}

func (d *Detector) closeShort(n *node) {
	worst, classes, streams := math.Inf(1), 0, 0
	least := -0.12
	if n.Alarm { // it is to be seen that it is well again
		least = -0.5
	}
	fee := 0.0
	for c := range 2 {
		e, doubt := &n.short[c][small], smallDoubt
		if e.Weight == 0 {
			e, doubt = &n.short[c][large], largeDoubt
			streams++
		}
		if e.Weight == 0 {
			continue
		}
		classes++
		worst = min(worst, Against(e.mean(), e.variance()+doubt*doubt, 0.4))
		fee = max(fee, floorFee(e.variance(), doubt*doubt, 0.4, least))
	}
	// Two jobs may each make one class dear. That the node is slow needs its background for a witness,
	// if only now and then.
	if streams == 2 && n.Tests[sudden].Log > 0.7*d.limit {
		worst = min(worst, 0)
	}
	if classes == 2 {
		bet, most := clip(worst, least, 4)-fee, d.limit+3
		n.Tests[sudden].Bet(d.now, bet, most)
		if streams == 2 { // one unlucky canary must not be enough beside jobs' habits
			most = 0.4 * d.limit
		}
		n.Tests[joint].Bet(d.now, bet, most)
	}
	n.short = [2][regimes]estimate{}
	d.closeCap(n)
}

// longBlock is what a long block says of a node.
type longBlock struct {
	fresh    bool // something was seen in it
	mean     [2]float64
	streamed [2]bool  // only what jobs stream speaks
	among    estimate // streamed reads against those of the jobs' other forwarders
	worst    float64  // log, the smaller of the classes' bets; infinite without both
	most     float64  // log, that it can win
}

func (d *Detector) closeLong(n *node) {
	b := d.takeLong(n)
	if !b.fresh || math.IsInf(b.worst, 0) {
		return
	}
	if b.streamed[Read] && b.streamed[Write] && n.Tests[mild].Log > 0.7*d.limit { // as in closeShort
		b.most = 0
	}
	bet := clip(b.worst, -longMost, b.most)
	for c := range n.spent {
		n.spent[c] += max(0, bet)
	}
	n.Tests[mild].Bet(d.now, bet, d.limit+3)
	switch {
	case n.age[Read] == d.now && (b.streamed[Write] || d.now-n.age[Write] <= carryFor):
		d.oneClass(n, Read, b.mean, d.limit+3)
	case b.streamed[Read] && b.among.Weight > 0: // its jobs' other forwarders read as much at a time, and faster
		b.mean[Read] = b.among.mean()
		d.oneClass(n, Read, b.mean, d.limit+3)
	case b.streamed[Read]: // a job's habit or the node's: enough for a canary, not for an accusation
		d.oneClass(n, Read, b.mean, 0.4*d.limit)
	}
}

// takeLong empties the node's long block.
func (d *Detector) takeLong(n *node) longBlock {
	b := longBlock{among: n.among, worst: math.Inf(1), most: longMost}
	n.among = estimate{}
	for c := range Meta { // reads and writes
		e, doubt := d.takeClass(n, c, &b)
		if e.Weight == 0 {
			b.worst = math.Inf(-1)
			continue
		}
		// The offset is itself known only so well.
		b.mean[c] = e.mean()
		variance := e.variance() + doubt*doubt + 0.04/max(n.Offset[c][small].Count, 60)
		bet := Against(b.mean[c], variance, 0.1)
		if bet > 0 && !b.streamed[c] && n.age[c] != d.now { // what it showed once wins once, however long it speaks
			bet = max(0, bet-n.spent[c])
		}
		b.worst = min(b.worst, bet)
		if n.Alarm { // what is hardly slower than its peers is not what was accused
			b.worst = min(b.worst, Against(b.mean[c], variance, wellDelta))
		}
	}
	return b
}

// takeClass is what speaks for a class in a long block, and how far it may be wrong: its background, of this block or
// of an earlier one, or else what jobs stream; without weight: nothing.
func (d *Detector) takeClass(n *node, c Class, b *longBlock) (e estimate, doubt float64) {
	background, stream := n.long[c][small], n.long[c][large]
	n.long[c] = [regimes]estimate{}
	if background.Weight > 0 {
		n.carried[c], n.age[c], n.spent[c] = background, d.now, 0
		b.fresh = true
	}
	if c == Read && stream.Weight > 0 && b.among.Weight > 0 && b.among.mean() > stream.mean() {
		stream = b.among // also while a slow pool excuses what is streamed: it is the job's other forwarders', too
	}
	switch {
	case n.carried[c].Weight > 0 && d.now-n.age[c] <= carryFor:
		if n.Offset[c][small].Count < d.set.LearnFor.Seconds() {
			b.most = 0 // too young to accuse; not to be found well
		}
		return n.carried[c], longDoubt
	case stream.Weight > 0:
		b.streamed[c], b.fresh = true, true
	}
	return stream, streamDoubt
}

// What a comparison with the other forwarders of a node's jobs takes.
const (
	amongLeast = 2    // that stream requests of that size in the same second
	amongMost  = 8    // with so many it is sure enough
	amongNear  = 0.35 // log of how much the sizes may differ
)

// collectAmong compares reads that a job streams in large pieces with those of the job's other forwarders.
func (d *Detector) collectAmong(n *node) {
	s := &n.now
	if !s.known[Read] || s.regime[Read] != large || s.size[Read] < streamed {
		return
	}
	if usual, ok := d.jobPeers(n, Read); ok {
		n.among.add(s.residual[Read]-max(0, usual, d.common[Read]), d.model.sigma(Read, s.ops[Read]), 0.6)
	}
}

// jobPeers is the largest residual of other forwarders of the node's jobs that stream like it in this second: of two
// that are slow it is the job.
func (d *Detector) jobPeers(n *node, c Class) (worst float64, ok bool) {
	worst = math.Inf(-1)
	found := 0
	for p := range d.peers(n) {
		s := &p.now
		if p.Seen != d.now || !s.known[c] || s.regime[c] != large ||
			math.Abs(math.Log(s.size[c]/n.now.size[c])) > amongNear {
			continue
		}
		worst = max(worst, s.residual[c])
		if found++; found == amongMost {
			break
		}
	}
	return worst, found >= amongLeast
}

// oneClass bets on one class being slow while the other is not.
func (d *Detector) oneClass(n *node, c Class, mean [2]float64, most float64) {
	variance := 0.1 * 0.1
	if e := n.carried[c]; d.now == n.age[c] {
		variance = e.variance() + oneDoubt*oneDoubt
	}
	bet := Against(mean[c]-max(0, mean[1-c]), variance, 0.15)
	n.Tests[readSlow+int(c)].Bet(d.now, clip(bet, -2*oneMost, oneMost), most)
}

// decide turns the tests into a level, with hysteresis.
func (d *Detector) decide(n *node) {
	top, score := 0, 0.0
	for i := range n.Tests {
		if s := n.Tests[i].Log / d.limit; s > score {
			top, score = i, s
		}
	}
	switch {
	case score >= 1 && !n.Alarm:
		n.Alarm, n.Cause, n.Since = true, top, n.Tests[top].Start
	case n.Alarm && score < 0.1:
		n.Alarm = false
	}
	v := anomaly.Verdict{Node: n.ID, Kind: anomaly.FailSlow, Level: anomaly.Clean, Score: score}
	switch {
	case n.Alarm:
		v.Level = anomaly.Alarm
	case score >= 0.3:
		v.Level = anomaly.Doubt
	case n.Seen != d.now:
		n.level = anomaly.Unseen
		return
	}
	n.level = v.Level
	if v.Level >= anomaly.Doubt {
		d.explain(n, top, &v)
	}
	d.verdicts = append(d.verdicts, v)
}
