package failslow

import (
	"math"
	"slices"

	"fairway/anomaly/compare"
)

// A canary waits for a thread as the requests of its class do, which the server times. That wait is taken off; what is
// not known of it is noise of the canary, so that one that waits much longer than it is served says nothing.

// waiting is what a canary waits for a thread at a node, s, and how far that may be wrong.
type waiting struct{ took, off [classes]float64 }

// waits is what a canary waits at a node by its newest seconds; ok is false where requests wait and nobody times it.
func (n *node) waits(now int64) (w waiting, ok bool) {
	if float64(now-n.Waited) >= calmFor {
		return w, true
	}
	longest := 0.0
	for c := range classes {
		count, sum, squares, queue := 0.0, 0.0, 0.0, 0.0
		for _, r := range n.loads {
			if x := r.wait[c]; now-r.at < loadedFor && known(x) {
				count, sum, squares = count+1, sum+x, squares+x*x
				queue += r.queued
			}
		}
		if count == 0 {
			continue
		}
		ok = true
		mean := sum / count
		off := math.Hypot(waitScatter*mean, math.Sqrt(max(0, squares/count-mean*mean)))
		if c != int(Meta) { // whose operations have threads of their own in some servers
			off = math.Hypot(off, queue/count-mean)
		}
		w.took[c], w.off[c] = mean, off
		longest = max(longest, mean+off)
	}
	for c := range w.took {
		if w.took[c] == 0 { // nobody asked for any
			w.took[c], w.off[c] = longest/2, longest/2
		}
	}
	return w, ok
}

// sure says that the wait of a canary that took so long without it is known well enough for others to learn from it.
func (w *waiting) sure(p Probe, of ...Class) bool {
	return !slices.ContainsFunc(of, func(c Class) bool { return !(w.off[c] < waitTeach*p.Took[c]) })
}

// share is a time as a share of what a canary usually takes.
func (l *canaryLevel) share(c int, off float64) float64 { return off / math.Exp(l.Usual[c].Mean) }

// scatter is the noise of a canary whose wait may be wrong by so much.
func (l *canaryLevel) scatter(c Class, off float64) float64 {
	return math.Hypot(l.sigma(c), l.share(int(c), off))
}

// queued is what reads and writes waited by the queue that they left behind them (Little's law): where that is not what
// the server timed, neither is known.
func queued(o *Observation) float64 {
	ops := o.Class[Read].Ops + o.Class[Write].Ops
	if !(o.QueueLen > calmBacklog) || !(ops > 0) {
		return max(0, o.Class[Read].Wait, o.Class[Write].Wait)
	}
	return o.QueueLen / ops
}

// longer is by how much a canary took longer than usual, log, and the share of the usual instead where that lies within
// what its wait may be wrong by: the mean must not be above 0 while a node is healthy. The wait may be thought to be
// more than all that the canary took.
func longer(took, usual, off float64) float64 {
	x := took/math.Exp(usual) - 1
	if x < 0 {
		return max(x, min(-1, -noiseClip*off))
	}
	return min(x, max(math.Log1p(x), noiseClip*off))
}

// against is Against for a canary: one that is known badly is bet to be slow by half of its noise at least, for less
// could not be seen.
func against(residual, variance, delta float64) float64 {
	return compare.Against(residual, variance, max(delta, math.Sqrt(variance)/2))
}

// While the layer or its storage pools are slow, no past says what a canary takes: it is compared with those that went
// through other nodes just now.

// beside are the newest canaries of the layer, through nodes that are not accused.
type beside struct {
	ring [besideMost]passed
	next int
}

// besideMost canaries are enough for a median.
const besideMost = 64

// passed is one canary, and how slow the back end was then, log.
type passed struct {
	at            int64
	node          int              // 1 + its index
	over          [classes]float64 // by how much it was slower than usual
	pools, common float64
}

// over is by how much a canary was slower than it usually is at that load, log, whatever slowed it; ok is false while
// too few canaries have shown what is usual.
func (d *Detector) over(n *node, at *canaryLevel, p Probe, w *waiting) (x [classes]float64, ok bool) {
	for c := range x {
		if math.IsNaN(p.Took[c]) || at.Usual[c].N < judgeAfter {
			return x, false
		}
		x[c] = longer(p.Took[c], at.Usual[c].Mean, at.share(c, w.off[c]))
	}
	return x, true
}

func (b *beside) note(n *node, now int64, ref *reference, over [classes]float64) {
	b.ring[b.next] = passed{now, n.Index + 1, over, ref.pools, ref.common[Write]}
	b.next = (b.next + 1) % besideMost
}

// of is by how much the newest canaries through other nodes were slower than usual: the median, of two the slower one.
// Only those count that met a back end as slow as it is now.
func (b *beside) of(n *node, now int64, ref *reference) (level [classes]float64, ok bool) {
	var all [classes][]float64
	seen := map[int]bool{0: true, n.Index + 1: true}
	for i := range b.ring {
		p := &b.ring[(b.next+2*besideMost-1-i)%besideMost]
		if seen[p.node] || float64(now-p.at) > besideFor || math.Abs(p.pools-ref.pools) > calmPools ||
			math.Abs(p.common-ref.common[Write]) > calmCommon {
			continue
		}
		seen[p.node] = true
		for c := range all {
			all[c] = append(all[c], p.over[c])
		}
	}
	if float64(len(all[Read])) < max(besideLeast, 1) {
		return level, false
	}
	for c := range all {
		level[c] = max(0, nth(all[c], len(all[c])/2))
	}
	return level, true
}
