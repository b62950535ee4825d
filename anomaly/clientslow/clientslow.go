// Package clientslow accuses forwarders by what their clients see: for servers that have no clock of
// their own in their service, such as diod. An operation class of a forwarder is slow when its clients
// wait longer than they used to there and longer than the clients of its peers do now, at
// the same size of request.
package clientslow

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// Model is the version that findings carry.
const Model = "clientslow-4"

// The classes beyond those of operations.
const (
	// own is a stat that the forwarder's collector sends through it every second.
	own = failslow.Meta + 1 + iota
	// lossy is what part of the packets between it and its clients is lost. A link that loses some now and then makes
	// few operations slow, and those by a pause that says little in a mean.
	lossy
	// inside is what an operation holds a thread for by Little's law, of a server whose operations nobody times: those
	// in service, divided by those completed in a second.
	inside
	classes = int(inside) + 1
)

// Detector compares forwarders second by second. It has no clock; its methods must not be called concurrently.
type Detector struct {
	learnt
	bar      compare.Bar
	verdicts []anomaly.Verdict
	views    [classes]view
}

// learnt is what outlives a restart.
type learnt struct {
	Now int64
	// Noise is how far healthy seconds of a class are from what their node is used to, less what slows all: the mean
	// absolute difference, log.
	Noise  [classes]compare.Mean
	Swings [classes]swing // of all nodes
	Nodes  compare.Subjects[node, *node]
}

// node is what is kept of one forwarder, and saved.
type node struct {
	compare.Case
	Class [classes]class

	behind topology.NodeID  // the server that it is a client of; "" is not known
	apart  [classes]float64 // of the newest second, from the peers, log
}

// class is one operation class of a forwarder.
type class struct {
	At        int64                // newest second seen
	full      bool                 // then the node was: that second says nothing against it
	excused   bool                 // the server behind the node explains that second, which says nothing
	Log, Size float64              // of the newest second: log of seconds an operation took, log of its bytes
	Ops       float64              // and how many there were
	Usual     [levels]compare.Mean // log, of its seconds
	Now       int                  // the level of the newest second
	Margin    float64              // by which it must be slower before a bet pays, log: healthy seconds must lose money
	Shows     shows
	Slower    float64 // by how much it was slower lately than it may be, log
	// its healthy seconds, smoothed: how far from what it is used to, log, beside what is common to all
	Lately float64
	Swing  swing // of those
}

// shows is what a sentence says of a class.
type shows struct {
	Ratio, Took float64 // smoothed: log ratio to the peers, log latency
	// Ended and Waited are the operations of its last busy seconds and what they took together, s: the newest second
	// may be the tail of a burst, whose operations find nobody before them.
	Ended, Waited float64
}

// levels are steps of the other classes' operations: what a class takes beside a storm of another it does not
// take alone. The first has less than firstLevel of them a second, each further one up to levelTimes as many.
const levels = 5

func levelOf(others float64) (k int) {
	for k < levels-1 && others >= firstLevel {
		others /= levelTimes
		k++
	}
	return k
}

// usual is what the class is used to beside as much else as now; ok is false for a node without a past, known
// for one that has not met this level before: then it is what it is used to at all.
func (s *class) usual() (own float64, known, ok bool) {
	if h := &s.Usual[s.Now]; h.N >= ownSeconds {
		return h.Mean, true, true
	}
	sum, n := 0.0, 0.0
	for i := range s.Usual {
		sum += s.Usual[i].Mean * s.Usual[i].N
		n += s.Usual[i].N
	}
	return sum / max(n, 1), false, n >= ownSeconds
}

// New makes a detector whose healthy nodes are accused once in every on
// average; see failslow.Settings.FalseAlarmEvery.
func New(every time.Duration) *Detector {
	d := &Detector{bar: compare.Bar{Kind: anomaly.FailSlow, Model: Model,
		Alarm: compare.Threshold(every, time.Second, 1), Doubt: doubtAt}}
	for c := range d.views {
		d.views[c].alike, d.views[c].windows = map[topology.NodeID][]float64{}, map[int]window{}
	}
	return d
}

