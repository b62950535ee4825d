package scenariotest

import (
	"math"

	"fairway/anomaly/recorded"
	"fairway/collector/topology"
)

// Loop is a job whose processes wait for answers: on each of its forwarders a fixed number of requests is under way,
// so that its rate is that number divided by what a request takes.
type Loop struct {
	ID         string
	Start, End int
	First      int // the first of its forwarders
	Count      int
	UnderWay   float64    // requests under way on each forwarder: its compute nodes there times their depth
	Think      float64    // seconds between an answer and the next request
	Reads      float64    // share of its requests that read
	Size       [2]float64 // bytes of a read and of a write
	// Bytes is what each forwarder moves in a phase; then all wait for the slowest and compute. 0: no phases.
	Bytes   float64
	Compute int // seconds between two phases
	// Lockstep has all processes wait for the slowest after every round of requests.
	Lockstep bool
	Meta     float64 // metadata operations beside each request, which wait for each other, too
	Cost     float64 // times the usual, at the back end
	Pools    []int   // that its files lie on
}

// loopState is where a loop stands.
type loopState struct {
	left    []float64 // bytes of this phase, by forwarder
	able    []float64 // rate that each forwarder would serve without the others
	limit   float64   // the rate of the slowest, of the second before
	resting int       // the second in which the next phase begins
}

// crowd are requests of one kind on a forwarder: those of a loop, or open arrivals.
type crowd struct {
	underWay float64 // at most
	limit    float64 // requests a second, at most
	think    float64
	reads    float64 // share
	exec     [2]float64
	size     [2]float64
	loop     int     // index; -1: none
	part     float64 // of the second in which it is at work
}

// took is what a request of the crowd takes in the server, in the mean, where a byte takes stretch longer.
func (c *crowd) took(stretch float64) float64 {
	return c.reads*(c.exec[0]+stretch*c.size[0]) + (1-c.reads)*(c.exec[1]+stretch*c.size[1])
}

func (c *crowd) bytes() float64 { return c.reads*c.size[0] + (1-c.reads)*c.size[1] }

// pressure is what slows a forwarder's requests beyond their own service.
type pressure struct {
	wait    float64 // seconds until a thread is free
	stretch float64 // seconds a byte, in service: the forwarder moves what it can
	outside float64 // seconds a byte, between the clients and the forwarder
}

func (c *crowd) able(p pressure) float64 {
	return c.underWay / (c.think + p.wait + c.took(p.stretch) + p.outside*c.bytes())
}

func (c *crowd) rate(p pressure) float64 { return min(c.limit, c.able(p)) }

