package failslow

import (
	"iter"
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
	size      float64 // mean bytes of a request in it
	free      int64   // newest second in which it streamed and nothing waited
	freeSize  float64 // mean bytes of a request in that
}

// burst is a run of saturated seconds. Its first and its last second are only partly filled: only a
// second with such a neighbour on either side says what the node can move.
type burst struct {
	last    int64 // newest saturated second
	length  int
	pending float64 // what the newest says, NaN for nothing
	byPeers bool    // only the peers say that it is not the job
	gain    float64 // log wealth that this burst has won
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
		f := &n.Habit.Freely[c][octave(s.size[c])]
		*f = max(*f, s.util)
		return
	}
	switch gap := float64(d.now - b.last); {
	case gap > burstGap:
		*b = burst{}
	case gap > 1:
		*b = burst{gain: b.gain, byPeers: b.byPeers}
	}
	b.byPeers = b.byPeers || s.size[c] < capCertain(c)
	if b.length > 1 && !math.IsNaN(b.pending) {
		n.cap.add(b.pending, 0.1, 1)
	}
	b.last, b.length = d.now, b.length+1
	if float64(b.length) > burstEdge && s.util < atPeak {
		n.flow[c].saturated, n.flow[c].size = d.now, s.size[c]
	}
	if b.pending = d.shortOf(n, c); b.pending > 0 {
		if n.Habit.CapAt == 0 || n.Tests[capped].Log == 0 {
			n.Habit.CapAt = s.util
		}
		if b.byPeers && math.Abs(math.Log(s.util/n.Habit.CapAt)) > capNear {
			b.pending = -capMoved
		}
		n.Habit.CapAt += (s.util - n.Habit.CapAt) / 10
	}
}

// shortOf is by what log factor a saturated node moves less than its peak; NaN where something else
// than its link may be the reason.
func (d *comparison) shortOf(n *node, c Class) float64 {
	s := &n.now
	plain := s.size[c] >= capCertain(c)
	// Of small or random requests the peers can say that it is not the job: they serve its others freely.
	// One file may be written through one node alone, so that of writes the node's own past must say it too.
	free := 0.0
	for range d.freePeers(n, c, min(shownFor, float64(n.burst.length))) {
		free++
	}
	peers := float64(n.burst.length) > capSettled && free >= amongLeast
	past := s.util*capMore < n.Habit.Freely[c][octave(s.size[c])]
	if s.util < capLeast || d.jobWaits(n, c) || !plain && !(peers && (c == Read || past)) {
		return math.NaN()
	}
	if !d.stretched(n, c, !plain && c == Write) {
		return 0
	}
	// With all threads at work the bytes moved in a second are the bandwidth, whatever the mix.
	short := math.Log(1/s.util) - math.Max(0, d.common[c])
	// a slow storage pool would hold up the job's other forwarders as well
	if d.backend > slowPool && peers && (past || c == Read) {
		n.burst.byPeers = true
		return short
	}
	return short - d.backend
}

// octave is the place of a request size in node.Freely.
func octave(size float64) int {
	return max(0, min(octaves-1, int(math.Log2(max(size, 1))+0.5)-15))
}

// stretched says that the streamed requests themselves take longer than on a full but healthy node, and longer than
// through the job's forwarders on which nothing waits: what they need there, too, is the job's locks and not this link.
// byPast says that the fleet does not show it: what it needs for small writes has its shared files in it.
func (d *comparison) stretched(n *node, c Class, byPast bool) bool {
	s := &n.now
	full := s.size[c] * threads / d.peak.value()
	took := math.Exp(s.log[c] - max(0, d.common[c]))
	if took <= capStretch*full || byPast || !s.known[c] {
		return took > capStretch*full
	}
	level := 0.0
	for p := range d.freePeers(n, c, shownFor) {
		if was := &p.shown[c][s.regime[c]]; float64(d.now-was.at) < shownFor {
			level = max(level, was.mean-s.expected[c]-d.common[c])
		}
	}
	return spared(s.residual[c]-d.common[c], level) > capSlow
}

// jobWaits says that the other forwarders of one of the node's jobs wait like it, for reads like its or for any
// writes, which one shared file may hold up: then it is the job.
// In the first seconds of a burst of writes the one before it speaks, where all of them waited.
func (d *comparison) jobWaits(n *node, c Class) bool {
	off := func(size float64) float64 { return math.Abs(math.Log(size / n.now.size[c])) }
	young := c == Write && float64(n.burst.length) <= capSettled
	for _, job := range d.jobs[n] {
		waiting, free, waited, freed := 0, 0, 0, 0 // now, and in the burst before
		for _, p := range job {
			f := p.flow[c]
			switch {
			case p == n:
			case float64(d.now-f.saturated) < carryFor && f.saturated >= f.free &&
				(c == Write || off(f.size) < capAlike):
				if waited++; float64(d.now-f.saturated) < shownFor {
					waiting++
				}
			case float64(d.now-f.free) < carryFor && off(f.freeSize) < amongNear:
				if freed++; float64(d.now-f.free) < shownFor {
					free++
				}
			}
		}
		if waiting > 0 && waiting >= free || young && waited >= amongLeast && freed == 0 {
			return true
		}
	}
	return false
}

// freePeers are the other forwarders of the node's jobs that stream requests of that size without waiting, within so
// many seconds.
func (d *comparison) freePeers(n *node, c Class, within float64) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for p := range d.peers(n) {
			if f := p.flow[c]; float64(d.now-f.free) < within && f.free > f.saturated &&
				math.Abs(math.Log(f.freeSize/n.now.size[c])) < amongNear && !yield(p) {
				return
			}
		}
	}
}

func (d *comparison) closeCap(n *node) {
	e := n.cap
	n.cap = estimate{}
	if e.Weight == 0 {
		return
	}
	least := -capLoses
	if n.burst.byPeers {
		least = -capGone
	}
	bet := clip(compare.Against(e.mean()-capDoubt, e.variance()+capDoubt*capDoubt, suddenSlow), least, capWins)
	if n.burst.byPeers {
		bet = min(bet, max(0, capByPeers*d.limit-n.burst.gain))
	}
	n.burst.gain += max(0, bet)
	n.Tests[capped].Bet(d.now, bet, d.limit+overThreshold)
}