// Second takes one second of the forwarders that are judged by their clients: Exec holds what the
// clients saw. It returns a verdict for each node seen at work and for each under suspicion. The slice is used
// again by the next call.
func (d *Detector) Second(now time.Time, obs []failslow.Observation) []anomaly.Verdict {
	d.Now = now.Unix()
	d.verdicts = d.verdicts[:0]
	for i := range obs {
		d.read(&obs[i])
	}
	for c := range d.views {
		d.views[c].gather(d, c)
	}
	for id, n := range d.Nodes.All() {
		var seen [classes]bool
		for c := range n.Class {
			seen[c] = n.Class[c].At == d.Now && d.bet(n, c)
		}
		d.decide(n, id, seen)
	}
	return d.verdicts
}

// Forget ends what is held against a node that was seen to be well otherwise; what it is used to stays.
func (d *Detector) Forget(id topology.NodeID) { d.Nodes.Forget(id) }

func (n *node) Forget() {
	n.Case.Forget()
	for c := range n.Class {
		n.Class[c].Slower = 0
	}
}

// MarshalBinary saves what was learnt and the evidence so far.
func (d *Detector) MarshalBinary() ([]byte, error) { return anomaly.Save(&d.learnt) }

// UnmarshalBinary takes up a saved state; the settings stay those of New. On an error the detector is as it was.
func (d *Detector) UnmarshalBinary(b []byte) error { return anomaly.Load(b, &d.learnt) }

func (d *Detector) read(o *failslow.Observation) {
	n := d.Nodes.Get(o.Node)
	n.behind = o.Behind
	all := 0.0
	for c := range o.Class {
		all += max(0, o.Class[c].Ops)
	}
	for c := range o.Class {
		k := &o.Class[c]
		if !(k.Ops >= fewOps) || !(k.Exec > 0) || math.IsInf(k.Exec, 1) {
			continue
		}
		s := &n.Class[c]
		s.At, s.Log, s.Size = d.Now, math.Log(max(k.Exec, least)), math.Log(max(1, k.Bytes/k.Ops))
		s.Ops, s.Now, s.full, s.excused = k.Ops, levelOf(all-k.Ops), o.Full, o.Excused[c]
	}
	if t := o.Class[failslow.Meta].Wait; t > 0 && !math.IsInf(t, 1) && o.QueueLen+o.Serving < calmQueue {
		s := &n.Class[own]
		s.At, s.Log, s.Ops = d.Now, math.Log(max(t, least)), manyOps
		s.full, s.excused = o.Full, o.Excused[failslow.Meta]
	}
	d.readInside(n, o)
	if o.Packets >= fewPackets {
		s := &n.Class[lossy]
		s.At, s.Log, s.Ops = d.Now, math.Log(leastLoss+o.Lost/o.Packets), o.Packets
	}
}

// readInside takes how long an operation held a thread, of a server whose operations neither it nor a client times
// lately. By Little's law that is how many were in service over how many ended in a second. More requests under way,
// which wait, change nothing in it, and fewer, held back by others of their job, hardly anything; a slow server ends
// fewer of as many. So there is one habit of it, whatever is under way.
func (d *Detector) readInside(n *node, o *failslow.Observation) {
	for c := range o.Class {
		if s := &n.Class[c]; s.At != 0 && float64(d.Now-s.At) <= peerAge {
			return
		}
	}
	if !(o.Completed >= fewOps) || !(o.InFlight > 0) {
		return
	}
	s := &n.Class[inside]
	s.At, s.Log = d.Now, math.Log(max(min(o.InFlight, threads)/o.Completed, leastInside))
	s.Size, s.Ops = math.Log(max(1, o.Moved/o.Completed)), o.Completed
	s.full, s.excused = o.Full, o.Excused[failslow.Meta]
}