// least is the smallest x from 0 to most for which fits holds, which it does from there on.
func least(most float64, fits func(x float64) bool) float64 {
	if fits(0) {
		return 0
	}
	low, high := 0.0, most
	for range 26 {
		if mid := (low + high) / 2; fits(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// settle finds the pressure at which the forwarder's threads, its bandwidth and its clients' link suffice.
func settle(crowds []crowd, bandwidth, link float64) (p pressure) {
	const longest, perByte = 20, 1e-5 // seconds, seconds a byte
	moved := func() (sum float64) {
		for i := range crowds {
			sum += crowds[i].rate(p) * crowds[i].bytes()
		}
		return sum
	}
	wait := func() {
		p.wait = least(longest, func(w float64) bool {
			p.wait = w
			held := 0.0
			for i := range crowds {
				held += crowds[i].rate(p) * crowds[i].took(p.stretch)
			}
			return held <= threads
		})
	}
	p.outside = least(perByte, func(o float64) bool {
		p.outside = o
		p.stretch = least(perByte, func(s float64) bool {
			p.stretch = s
			wait()
			return moved() <= bandwidth
		})
		wait()
		return moved() <= link
	})
	return p
}

// pool is how many times its usual time what lies on some pools takes.
func (l *Layer) pool(pools []int) (mean float64) {
	for _, p := range pools {
		mean += l.pools[p%poolSet] / float64(len(pools))
	}
	return mean
}

// alone is what a request takes in a forwarder in that state that has nothing else to do.
func alone(class int, size, back float64, st state) float64 {
	usual, node := service(class, size)
	p := part{class: class, back: usual * back, node: node}
	return p.took(st, false)
}

// crowds lists what a forwarder is asked for in this second.
func (l *Layer) crowds(n int, parts []part, st state) (out []crowd) {
	for _, p := range parts {
		c := crowd{underWay: 512, limit: p.ops, reads: float64(1 - p.class), loop: -1, part: 1}
		c.exec[p.class], c.size[p.class] = p.took(st, false), p.size
		out = append(out, c)
	}
	for i := range l.Scenario.Loops {
		j, s := &l.Scenario.Loops[i], &l.loops[i]
		if n < j.First || n >= j.First+j.Count || l.now < max(j.Start, s.resting) || l.now >= j.End ||
			j.Bytes > 0 && s.left[n-j.First] <= 0 {
			continue
		}
		think := j.Think + j.Meta*metaTook*st.meta
		c := crowd{underWay: j.UnderWay, limit: math.Inf(1), think: think, reads: j.Reads, size: j.Size, loop: i,
			part: 1}
		if j.Lockstep {
			c.limit = s.limit
		}
		for class := range 2 {
			c.exec[class] = alone(class, j.Size[class], j.Cost*l.pool(j.Pools), st)
		}
		out = append(out, c)
	}
	return out
}

// playLoops is playNode for a layer with loops.
func (l *Layer) playLoops(n int, st state, parts []part) {
	crowds := l.crowds(n, parts, st)
	p := settle(crowds, peak*st.link*st.speed/st.times, peak*st.outside)
	l.pressed[n] = p
	w := &l.loads[n]
	*w = load{ops: [3]float64{2: w.ops[2]}}
	var took, good [2]float64
	var healthy []crowd
	var q pressure
	if st.fault >= 0 {
		well := newState()
		healthy = l.crowds(n, parts, well)
		q = settle(healthy, peak, peak)
	}
	for i := range crowds {
		c := &crowds[i]
		rate := c.rate(p)
		if c.loop >= 0 {
			rate *= l.advance(c, n, p, rate)
			w.ops[2] += math.Floor(rate*l.Scenario.Loops[c.loop].Meta + 0.5)
		}
		for class, share := range [2]float64{c.reads, 1 - c.reads} {
			ops := math.Floor(rate*share + l.random.Float64())
			w.ops[class] += ops
			w.size[class] += ops * c.size[class]
			took[class] += ops * (c.exec[class] + p.stretch*c.size[class])
			if healthy != nil {
				good[class] += ops * (healthy[i].exec[class] + q.stretch*c.size[class])
			}
		}
		w.queue += rate * p.wait
	}
	for c := range 2 {
		w.bytes += w.size[c]
		w.wait[c] = (15+40*l.random.Float64())*1e-6 + p.wait*math.Exp(0.2*l.random.NormFloat64())
		if w.ops[c] > 0 {
			w.exec[c] = took[c] / w.ops[c] * l.noise(w.ops[c])
			w.size[c] /= w.ops[c]
			if healthy != nil {
				w.slower[c] = took[c] / good[c]
			}
		}
	}
	if st.fault >= 0 {
		l.witness(n, st)
	}
}

// advance moves a loop's forwarder on by a second and returns the part of it in which it was at work.
func (l *Layer) advance(c *crowd, n int, p pressure, rate float64) float64 {
	j, s := &l.Scenario.Loops[c.loop], &l.loops[c.loop]
	at := n - j.First
	s.able[at] = c.able(p)
	if j.Bytes == 0 || rate == 0 {
		return 1
	}
	bytes := rate * c.bytes()
	part := min(1, s.left[at]/bytes)
	s.left[at] -= bytes
	return part
}

// meet has the loops' processes wait for each other, after all forwarders have played their second.
func (l *Layer) meet() {
	for i := range l.Scenario.Loops {
		j, s := &l.Scenario.Loops[i], &l.loops[i]
		s.limit = math.Inf(1)
		done := true
		for k := range j.Count {
			if s.able[k] > 0 {
				s.limit = min(s.limit, s.able[k])
			}
			s.able[k] = 0
			done = done && s.left[k] <= 0
		}
		if j.Bytes > 0 && done {
			s.resting = l.now + 1 + j.Compute
			for k := range s.left {
				s.left[k] = j.Bytes
			}
		}
	}
}

// newLoops are the loops at the beginning.
func newLoops(loops []Loop) []loopState {
	out := make([]loopState, len(loops))
	for i, j := range loops {
		s := &out[i]
		s.left, s.able, s.limit = make([]float64, j.Count), make([]float64, j.Count), math.Inf(1)
		for k := range s.left {
			s.left[k] = j.Bytes
		}
	}
	return out
}

// loopJobs are the loops as the scheduler's table has them.
func (l *Layer) loopJobs() (out []recorded.Job) {
	for _, j := range l.Scenario.Loops {
		nodes := make([]topology.NodeID, j.Count)
		copy(nodes, l.names[j.First:])
		out = append(out, recorded.Job{ID: j.ID, Start: epoch + int64(j.Start), End: epoch + int64(j.End),
			Nodes: nodes})
	}
	return out
}
