package effect_test

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/effect"
	"fairway/tsdb"
)

// world is an event engine of clients that wait: programs ask, think and ask again, forwarders serve with some threads
// in the order of arrival. Time is in seconds from its start; at moveAt nodes go elsewhere.
type world struct {
	rand       *rand.Rand
	forwarders []*server
	nodes      []*node
	seconds    int
	moveAt     float64
	// sluggish is what lies behind all forwarders, as it wanders.
	sluggish []float64
}

// server is a forwarder: free is when each of its threads is, slow how many times as long a request takes, hung until
// when nothing ends that began after hungFrom.
type server struct {
	free             []float64
	slow             func(t float64) float64
	hungFrom, hungTo float64
}

// node is a compute node of a job.
type node struct {
	job, at, then int // then: where it is after the move
	size          func(t float64) float64
	think         func(t float64) float64 // mean, seconds
	ops, took     []float64
	underWay, age []float64
	bytes         []float64
}

type asking struct {
	at     float64
	n      int
	asked  float64 // when a request began that was sent again
	repeat bool
}

type queue []asking

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, k int) bool { return q[i].at < q[k].at }
func (q queue) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(asking)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

const (
	threads  = 2    // of a program on a node
	mostOnce = 4    // requests that a forwarder serves at once
	serves   = 0.03 // seconds that a request of size 1 takes
)

func constant(v float64) func(float64) float64 { return func(float64) float64 { return v } }

// from is before until t0, after from then on.
func from(t0, before, after float64) func(float64) float64 {
	return func(t float64) float64 {
		if t < t0 {
			return before
		}
		return after
	}
}

// newWorld has forwarders with so many nodes each; job j has a node behind each of some neighbouring forwarders.
func newWorld(seed uint64, forwarders, each, wide, seconds int) *world {
	layout := rand.New(rand.NewPCG(seed%100, 78)) // seeds that differ by hundreds are one site's other days
	w := &world{rand: rand.New(rand.NewPCG(seed, 77)), seconds: seconds, moveAt: math.Inf(1)}
	for range forwarders {
		w.forwarders = append(w.forwarders, &server{free: make([]float64, mostOnce), slow: constant(1)})
	}
	for f := range forwarders {
		for k := range each {
			think := 0.05 * math.Exp(0.5*layout.NormFloat64())
			n := &node{job: k*forwarders + f/wide, at: f, then: f, size: constant(1), think: constant(think)}
			w.nodes = append(w.nodes, n)
		}
	}
	v := 0.0
	for range seconds + 60 {
		v = 0.9*v + 0.04*w.rand.NormFloat64()
		w.sluggish = append(w.sluggish, math.Exp(v))
	}
	return w
}

// run plays it.
func (w *world) run() {
	var q queue
	for i, n := range w.nodes {
		for _, row := range []*[]float64{&n.ops, &n.took, &n.underWay, &n.age, &n.bytes} {
			*row = make([]float64, w.seconds)
		}
		for range threads {
			heap.Push(&q, asking{at: w.rand.Float64() * 0.1, n: i})
		}
	}
	for q.Len() > 0 {
		a := heap.Pop(&q).(asking)
		if a.at >= float64(w.seconds) {
			continue
		}
		n := w.nodes[a.n]
		if !a.repeat {
			a.asked = a.at
		}
		where := n.at
		if a.at >= w.moveAt {
			where = n.then
		}
		s := w.forwarders[where]
		k := 0
		for i, free := range s.free {
			if free < s.free[k] {
				k = i
			}
		}
		begin := max(a.at, s.free[k])
		if begin >= s.hungFrom && begin < s.hungTo {
			begin = s.hungTo
		}
		took := serves * n.size(a.asked) * s.slow(begin) * w.sluggish[int(a.at)] * w.rand.ExpFloat64()
		end := begin + took
		if where == n.at && n.then != n.at && a.at < w.moveAt && end > w.moveAt+1 {
			heap.Push(&q, asking{at: w.moveAt, n: a.n, asked: a.asked, repeat: true})
			continue
		}
		s.free[k] = end
		n.ended(a.asked, end)
		if i := int(end); i < w.seconds {
			n.bytes[i] += 1e6 * n.size(a.asked)
		}
		heap.Push(&q, asking{at: end + n.think(end)*w.rand.ExpFloat64(), n: a.n})
	}
}

