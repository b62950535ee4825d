// Package backend accuses the server behind gateways that have no file system themselves: a gateway in front of a sick
// back end is slow without being sick, and moving its compute nodes to another gateway of the same back end helps
// nobody. A back end is judged by two views. Its own clock: operations take longer than they used to at the same size
// and load, and the other back ends' do not. And its gateways: all of them are slower than they used to be, and those
// of other back ends are not; that shows what the server's clock does not, such as a slow link or a stopped process.
package backend

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
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
	// doubtAt is the share of the wealth of an alarm from which a back end is in doubt. From teachBelow on its seconds
	// teach no more.
	doubtAt, teachBelow = 0.4, 0.25
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
	compare.Subjects[node, *node]
	bar   compare.Bar
	front map[topology.NodeID]*front
	now   int64
}

// node is what is kept of one back end, and saved.
type node struct {
	compare.Case
	Usual [classes]map[cell]compare.Mean // log seconds
	Calm  compare.Mean                   // its answer time, log
	Sways compare.Mean                   // how far from that it usually is, log

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
	return &Detector{front: map[topology.NodeID]*front{}, bar: compare.Bar{Kind: anomaly.TargetSlow, Model: Model,
		Alarm: compare.Threshold(every, time.Second, channels), Doubt: doubtAt}}
}

// Take takes the back ends' own seconds, each compared with what is usual for it, and with the others.
func (d *Detector) Take(now time.Time, seconds []Second) {
	d.now = now.Unix()
	for c := range classes {
		var all []float64
		changes := map[topology.NodeID]float64{}
		for i := range seconds {
			if x, known := d.change(&seconds[i], c); known {
				changes[seconds[i].Node] = x
				all = append(all, x)
			}
		}
		slices.Sort(all)
		for id, x := range changes {
			others, _, _ := compare.Others(all, x)
			d.bet(d.Get(id), c, x-max(0, others))
		}
	}
	for i := range seconds {
		d.answered(&seconds[i])
	}
}

// change is by how much longer than usual a class takes, log. What is usual is learnt from the seconds before.
func (d *Detector) change(s *Second, c int) (more float64, known bool) {
	n, k := d.Get(s.Node), &s.Class[c]
	n.seen = d.now
	if !(k.Ops >= fewOps) || !(k.Exec > 0) || math.IsInf(k.Exec, 1) {
		return 0, false
	}
	at := cell{step(k.Bytes / k.Ops), step(k.Ops)}
	x := math.Log(max(k.Exec, least))
	usual, known := n.usual(c, at)
	n.took[c] += (x - n.took[c]) / 3
	if n.Wealth() < teachBelow*d.bar.Alarm && !n.Alarm {
		if n.Usual[c] == nil {
			n.Usual[c] = map[cell]compare.Mean{}
		}
		h := n.Usual[c][at]
		h.Teach(x, memory, memory)
		n.Usual[c][at] = h
	}
	if known {
		n.before[c] = usual
		if more := k.Exec - max(math.Exp(usual), least); more > 0 && x-usual > tolerated {
			n.added[c] = added{more, k.Bytes / k.Ops, d.now}
		}
	}
	return x - usual, known
}

// usual is what a class takes at a size and load. A load that was never met is taken as a heavier one that was: what
// waits for a slow server asks less of it.
func (n *node) usual(c int, at cell) (float64, bool) {
	const steps = 16
	for ; at.Load < steps; at.Load++ {
		if h := n.Usual[c][at]; h.N >= ownSeconds {
			return h.Mean, true
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
	n := d.Get(s.Node)
	n.answer = max(s.Answer, 0.8*n.answer)
	usual, x := math.Log(stopped), math.Log(s.Answer)
	if n.Calm.N >= ownSeconds {
		usual = max(usual, n.Calm.Mean+max(math.Ln2, swayed*n.Sways.Mean))
	}
	if x > usual {
		n.stopped = added{s.Answer, 0, d.now}
	}
	if !n.Alarm { // on a host with much other work each second answer is late, and says nothing of its requests
		x = min(x, usual)
		n.Calm.Teach(x, memory, memory)
		n.Sways.Teach(math.Abs(x-n.Calm.Mean), memory, memory)
	}
}

// Explains reports whether what a back end adds explains an operation of a class at the clients of one of its
// gateways: one of so many bytes that took so many seconds. A back end that is accused, or nearly, explains all.
func (d *Detector) Explains(back topology.NodeID, c failslow.Class, bytes, took float64) bool {
	n := d.Known(back)
	if n == nil {
		return false
	}
	if n.Alarm || n.Wealth() >= doubtAt*d.bar.Alarm {
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
	for id, n := range d.All() {
		if n.seen != d.now {
			continue
		}
		v, worst := n.Verdict(&d.bar, id)
		v.Ratio = math.Exp(n.slower[worst])
		if v.Level > anomaly.Clean {
			d.explain(id, n, worst, &v)
		}
		out = append(out, v)
	}
	return out
}

// judgeFront compares the gateways of each back end with those of the others, in one class: by what all but half of
// them are slower.
func (d *Detector) judgeFront(c int) {
	for id, n := range d.All() {
		var own, others []float64
		fresh := false // there is something new in this second
		for _, f := range d.front {
			switch {
			case d.now-f.at[c] > frontAge:
			case f.back == id:
				own, fresh = append(own, f.slower[c]), fresh || f.at[c] == d.now
			default:
				others = append(others, f.slower[c])
			}
		}
		if n.seen == d.now && fresh && len(own) >= fewGateways && len(others) > 0 {
			d.bet(n, classes+c, lowMedian(own)-max(0, lowMedian(others)))
		}
	}
}

func lowMedian(v []float64) float64 {
	slices.Sort(v)
	return v[(len(v)-1)/2]
}

// bet lets one second of a channel speak for or against its back end.
func (d *Detector) bet(n *node, channel int, x float64) {
	n.slower[channel] += (x - n.slower[channel]) / 3
	bet := compare.Against(x-tolerated, noise*noise, slowBy)
	n.Bet(&d.bar, channel, d.now, max(leastBet, min(bet, mostBet)))
}

// explain writes the sentence and the evidence.
func (d *Detector) explain(id topology.NodeID, n *node, worst int, v *anomaly.Verdict) {
	var gateways []string
	for g, f := range d.front {
		if f.back == id {
			gateways = append(gateways, string(g))
		}
	}
	slices.Sort(gateways)
	v.Evidence["gateways"] = float64(len(gateways))
	what := [...]string{"a read", "a write", "a metadata operation", "a request of the agent"}
	if worst < classes {
		v.Class = failslow.Class(worst).String()
		v.Evidence["took_seconds"], v.Evidence["usual_seconds"] = math.Exp(n.took[worst]), math.Exp(n.before[worst])
		v.Sentence = fmt.Sprintf("%s takes %s ms for %s, usually %s%s", id, compare.Milliseconds(n.took[worst]),
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

// usually is what is usual; times below least are all alike.
func usually(log float64) string {
	if math.Exp(log) <= least*1.05 {
		return "1 ms or less"
	}
	return compare.Milliseconds(log) + " ms"
}

// Sick reports whether a back end is accused.
func (d *Detector) Sick(id topology.NodeID) bool {
	n := d.Known(id)
	return n != nil && n.Alarm
}

// Ratio is how many times as long as usual operations of each class take through the gateways of a back end; 0 where
// that is not known.
func (d *Detector) Ratio(id topology.NodeID) (r [classes]float64) {
	if n := d.Known(id); n != nil {
		for c := range r {
			r[c] = math.Exp(max(n.slower[c], n.slower[classes+c]))
		}
	}
	return r
}
