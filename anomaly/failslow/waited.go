package failslow

import (
	"math"
	"slices"
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
	return Against(residual, variance, max(delta, math.Sqrt(variance)/2))
}