// bet lets one second of a class speak for or against its node; false when there are no peers to
// compare it with.
func (d *Detector) bet(n *node, c int) bool {
	s := &n.Class[c]
	peers, took, some := d.views[c].peers(s)
	if !some || s.excused {
		return false
	}
	x := s.Log - peers
	n.apart[c] = s.Log - took
	s.Shows.Ratio += (n.apart[c] - s.Shows.Ratio) / 10
	s.Shows.Took += (s.Log - s.Shows.Took) / 10
	usual, known, ok := s.usual()
	common := d.views[c].common(s.Log - usual)
	if alike, some := d.views[c].behind(n.behind, s.Log-usual); some {
		common = max(common, alike)
	}
	switch {
	case !ok:
		x -= margin
	case !known:
		x = min(x, s.Log-usual-max(0, common)) - strange
	default:
		x = min(x, s.Log-usual-max(0, common))
	}
	sigma := max(noise, 1.25*d.Noise[c].Mean)
	variance := sigma * sigma * d.Swings[c].inflation(&s.Swing)
	most := mostBet
	if c != int(own) { // one operation a second says little, however long it takes
		most += (plainBet - mostBet) * max(0, min((x-plainFrom)/(plainly-plainFrom), 1))
	}
	lowest := leastBet
	if n.Alarm { // it is to be seen that it is well again, and soon
		lowest, variance = clearBet, noise*noise
	}
	x -= s.Margin
	by := max(slowBy, min(s.Slower, mostBy)) // of the seconds before this one
	s.Slower += slowerRate * (x - s.Slower)
	bet := max(lowest, min(compare.Against(x, variance, by), most)) * min(1, s.Ops/manyOps)
	if s.full { // it teaches what is usual: of a forwarder that fills its link nothing else is known
		bet = min(bet, 0)
	}
	test := n.Test(c)
	before := test.Log
	if n.Bet(&d.bar, c, d.Now, bet); before < 1 && bet > 0 { // below that it is noise
		test.Start = d.Now
		s.Shows.Ratio, s.Shows.Took = n.apart[c], s.Log
	}
	// What teaches is decided by the seconds before, never by this one.
	h := &s.Usual[s.Now]
	if n.Alarm || before > d.bar.Alarm*(newBelow+(teachBelow-newBelow)*min(1, h.N/memory)) {
		return true
	}
	s.Margin = max(0, min(s.Margin+marginRate*(math.Exp(bet)-1), mostMargin))
	// What slows all is nobody's habit, as far as this node is slowed; of one without a past that is not known.
	alike := max(0, common)
	if ok {
		alike = max(0, min(common, s.Log-usual))
	}
	h.Teach(s.Log-alike, memory, memory)
	if known {
		d.Noise[c].Teach(min(math.Abs(s.Log-usual-alike), 2), noiseSeconds, noiseSeconds)
		d.remember(s, c, s.Log-usual-common, sigma)
	}
	return true
}

func (d *Detector) decide(n *node, id topology.NodeID, seen [classes]bool) {
	v, worst := n.Verdict(&d.bar, id)
	if !slices.Contains(seen[:], true) || !seen[worst] && v.Score >= silentBelow {
		return // silence is neither health nor sickness, and what is slow was silent
	}
	v.Ratio = n.ratio(worst, seen)
	if v.Level > anomaly.Clean {
		d.explain(n, id, worst, &v)
	}
	d.verdicts = append(d.verdicts, v)
}

// ratio is how many times as long as at the peers the newest second's operations took: those of the class that speaks
// most against the node or, while none does, all of them, as a ratio of sums. 0 is not known.
func (n *node) ratio(worst int, seen [classes]bool) float64 {
	if n.Wealth() > 0 {
		if !seen[worst] || worst == int(lossy) {
			return 0
		}
		return math.Exp(n.apart[worst])
	}
	took, peers := 0.0, 0.0
	for c := range failslow.Meta + 1 {
		if s := &n.Class[c]; seen[c] {
			took, peers = took+s.Ops*math.Exp(s.Log), peers+s.Ops*math.Exp(s.Log-n.apart[c])
		}
	}
	if peers == 0 {
		return 0
	}
	return took / peers
}