// ended counts a request.
func (n *node) ended(asked, end float64) {
	if i := int(end); i < len(n.ops) {
		n.ops[i]++
		n.took[i] += end - asked
	}
	for i := int(asked); i < len(n.ops) && float64(i) < end; i++ {
		n.underWay[i] += min(end, float64(i+1)) - max(asked, float64(i))
		if end > float64(i+1) {
			n.age[i] = max(n.age[i], float64(i+1)-asked)
		}
	}
}

// start is the world's first instant.
var start = time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)

func name(i int) topology.NodeID           { return topology.NodeID(fmt.Sprintf("c%03d", i)) }
func forwarder(i int) topology.ForwarderID { return topology.ForwarderID(fmt.Sprintf("f%02d", i)) }

// Select answers as a store does.
func (w *world) Select(_ context.Context, q tsdb.Query) (out []tsdb.Series, _ error) {
	for _, id := range q.Nodes {
		var i int
		if n, _ := fmt.Sscanf(string(id), "c%d", &i); n != 1 {
			continue
		}
		s := tsdb.Series{Node: id}
		first := start.UnixMilli()
		for k := max(0, int(q.FromMillis-first)/1000); k < w.seconds; k++ {
			at := first + int64(k)*1000
			if at >= q.ToMillis {
				break
			}
			if v, ok := w.nodes[i].value(q.Metric, k); ok && at >= q.FromMillis {
				s.Points = append(s.Points, tsdb.Point{TimeMillis: at, Value: v})
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

func (n *node) value(m collector.Metric, k int) (float64, bool) {
	switch m {
	case collector.WriteOps:
		return n.ops[k], true
	case collector.ClientWrite:
		return n.took[k] / n.ops[k], n.ops[k] > 0
	case collector.WriteBytes:
		return n.bytes[k], true
	case collector.InFlight:
		return n.underWay[k], true
	case collector.RequestAge:
		return n.age[k], true
	}
	return 0, false
}

// ask asks about the job of the first node of the first forwarder, whose nodes there a plan moves at an instant to the
// last forwarder. A sham plan has them where they were.
func (w *world) ask(at float64, everybody bool) effect.Ask {
	first := w.nodes[0]
	ordered := start.Add(time.Duration(at * float64(time.Second)))
	p := remap.Plan{ID: "P-1", Job: "0", State: remap.Verified, Changed: ordered.Add(time.Second),
		Results: []remap.Result{{OK: true, At: ordered, Took: time.Second / 10}}}
	var b effect.Beside
	mates, layer := map[int][]topology.NodeID{}, map[int][]topology.NodeID{}
	last := len(w.forwarders) - 1
	for i, n := range w.nodes {
		switch {
		case n.at == 0 && (everybody || n.job == first.job):
			p.Moves = append(p.Moves, remap.Move{Node: name(i), From: forwarder(0), To: forwarder(last)})
		case n.at == 0:
			b.Stayed = append(b.Stayed, name(i))
		case n.at == last:
		case n.job == first.job:
			mates[n.at] = append(mates[n.at], name(i))
		default:
			layer[n.at] = append(layer[n.at], name(i))
		}
	}
	for f := range w.forwarders {
		if mates[f] != nil {
			b.Mates = append(b.Mates, mates[f])
		}
		if layer[f] != nil {
			b.Layer = append(b.Layer, layer[f])
		}
	}
	return effect.Ask{Plan: p, Beside: func() effect.Beside { return b },
		Now: start.Add(time.Duration(w.seconds) * time.Second)}
}
