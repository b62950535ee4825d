package failslow

import (
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// A canary asks for the same thing of every node, so that no job's habits are in what it takes: where
// load leaves a doubt, a few canaries settle it.
// loadedFor is how long a second of load counts for the load of a canary: bursts are short, and a canary may meet the
// end of one, s.
const loadedFor = 3

// levels of load of a node, by the shares of the peak, in bytes or operations, from which the next one begins.
const levels = 4

func loadLevels() [levels - 1]float64 { return [...]float64{idleLoad, canaryLoad, canaryBusy} }

// canaryLayer is what canaries usually take, learnt from nodes without suspicion, by level of load. Without
// Settings.ProbeBusy there is one level.
type canaryLayer struct {
	Level [levels]canaryLevel

	suspects int // nodes under suspicion in the newest second
	newest   beside
}

// canaryLevel is in log seconds.
type canaryLevel struct {
	Usual [classes]compare.Mean
	Noise [classes]compare.Mean // absolute
	Wide  [classes]compare.Mean // the same, with the tail
}

// followed is the share of the common factor that canaries follow: the back end is another part of theirs than of the
// background's requests.
const followed = 0.5

// level is the place in canaryLayer of a canary that is sent through a node now.
func (d *Detector) level(n *node) *canaryLevel {
	load, k := n.loadLately(d.now), 0
	if !d.set.ProbeBusy && load < canaryBusy {
		return &d.canaries.Level[0]
	}
	for from := loadLevels(); k < len(from) && load >= from[k]; {
		k++
	}
	return &d.canaries.Level[k]
}

// recent is a node's load of one of its newest seconds.
type recent struct {
	at       int64
	load     float64
	streamed float64 // of the peak, in requests that are not small
	wait     [classes]float64
	queued   float64 // see queued
}

// noteLoad keeps how much of what any node was seen to do the node does now.
func (d *comparison) noteLoad(n *node, o *Observation) {
	r := recent{at: d.now, load: n.Load, queued: queued(o)}
	for c := range o.Class {
		r.wait[c] = o.Class[c].Wait
	}
	if io := &o.Class; io[Read].Bytes+io[Write].Bytes > smallRequest*(io[Read].Ops+io[Write].Ops) {
		r.streamed = n.now.util
	}
	n.loads[d.now%loadedFor] = r
}

// filled says that a node streamed what it can lately. A peak that small requests alone have shown does not count.
func (n *node) filled(now int64) bool {
	return slices.ContainsFunc(n.loads[:], func(r recent) bool {
		return now-r.at < loadedFor && r.streamed >= atPeak
	})
}

func (n *node) loadLately(now int64) (most float64) {
	for _, r := range n.loads {
		if now-r.at < loadedFor {
			most = max(most, r.load)
		}
	}
	return most
}

func (l *canaryLevel) teach(c Class, x, common float64) {
	u, step := &l.Usual[c], x-l.usual(c, common)
	if u.N >= readyAfter {
		l.Wide[c].Teach(min(math.Abs(step), mostNoise), 500, 500)
		step = clip(step, -0.3, 0.3)
		l.Noise[c].Teach(math.Abs(step), 500, 500)
	}
	// What the metadata server takes changes with its load, and quickly.
	memory := [classes]float64{200, 200, 30}[c]
	u.Teach(u.Mean+step, memory, memory)
}

// usual is what a canary takes while the layer has that common factor.
func (l *canaryLevel) usual(c Class, common float64) float64 {
	if c >= Meta {
		return l.Usual[c].Mean
	}
	return l.Usual[c].Mean + followed*common
}

func (l *canaryLevel) sigma(c Class) float64 {
	n := &l.Noise[c]
	if l.tailed(c) {
		return max(leastSigma, absoluteToSigma*l.Wide[c].Mean)
	}
	return max(leastSigma, absoluteToSigma*(n.Mean*n.N+0.12*20)/(n.N+20))
}

// tailed says that some canaries take many times as long as usual without any fault.
func (l *canaryLevel) tailed(c Class) bool {
	return l.Wide[c].Mean > wideTail*max(l.Noise[c].Mean, leastSigma/absoluteToSigma)
}

// most bounds what one canary can win, else plain: of four canaries one may take long by chance.
func (l *canaryLevel) most(plain float64, of ...Class) float64 {
	if slices.ContainsFunc(of, l.tailed) {
		return tailedWins
	}
	return plain
}

// Probe takes what a canary saw. What it waited for a thread is taken off; where that is not known, it says nothing.
func (d *Detector) Probe(now time.Time, p Probe) {
	n := d.nodes.Known(p.Node)
	if n == nil || d.full(n) {
		return
	}
	w, ok := n.waits(now.Unix())
	if !ok || d.unlevelled(n, now.Unix()) {
		return
	}
	n.Probed = now.Unix()
	// when so many are slow at once, and nobody to compare with, it is not they
	crowd := float64(d.canaries.suspects) > max(crowdLeast, crowdShare*float64(d.nodes.Count()))
	at := d.level(n)
	for c, took := range p.Took {
		if p.Took[c] = took - w.took[c]; !known(took) {
			p.Took[c] = math.NaN()
		}
	}
	over, all := d.over(n, at, p, &w)
	others, some := d.canaries.newest.of(n, now.Unix(), &d.reference)
	if all && w.sure(p, Read, Write, Meta) && !n.Alarm {
		d.canaries.newest.note(n, now.Unix(), &d.reference, over)
	}
	layer := max(math.Abs(d.common[Read]), math.Abs(d.common[Write])) > calmCommon
	if layer && !(all && some) {
		return // the whole layer is slow, and there is nothing to compare with
	}
	// canaries are spread over all pools, what shows how slow the back end is may not be
	blind := d.pools > calmPools
	// of two at more than half of the peak the one whose link is full takes longer, and nothing waits in the server
	filled := n.filled(now.Unix())
	stat := d.statLevel(at)
	var r [classes]float64
	for c := range classes {
		if math.IsNaN(p.Took[c]) {
			continue
		}
		u, off := &at.Usual[c], at.share(c, w.off[c])
		switch {
		case u.N < judgeAfter:
			if c == int(Meta) && stat != nil {
				r[c] = longer(p.Took[c], stat.Usual[c].Mean, stat.share(c, w.off[c]))
				r[c] = spared(r[c], metaBorrowed)
			}
		case (layer || blind) && some:
			// of what a canary takes through a full node the back end is a smaller part than through an idle one
			r[c] = over[c] - max(others[c], followed*d.pools)
		default:
			r[c] = longer(p.Took[c], at.usual(Class(c), d.commonOf(c)), off)
			if blind && c != int(Meta) {
				r[c] = d.forgiven(r[c], d.commonOf(c))
			}
			if some {
				r[c] = spared(r[c], others[c])
			}
		}
		if filled && c != int(Meta) {
			r[c] = min(r[c], 0)
		}
		// a crowd teaches only what nobody has shown yet: else a healed one could not be cleared
		if w.sure(p, Class(c)) && !layer && !blind && !filled &&
			(crowd && u.N < judgeAfter || !n.doubted() && n.Wealth() <= noExample) {
			at.teach(Class(c), math.Log(p.Took[c]), d.commonOf(c))
		}
	}
	both := 0.0
	if all {
		if w.sure(p, Read, Write) {
			n.compared = now.Unix()
		}
		both = d.betCanary(n, at, r, &w, crowd && !some)
	}
	if stat == nil || math.IsNaN(p.Took[Meta]) {
		return
	}
	if filled && r[Meta] > 0 { // the answer waits in the network; what the server needs for those of jobs does not
		if float64(d.now-n.stormed) > shownFor {
			return
		}
		r[Meta] = min(r[Meta], n.stormOver)
	}
	d.betStat(n, stat, r[Meta]-max(0, both), w.off[Meta], crowd && !some)
}

// statLevel is where it is known what a stat takes at that load, or else at the next lower one; nil: nowhere.
func (d *Detector) statLevel(at *canaryLevel) (known *canaryLevel) {
	for i := range d.canaries.Level {
		l := &d.canaries.Level[i]
		if l.Usual[Meta].N >= judgeAfter {
			known = l
		}
		if l == at {
			break
		}
	}
	return known
}

// unlevelled says that requests wait at a node and no canaries through others with as much load show what is usual.
func (d *Detector) unlevelled(n *node, now int64) bool {
	return !d.set.ProbeBusy && float64(now-n.Waited) < calmFor
}

// commonOf is the common factor that canaries of a class meet.
func (r *reference) commonOf(c int) float64 {
	if c >= int(Meta) || !r.witnessed[c] { // what jobs share is not what canaries meet
		return 0
	}
	return r.lately[c]
}

// betCanary bets on reads and writes, and returns by how much both took longer.
func (d *Detector) betCanary(n *node, l *canaryLevel, r [classes]float64, w *waiting, crowd bool) (both float64) {
	sr, sw := l.scatter(Read, w.off[Read]), l.scatter(Write, w.off[Write])
	for c := range 2 {
		n.through[c] += (max(r[c], -1) - n.through[c]) / 3
	}
	both = (r[Read] + r[Write]) / 2
	variance := (sr*sr+sw*sw)/4 + canaryDoubt*canaryDoubt
	if min(r[Read], r[Write]) < oneOfBoth*both {
		both = min(r[Read], r[Write]) // one class only: that is another question
	}
	most := d.limit + overThreshold
	win := func(plain float64, of ...Class) float64 {
		if crowd {
			return 0
		}
		return l.most(plain, of...)
	}
	bet := clip(against(both, variance, canarySlow), -canaryLoses, win(canaryWins, Read, Write))
	// What canaries show is another observation than what load does: a bet on either multiplies the same wealth.
	for _, t := range []int{canary, joint, mild} {
		n.Tests[t].Bet(d.now, bet, most)
	}
	if n.Alarm { // where no load shows that it is well again, canaries do
		n.Tests[sudden].Bet(d.now, min(bet, 0), most)
	}
	variance = sr*sr + sw*sw + canaryDoubt*canaryDoubt
	for c := range 2 {
		bet := against(r[c]-max(0, r[1-c]), variance, canaryOne)
		n.Tests[readSlow+c].Bet(d.now, clip(bet, -canaryOneLoses, win(canaryOneWins, Read, Write)), most)
	}
	return both
}

// betStat bets on metadata being slow while the rest is not.
func (d *Detector) betStat(n *node, l *canaryLevel, r, off float64, crowd bool) {
	wins := l.most(canaryMetaWins, Meta)
	if crowd {
		wins = 0
	}
	sm := l.scatter(Meta, off)
	n.Tests[metaSlow].Bet(d.now, clip(against(r, sm*sm+canaryMetaDoubt*canaryMetaDoubt, canaryMeta), -canaryOneLoses,
		wins), d.limit+overThreshold)
}

// doubted says that what a node shows is not an example for others.
func (n *node) doubted() bool { return n.Alarm || n.level == anomaly.Doubt }

// suspect says that a node is to be looked at more often.
func (d *Detector) suspect(n *node) bool {
	return n.doubted() || n.Wealth() > suspicion
}

// Due lists the nodes that want a canary now: those under suspicion every suspectProbeEvery, as those through which it
// is to be learnt what a canary takes, and those without load (Settings.ProbeBusy: all others) every idleProbeEvery. A
// node is listed again until Asked reports that one was sent.
func (d *Detector) Due(now time.Time) (suspects, idle []topology.NodeID) {
	t := now.Unix()
	d.canaries.suspects = 0
	for _, n := range d.nodes.All() {
		doubt := d.suspect(n)
		if doubt {
			d.canaries.suspects++
		}
		if t-n.Seen > blockSeconds || d.unlevelled(n, t) {
			continue
		}
		switch {
		case (doubt || d.teaches(n)) && t-n.Asked >= suspectProbeEvery:
			suspects = append(suspects, n.ID)
		case !doubt && (d.set.ProbeBusy || n.Load < idleLoad) && t-n.Asked >= idleProbeEvery:
			idle = append(idle, n.ID)
		}
	}
	return suspects, idle
}

// teaches says that a canary through the node would show what canaries usually take, which too few have shown yet: few
// forwarders that are each asked once a minute would need hours, and nobody could be judged until then. Where canaries
// are not answered none is sent sooner.
func (d *Detector) teaches(n *node) bool {
	answered := n.Probed != 0 && n.Asked-n.Probed < suspectProbeEvery
	return answered && (d.set.ProbeBusy || n.Load < idleLoad) && d.level(n).Usual[Write].N < judgeAfter &&
		d.calm(Read) && d.calm(Write)
}

// Asked records that a canary was sent to a node, whatever its outcome. Probe takes the outcome.
func (d *Detector) Asked(now time.Time, id topology.NodeID) {
	if n := d.nodes.Known(id); n != nil {
		n.Asked = now.Unix()
	}
}