// Ratio is how many times as long as on the peers operations of each class took lately; 0 where that
// is not known.
func (d *Detector) Ratio(id topology.NodeID) (r [3]float64) {
	n := d.Nodes.Known(id)
	if n == nil {
		return r
	}
	for c := range r {
		if s := &n.Class[c]; s.At != 0 && float64(d.Now-s.At) <= peerAge {
			r[c] = math.Exp(s.Shows.Ratio)
		}
	}
	return r
}

// Slower is by how much longer than it is used to a node's operations of each class took in the newest second, and
// last a stat of its own agent, log; not a number where none was seen or nothing is usual yet.
func (d *Detector) Slower(id topology.NodeID) (x [own + 1]float64) {
	n := d.Nodes.Known(id)
	for c := range x {
		x[c] = math.NaN()
		if n == nil || n.Class[c].At != d.Now {
			continue
		}
		if usual, _, ok := n.Class[c].usual(); ok {
			x[c] = n.Class[c].Log - usual
		}
	}
	return x
}

// lossOf is the share that a logarithm of lossy stands for.
func lossOf(log float64) float64 { return max(0, math.Exp(log)-leastLoss) }

func (d *Detector) explain(n *node, id topology.NodeID, worst int, v *anomaly.Verdict) {
	s := &n.Class[worst].Shows
	if worst == int(lossy) {
		v.Evidence["lost"], v.Evidence["peers_lost"] = lossOf(s.Took), lossOf(s.Took-s.Ratio)
		peers := "hardly any"
		if p := 100 * lossOf(s.Took-s.Ratio); p >= visibleLoss {
			peers = fmt.Sprintf("%.1g%%", p)
		}
		v.Sentence = fmt.Sprintf("%s loses %.2g%% of the packets between it and its clients, its peers %s", id,
			100*lossOf(s.Took), peers)
		return
	}
	v.Evidence["took_seconds"], v.Evidence["peers_seconds"] = math.Exp(s.Took), math.Exp(s.Took-s.Ratio)
	if worst == int(inside) {
		v.Sentence = fmt.Sprintf(
			"%s is %s slow: a request is in service for %s ms (peers %s), by its queue and completions",
			id, anomaly.Times(math.Exp(s.Ratio)), compare.Milliseconds(s.Took), compare.Milliseconds(s.Took-s.Ratio))
		return
	}
	ratios := d.Ratio(id)
	if worst == int(own) {
		v.Class = failslow.Meta.String()
		v.Sentence = fmt.Sprintf(
			"%s is %s slow at metadata: a stat takes %s ms, peers %s, though hardly a request is before it",
			id, anomaly.Times(math.Exp(s.Ratio)), compare.Milliseconds(s.Took), compare.Milliseconds(s.Took-s.Ratio))
		return
	}
	v.Class = failslow.Class(worst).String()
	others := ""
	slow := 0
	for c, r := range ratios {
		if r == 0 {
			continue
		}
		v.Evidence[failslow.Class(c).String()+"_ratio"] = r
		v.Evidence[failslow.Class(c).String()+"_seconds"] = math.Exp(n.Class[c].Shows.Took)
		if r > visiblyBy {
			slow++
		} else if c != worst {
			others += "; " + anomaly.ClassWords(failslow.Class(c).String()) + " is normal"
		}
	}
	if slow > 1 {
		v.Class = ""
	}
	v.Sentence = Sentence(id, failslow.Class(worst), ratios[worst], math.Exp(s.Took), math.Exp(s.Took-s.Ratio)) + others
}

// Sentence says how slow a forwarder is at a class for its clients: how many times as slow, and what an operation takes
// them and its peers', seconds.
func Sentence(id topology.NodeID, c failslow.Class, ratio, took, peers float64) string {
	return fmt.Sprintf("%s is %s slow at %s: %s ms, peers %s", id, anomaly.Times(ratio), anomaly.ClassWords(c.String()),
		anomaly.Digits(1000*took), anomaly.Digits(1000*peers))
}
