package failslow

import (
	"math"

	"fairway/anomaly/compare"
)

// capCertain is the size from which requests that wait are the link's doing: of reads, bandwidth and not the
// cost of a request decides how long it takes; writes cannot be those of jobs that write one file in small
// pieces from everywhere.
func capCertain(c Class) float64 { return [2]float64{capRead, capWrite}[c] }

// flow is what a node streams of one class, kept a while for its peers to be compared with.
type flow struct {
	saturated int64   // newest second in which requests waited although less than the peak was moved
	free      int64   // newest second in which it streamed and nothing waited
	freeSize  float64 // mean bytes of a request in that
}

// burst is a run of saturated seconds. Its first and its last second are only partly filled: only a
// second with such a neighbour on either side says what the node can move.
type burst struct {
	last    int64 // newest saturated second
	length  int
	pending float64 // what the newest says, NaN for nothing
}

// collectCap looks at a saturated second: requests wait although the node moves less than its peak.
func (d *comparison) collectCap(n *node, o *Observation) {
	peak := d.peak.value()
	c := Write
	if o.Class[Read].Bytes > o.Class[Write].Bytes {
		c = Read
	}
	k, s, b := &o.Class[c], &n.now, &n.burst
	if peak <= 0 || !s.seen[c] || s.size[c] < capFrom || !known(k.Wait) {
		return
	}
	if t := &n.Tests[capped]; t.Log > 0 && n.Habit.CapAt > 0 {
		switch { // it moves what its link was thought to hold back
		case s.util > capPast*n.Habit.CapAt:
			t.Bet(d.now, -capGone, d.limit+overThreshold)
		case n.Alarm && s.util > capBelow*n.Habit.CapAt && k.Wait < waits:
			t.Bet(d.now, -capDoubted, d.limit+overThreshold)
		}
	}
	if k.Wait < waits {
		n.flow[c].free, n.flow[c].freeSize = d.now, s.size[c]
		return
	}
	switch gap := float64(d.now - b.last); {
	case gap > 1:
		*b = burst{}
	case b.length > 1 && !math.IsNaN(b.pending):
		n.cap.add(b.pending, 0.1, 1)
	}
	b.last, b.length = d.now, b.length+1
	if float64(b.length) > burstEdge && s.util < atPeak {
		n.flow[c].saturated = d.now
	}
	if b.pending = d.shortOf(n, c); b.pending > 0 {
		if n.Habit.CapAt == 0 || n.Tests[capped].Log == 0 {
			n.Habit.CapAt = s.util
		}
		n.Habit.CapAt += (s.util - n.Habit.CapAt) / 10
	}
}

// shortOf is by what log factor a saturated node moves less than its peak; NaN where something else
// than its link may be the reason.
func (d *comparison) shortOf(n *node, c Class) float64 {
	s := &n.now
	switch {
	case s.util < capLeast || s.size[c] < capCertain(c):
		return math.NaN()
	case !d.stretched(n, c):
		return 0
	}
	// With all threads at work the bytes moved in a second are the bandwidth, whatever the mix.
	return math.Log(1/s.util) - max(0, d.common[c]) - d.backend
}

// stretched says that the streamed requests themselves take longer than on a full but healthy node, and longer than
// through the job's forwarders that stream as large ones without waiting: what they need there, too, is the job's locks
// and not this link.
func (d *comparison) stretched(n *node, c Class) bool {
	s := &n.now
	full := s.size[c] * threads / d.peak.value()
	took := math.Exp(s.log[c] - max(0, d.common[c]))
	if took <= capStretch*full || !s.known[c] {
		return took > capStretch*full
	}
	level := 0.0
	for p := range d.peers(n) {
		f, was := p.flow[c], &p.shown[c][s.regime[c]]
		if float64(d.now-f.free) < shownFor && f.free > f.saturated && float64(d.now-was.at) < shownFor &&
			math.Abs(math.Log(f.freeSize/s.size[c])) < amongNear {
			level = max(level, was.mean-s.expected[c]-d.common[c])
		}
	}
	return spared(s.residual[c]-d.common[c], level) > capSlow
}

func (d *comparison) closeCap(n *node) {
	e := n.cap
	n.cap = estimate{}
	if e.Weight == 0 {
		return
	}
	bet := clip(compare.Against(e.mean()-capDoubt, e.variance()+capDoubt*capDoubt, suddenSlow), -capLoses, capWins)
	n.Tests[capped].Bet(d.now, bet, d.limit+overThreshold)
}
