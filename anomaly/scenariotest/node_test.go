package scenariotest

import (
	"math"
	"math/rand/v2"

	"fairway/anomaly/failslow"
)

// part is one stream of requests on a node in a second.
type part struct {
	class      int
	ops, size  float64
	back, node float64 // seconds of a request at the back end and in the forwarder
	job        bool
}

// service is what a request takes: the back end's share and the forwarder's own.
func service(class int, size float64) (back, node float64) {
	return [3]float64{480e-6, 390e-6, 0}[class] + 0.5e-9*size, 100e-6 + 1.25e-9*size
}

// playNode computes what the node does in this second.
func (l *Layer) playNode(n int) {
	st := l.state(n)
	parts := l.demand(n, st)
	if len(l.Scenario.Loops) > 0 {
		l.playLoops(n, st, parts)
		return
	}
	times := func(healthy bool) (exec []float64, scale, busy float64) {
		link := st.link
		if healthy {
			link = 1
		}
		scale = 1
		for _, p := range parts {
			exec = append(exec, p.took(st, healthy))
		}
		for range 8 {
			var held, bytes float64
			for i, p := range parts {
				share := 1.0
				if p.job {
					share = scale
				}
				held += p.ops * share * exec[i]
				bytes += p.ops * share * p.size
			}
			busy = held
			if bytes > peak*link*1.001 {
				scale *= peak * link / bytes
			} else if held > threads*1.001 {
				scale *= threads / held
			} else {
				break
			}
		}
		if scale < 1 { // saturated: whoever streams holds all the threads
			var rest, stream float64
			for i, p := range parts {
				if p.job && p.size > 1e5 {
					stream += p.ops * scale * exec[i]
				} else {
					rest += p.ops * exec[i] * cond(p.job, scale, 1)
				}
			}
			if stream > 0 && rest < threads {
				for i, p := range parts {
					if p.job && p.size > 1e5 {
						exec[i] *= max(1, (threads-rest)/stream)
					}
				}
			}
			busy = threads
		}
		return exec, scale, busy
	}
	exec, scale, busy := times(false)
	healthy, _, _ := times(true)
	l.mix(n, parts, exec, healthy, scale, busy)
	if st.fault >= 0 {
		l.witness(n, st)
	}
}

func cond(b bool, x, y float64) float64 {
	if b {
		return x
	}
	return y
}

func (p *part) took(st state, healthy bool) float64 {
	if healthy {
		return p.back + p.node
	}
	speed := st.speed
	if p.class == 0 {
		speed *= st.read
	} else {
		speed *= st.write
	}
	return (p.back+p.node/speed)*st.times + st.loss
}

// demand lists what the node is asked to do.
func (l *Layer) demand(n int, st state) []part {
	mean := 0.0
	for _, f := range l.pools {
		mean += f / poolSet
	}
	var parts []part
	for c := range 2 {
		back, node := service(c, trickleB)
		if c == 0 && st.cold {
			back *= 1.5
		}
		parts = append(parts, part{class: c,
			ops: math.Floor(l.trickle[n][c]*math.Exp(0.12*l.random.NormFloat64()) + l.random.Float64()), size: trickleB,
			back: back * mean, node: node})
	}
	for i := range l.Scenario.Jobs {
		j := &l.Scenario.Jobs[i]
		if n < j.First || n >= j.First+j.Count || l.now < j.Start || l.now >= j.End ||
			(l.now-j.Start)%j.Every >= j.Burst {
			continue
		}
		ops := math.Floor(j.PerSec * math.Exp(0.03*l.random.NormFloat64()))
		if j.Flow == StormFlow {
			l.loads[n].ops[2] = ops
			continue
		}
		c := 1
		if j.Flow == ReadFlow || j.Flow == RandomFlow {
			c = 0
		}
		back, node := service(c, j.Size)
		back *= l.pools[j.Pool%poolSet] * max(1, j.Cost)
		parts = append(parts, part{class: c, ops: ops, size: j.Size, back: back, node: node, job: true})
	}
	return parts
}

// metaTook is the median time of a job's metadata operation, s.
const metaTook = 300e-6

