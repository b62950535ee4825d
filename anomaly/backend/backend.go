// Package backend accuses the server behind gateways that have no file system themselves: a gateway in front of a sick
// back end is slow without being sick, and moving its compute nodes to another gateway of the same back end helps
// nobody. A back end is judged by two views. Its own clock: operations take longer than they used to at the same size
// and load, and the other back ends' do not. And its gateways: all of them are slower than they used to be, and those
// of other back ends are not; that shows what the server's clock does not, such as a slow link or a stopped process.
package backend

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// Model is the version that findings carry.
const Model = "backend-1"

const (
	classes = 3 // of failslow: read, write, meta
	// least is the service time below which differences are noise of the machine, s.
	least = 1e-3
	// fewOps a second say nothing of a class.
	fewOps = 2
	// ownSeconds is how much of its own past a back end needs at a size and load, memory how fast that is forgotten.
	ownSeconds, memory = 20, 900
	// tolerated is how much slower than usual counts as healthy, log, and slowBy what is bet on beyond it.
	tolerated, slowBy = 0.4, 0.5
	// noise is the standard deviation of a healthy second, log.
	noise = 0.4
	// mostBet and leastBet bound what one second can say.
	mostBet, leastBet = 1.2, -0.5
	// doubtAt is the share of the wealth of an alarm from which a back end is in doubt; release ends it. From
	// teachBelow on its seconds teach no more.
	doubtAt, release, teachBelow = 0.4, 0.1, 0.25
	// frontAge is how old what a gateway showed may be, seconds: gateways are at work at different times.
	frontAge = 5
	// fewGateways are too few to keep a back end apart from its gateways without the back end's own clock.
	fewGateways = 2
	// explains is the share of an operation's time at the clients from which what the back end adds explains it.
	explains = 0.25
	// metaMessages is how many requests to the back end an operation of metadata makes at most.
	metaMessages = 4
	// recent is for how many seconds what a back end added goes on to explain slowness.
	recent = 5
	// stopped is the time to answer its agent from which a process is named as stopped or starved, s; swayed how many
	// times as far from what is usual as it usually is: three standard deviations of normal differences.
	stopped, swayed = 0.02, 3.75
)

// Second is one second of a back end.
type Second struct {
	Node  topology.NodeID
	Class [classes]failslow.ClassSecond // Exec is the mean seconds in service
	// Answer is how long the server took to answer its agent, s; 0 where that is not known.
	Answer float64
}

// Gateway is what a gateway in front of a back end shows in one second.
type Gateway struct {
	Node topology.NodeID
	Back topology.NodeID
	// Slower is by how much longer than they used to operations of each class take its clients, log, and last a
	// request of its own agent; not a number where none was seen.
	Slower [classes + 1]float64
}

// Detector judges back ends second by second. It has no clock; its methods must not be called concurrently.
type Detector struct {
	limit float64 // log wealth of an alarm
	nodes map[topology.NodeID]*node
	order []topology.NodeID
	front map[topology.NodeID]*front
	now   int64
}

// node is what is kept of one back end, and saved.
type node struct {
	Usual [classes]map[cell]habit
	Tests [channels]failslow.SequentialTest
	Calm  habit // its answer time, log
	Sways habit // how far from that it usually is, log
	Alarm bool
	Since int64

	seen                 int64
	took, before, slower [channels]float64 // of the newest seconds, smoothed: log s, log s, log
	added                [classes]added
	stopped              added
	answer               float64
}

// channels are the ways in which a back end shows as slow: each class by its own clock, and by its gateways.
const channels = classes + classes + 1

// cell is a size of requests and a load, in steps of four times.
type cell struct{ Size, Load int8 }

// habit is what is usual, log seconds, over N seconds.
type habit struct{ Own, N float64 }

func (h *habit) teach(x float64) {
	h.N++
	h.Own += (x - h.Own) / min(h.N, memory)
}

// added is what a back end lately added to a request, s, and when.
type added struct {
	seconds, bytes float64 // bytes of a request
	at             int64
}

// front is what a gateway showed last.
type front struct {
	back   topology.NodeID
	slower [classes + 1]float64
	at     [classes + 1]int64
}

// New makes a detector whose healthy back ends are accused once in every on average.
func New(every time.Duration) *Detector {
	return &Detector{limit: failslow.Threshold(every, time.Second, channels), nodes: map[topology.NodeID]*node{},
		front: map[topology.NodeID]*front{}}
}

func newNode() *node {
	n := &node{}
	for c := range n.Usual {
		n.Usual[c] = map[cell]habit{}
	}
	return n
}

// Take takes the back ends' own seconds, each compared with what is usual for it, and with the others.
func (d *Detector) Take(now time.Time, seconds []Second) {
	d.now = now.Unix()
	for c := range classes {
		var all []float64
		changes := make([]float64, len(seconds))
		for i := range seconds {
			changes[i] = d.change(&seconds[i], c)
			if !math.IsNaN(changes[i]) {
				all = append(all, changes[i])
			}
		}
		for i := range seconds {
			if x := changes[i]; !math.IsNaN(x) {
				d.bet(seconds[i].Node, c, x-max(0, medianOfOthers(all, x)))
			}
		}
	}
	for i := range seconds {
		d.answered(&seconds[i])
	}
}

// of returns what is kept of a back end.
func (d *Detector) of(id topology.NodeID) *node {
	n := d.nodes[id]
	if n == nil {
		n = newNode()
		d.nodes[id] = n
		d.order = append(d.order, id)
		slices.Sort(d.order)
	}
	return n
}

// change is by how much longer than usual a class takes, log; not a number where that is not known. What is usual is
// learnt from the seconds before.
func (d *Detector) change(s *Second, c int) float64 {
	n, k := d.of(s.Node), &s.Class[c]
	n.seen = d.now
	if !(k.Ops >= fewOps) || !(k.Exec > 0) || math.IsInf(k.Exec, 1) {
		return math.NaN()
	}
	at := cell{step(k.Bytes / k.Ops), step(k.Ops)}
	x := math.Log(max(k.Exec, least))
	usual, ok := n.usual(c, at)
	n.took[c] += (x - n.took[c]) / 3
	if n.top() < teachBelow*d.limit && !n.Alarm {
		h := n.Usual[c][at]
		h.teach(x)
		n.Usual[c][at] = h
	}
	if !ok {
		return math.NaN()
	}
	n.before[c] = usual
	if more := k.Exec - max(math.Exp(usual), least); more > 0 && x-usual > tolerated {
		n.added[c] = added{more, k.Bytes / k.Ops, d.now}
	}
	return x - usual
}

// usual is what a class takes at a size and load. A load that was never met is taken as a heavier one that was: what
// waits for a slow server asks less of it.
func (n *node) usual(c int, at cell) (float64, bool) {
	const steps = 16
	for ; at.Load < steps; at.Load++ {
		if h := n.Usual[c][at]; h.N >= ownSeconds {
			return h.Own, true
		}
	}
	return 0, false
}

// step numbers a size or load in steps of four times.
func step(v float64) int8 {
	if !(v > 1) {
		return 0
	}
	return int8(math.Log(min(v, 1e18)) / math.Log(4))
}

// answered notes how long the server took to answer its agent beyond what is usual.
func (d *Detector) answered(s *Second) {
	if !(s.Answer > 0) {
		return
	}
	n := d.of(s.Node)
	n.answer = max(s.Answer, 0.8*n.answer)
	usual, x := math.Log(stopped), math.Log(s.Answer)
	if n.Calm.N >= ownSeconds {
		usual = max(usual, n.Calm.Own+max(math.Ln2, swayed*n.Sways.Own))
	}
	if x > usual {
		n.stopped = added{s.Answer, 0, d.now}
	}
	if !n.Alarm { // on a host with much other work each second answer is late, and says nothing of its requests
		x = min(x, usual)
		n.Calm.teach(x)
		n.Sways.teach(math.Abs(x - n.Calm.Own))
	}
}