// mix turns the streams into the means that the node reports.
func (l *Layer) mix(n int, parts []part, exec, healthy []float64, scale, busy float64) {
	storm := l.loads[n].ops[2]
	w := load{}
	w.ops[2] = storm
	var sum, good [2]float64
	for i, p := range parts {
		ops := math.Floor(p.ops * cond(p.job, scale, 1))
		w.ops[p.class] += ops
		w.size[p.class] += ops * p.size
		sum[p.class] += ops * exec[i]
		good[p.class] += ops * healthy[i]
	}
	for c := range 2 {
		w.bytes += w.size[c]
		w.wait[c] = (15 + 40*l.random.Float64()) * 1e-6
		if w.ops[c] > 0 {
			noise := l.noise(w.ops[c])
			w.exec[c], w.slower[c] = sum[c]/w.ops[c]*noise, sum[c]/good[c]
			w.size[c] /= w.ops[c]
		}
		if busy >= threads*0.999 {
			w.wait[c] = 0.02 + 0.2*l.random.Float64()
			w.queue = 50 + 100*l.random.Float64()
		}
	}
	l.loads[n] = w
}

// noise is the factor on a second's mean: smaller with more requests, with a tail now and then.
func (l *Layer) noise(ops float64) float64 {
	f := math.Exp(math.Sqrt(0.05*0.05+1.1*1.1/max(ops, 1)/1.2) * l.random.NormFloat64())
	if l.random.Float64() < 0.025 {
		f += l.random.ExpFloat64() * 60 / max(ops, 20)
	}
	return f
}

// witness notes what the fault showed in this second, chance apart.
func (l *Layer) witness(n int, st state) {
	w, t := &l.loads[n], &l.Truth[st.fault]
	seen := false
	for c := range 2 {
		if w.ops[c] < 1 {
			continue
		}
		if x := w.slower[c]; x >= 1.25 {
			t.Info += math.Pow(math.Log(x), 2) / (0.05*0.05 + 1.2/w.ops[c])
			seen = seen || w.ops[c] >= 10
		}
	}
	if st.meta > 1 && w.ops[2] > 0 {
		t.Info += 2
		seen = true
	}
	if seen {
		if t.Seconds == 0 {
			t.First = l.now
		}
		t.Seconds++
	}
}

// row is what the collector receives.
func (l *Layer) row(n int) failslow.Observation {
	w := &l.loads[n]
	o := failslow.Observation{Node: l.names[n], QueueLen: w.queue}
	for c := range 2 {
		o.Class[c] = failslow.ClassSecond{Ops: w.ops[c], Bytes: w.ops[c] * w.size[c], Wait: w.wait[c], Exec: w.exec[c]}
	}
	o.Class[failslow.Meta] = l.metaRow(n)
	w.ops[2] = 0
	return o
}

// metaRow draws metadata operations: most from memory, the others from the server with a heavy tail.
func (l *Layer) metaRow(n int) failslow.ClassSecond {
	ops := l.loads[n].ops[2]
	storm := ops > 0
	if !storm {
		ops = math.Floor(l.trickle[n][1]/80 + l.random.Float64())
	}
	if ops == 0 {
		return failslow.ClassSecond{}
	}
	slow := l.state(n).meta
	drawn := min(ops, 200)
	sum := 0.0
	for range int(drawn) {
		t := 6e-6
		if storm {
			t = metaTook * math.Exp(0.8*l.random.NormFloat64())
		} else if l.random.Float64() > 0.58 {
			t = 200e-6 * math.Exp(1.4*l.random.NormFloat64())
		}
		t *= slow
		sum += t
	}
	return failslow.ClassSecond{Ops: ops, Wait: 20e-6, Exec: sum / drawn}
}

// Canary is what a probe of the node would have seen in this second. Its chance is its own, so that a layer is the same
// whatever a detector asks of it.
func (l *Layer) Canary(n int) failslow.Probe {
	st := l.state(n)
	random := rand.New(rand.NewPCG(l.Scenario.Seed, uint64(n)<<32|uint64(l.now)))
	p := failslow.Probe{Node: l.names[n]}
	mean := 0.0
	for _, f := range l.pools {
		mean += f / poolSet
	}
	for c := range 2 {
		back, node := service(c, 1e6)
		q := part{class: c, back: back * mean, node: node}
		p.Took[c] = q.took(st, false) * math.Exp(0.07*random.NormFloat64())
		if l.loads[n].queue > 0 {
			p.Took[c] += l.loads[n].wait[c] * math.Exp(0.2*random.NormFloat64())
		}
		p.Took[c] += (l.pressed[n].stretch + l.pressed[n].outside + (1/st.outside-1)/peak) * 1e6
	}
	p.Took[failslow.Meta] = 310e-6 * st.meta * math.Exp(0.1*random.NormFloat64())
	return p
}