// Explains reports whether what a back end adds explains an operation of a class at the clients of one of its
// gateways: one of so many bytes that took so many seconds. A back end that is accused, or nearly, explains all.
func (d *Detector) Explains(back topology.NodeID, c failslow.Class, bytes, took float64) bool {
	n := d.nodes[back]
	if n == nil {
		return false
	}
	if n.Alarm || n.top() >= doubtAt*d.limit {
		return true
	}
	more := 0.0
	if a := &n.added[c]; d.now-a.at <= recent && a.at != 0 {
		messages := 1.0
		switch {
		case c == failslow.Meta:
			messages = metaMessages
		case a.bytes > 0:
			messages = max(1, bytes/a.bytes)
		}
		more = a.seconds * messages
	}
	if a := &n.stopped; d.now-a.at <= recent && a.at != 0 {
		more = max(more, a.seconds)
	}
	return more > explains*took
}

// Judge takes what the gateways show in the second that Take has taken, and returns a verdict for each back end that
// was seen.
func (d *Detector) Judge(gateways []Gateway) []anomaly.Verdict {
	for i := range gateways {
		g := &gateways[i]
		f := d.front[g.Node]
		if f == nil || f.back != g.Back {
			f = &front{back: g.Back}
			d.front[g.Node] = f
		}
		for c, x := range g.Slower {
			if !math.IsNaN(x) {
				f.slower[c], f.at[c] = x, d.now
			}
		}
	}
	for c := range classes + 1 {
		d.judgeFront(c)
	}
	var out []anomaly.Verdict
	for _, id := range d.order {
		if n := d.nodes[id]; n.seen == d.now {
			out = append(out, d.decide(id, n))
		}
	}
	return out
}

// judgeFront compares the gateways of each back end with those of the others, in one class.
func (d *Detector) judgeFront(c int) {
	own, others := map[topology.NodeID][]float64{}, map[topology.NodeID][]float64{}
	fresh := map[topology.NodeID]bool{} // with something new in this second
	for _, f := range d.front {
		if f.at[c] == 0 || d.now-f.at[c] > frontAge {
			continue
		}
		fresh[f.back] = fresh[f.back] || f.at[c] == d.now
		own[f.back] = append(own[f.back], f.slower[c])
		for _, id := range d.order {
			if id != f.back {
				others[id] = append(others[id], f.slower[c])
			}
		}
	}
	for id, all := range own {
		n := d.nodes[id]
		if n == nil || n.seen != d.now || !fresh[id] || len(all) < fewGateways || len(others[id]) == 0 {
			continue
		}
		x := lowMedian(all) - max(0, lowMedian(others[id]))
		n.slower[classes+c] += (x - n.slower[classes+c]) / 3
		d.bet(id, classes+c, x)
	}
}

// lowMedian is the median, or of two values the smaller one: what all but half are above.
func lowMedian(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[(len(v)-1)/2]
}

// medianOfOthers is the low median of all values without one x; 0 without others.
func medianOfOthers(all []float64, x float64) float64 {
	others := slices.Clone(all)
	if i := slices.Index(others, x); i >= 0 {
		others = slices.Delete(others, i, i+1)
	}
	if len(others) == 0 {
		return 0
	}
	return lowMedian(others)
}

// bet lets one second of a channel speak for or against its back end.
func (d *Detector) bet(id topology.NodeID, channel int, x float64) {
	n := d.nodes[id]
	if channel < classes {
		n.slower[channel] += (x - n.slower[channel]) / 3
	}
	bet := failslow.Against(x-tolerated, noise*noise, slowBy)
	n.Tests[channel].Bet(d.now, max(leastBet, min(bet, mostBet)), d.limit+3)
}

// top is the most wealth of a back end's tests, log.
func (n *node) top() float64 { return n.Tests[n.worst()].Log }

func (n *node) worst() (w int) {
	for c := range n.Tests {
		if n.Tests[c].Log > n.Tests[w].Log {
			w = c
		}
	}
	return w
}

func (d *Detector) decide(id topology.NodeID, n *node) anomaly.Verdict {
	worst := n.worst()
	score := n.Tests[worst].Log / d.limit
	switch {
	case !n.Alarm && score >= 1:
		n.Alarm, n.Since = true, n.Tests[worst].Start
	case n.Alarm && score < release:
		n.Alarm = false
	}
	v := anomaly.Verdict{Node: id, Kind: anomaly.TargetSlow, Level: anomaly.Clean, Score: score, Model: Model,
		Ratio: math.Exp(n.slower[worst])}
	switch {
	case n.Alarm:
		v.Level = anomaly.Alarm
	case score >= doubtAt:
		v.Level = anomaly.Doubt
	default:
		return v
	}
	since := n.Tests[worst].Start
	if n.Alarm {
		since = n.Since
	}
	v.Since = time.Unix(since, 0).UTC()
	v.Confidence = min(0.99, score/1.2)
	d.explain(id, n, worst, &v)
	return v
}

// explain writes the sentence and the evidence.
func (d *Detector) explain(id topology.NodeID, n *node, worst int, v *anomaly.Verdict) {
	var gateways []string
	for g, f := range d.front {
		if f.back == id {
			gateways = append(gateways, string(g))
		}
	}
	slices.SortFunc(gateways, cmp.Compare[string])
	v.Evidence = map[string]float64{"score": v.Score, "gateways": float64(len(gateways))}
	what := [...]string{"a read", "a write", "a metadata operation", "a request of the agent"}
	if worst < classes {
		v.Class = failslow.Class(worst).String()
		v.Evidence["took_seconds"], v.Evidence["usual_seconds"] = math.Exp(n.took[worst]), math.Exp(n.before[worst])
		v.Sentence = fmt.Sprintf("%s takes %s ms for %s, usually %s%s", id, milliseconds(n.took[worst]),
			what[worst], usually(n.before[worst]), waiting(gateways))
		return
	}
	c := worst - classes
	if c < classes {
		v.Class = failslow.Class(c).String()
	}
	v.Evidence["gateways_ratio"] = math.Exp(n.slower[worst])
	v.Sentence = fmt.Sprintf(
		"%s through every gateway of %s takes %s as long as before, through those of "+
			"other back ends it does not: the server or the way to it is slow", what[c], id,
		anomaly.Times(math.Exp(max(0, n.slower[worst]))))
	if n.answer > stopped {
		v.Evidence["answer_seconds"] = n.answer
		v.Sentence += fmt.Sprintf("; its process takes %s ms to answer its agent: it is stopped or starved",
			anomaly.Digits(1e3*n.answer))
	}
	v.Sentence += waiting(gateways)
}

// waiting says who suffers.
func waiting(gateways []string) string {
	switch n := len(gateways); {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("; %s waits for it and is not to blame", gateways[0])
	case n <= 4:
		return fmt.Sprintf("; %s and %s wait for it and are not to blame", strings.Join(gateways[:n-1], ", "),
			gateways[n-1])
	}
	return fmt.Sprintf("; %d gateways wait for it and are not to blame", len(gateways))
}

// milliseconds is a time, given as log seconds, as sentences write it.
func milliseconds(log float64) string { return anomaly.Digits(1000 * math.Exp(log)) }

// usually is what is usual; times below least are all alike.
func usually(log float64) string {
	if math.Exp(log) <= least*1.05 {
		return "1 ms or less"
	}
	return milliseconds(log) + " ms"
}

// Sick reports whether a back end is accused.
func (d *Detector) Sick(id topology.NodeID) bool {
	n := d.nodes[id]
	return n != nil && n.Alarm
}

// Ratio is how many times as long as usual operations of each class take through the gateways of a back end; 0 where
// that is not known.
func (d *Detector) Ratio(id topology.NodeID) (r [classes]float64) {
	if n := d.nodes[id]; n != nil {
		for c := range r {
			r[c] = math.Exp(max(n.slower[c], n.slower[classes+c]))
		}
	}
	return r
}

// Forget ends what is held against a back end that has shown that it is well.
func (d *Detector) Forget(id topology.NodeID) {
	if n := d.nodes[id]; n != nil {
		n.Tests, n.Alarm = [channels]failslow.SequentialTest{}, false
	}
}
