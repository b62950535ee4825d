package failslow

import "math"

const (
	// wholeRead is the mean request size from which bandwidth and not the cost of a request decides
	// how long it takes, bytes.
	wholeRead = 192 << 10
	// certain is the size from which writes that wait cannot be those of jobs that write one file in
	// small pieces from everywhere.
	certain = 384 << 10
	// leastCap is the share of the peak below which a full queue is not the link's doing: jobs that
	// write one file from everywhere hold the threads in locks and move less.
	leastCap = 0.06
	// pastCap times what a capped node moved when it was saturated shows that its cap is gone: without
	// that a node that has recovered, and so never waits again, would stay accused for ever.
	pastCap = 1.3
	// capNear is by how much, log, what a link holds back may differ from one second or burst to another, where only
	// the peers say that it is not the job: what locks or costly requests hold back differs with what is asked for.
	capNear = 0.06
	nearCap = 0.8  // so much without waiting shows it too, less surely
	backlog = 1e-3 // seconds of waiting that make a node saturated
)

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

// mostByPeers is how much of an accusation one burst can win that is a burst of large requests only by
// comparison with peers: two jobs that meet on one node may look like that, but not again and again.
const mostByPeers = 0.4

// collectCap looks at a saturated second: requests wait although the node moves less than its peak.
func (d *Detector) collectCap(n *node, o *Observation) {
	peak := d.peak.value()
	c := Write
	if o.Class[Read].Bytes > o.Class[Write].Bytes {
		c = Read
	}
	k, s, b := &o.Class[c], &n.now, &n.burst
	if peak <= 0 || !s.seen[c] || s.size[c] < 2*smallRequest*3/4 || !known(k.Wait) {
		return
	}
	if t := &n.Tests[capped]; t.Log > 0 && n.CapAt > 0 {
		switch { // it moves what its link was thought to hold back
		case s.util > pastCap*n.CapAt:
			t.Bet(d.now, -1, d.limit+overThreshold)
		case n.Alarm && s.util > nearCap*n.CapAt && k.Wait < backlog:
			t.Bet(d.now, -0.5, d.limit+overThreshold)
		}
	}
	if k.Wait < backlog {
		n.flow[c].free, n.flow[c].freeSize = d.now, s.size[c]
		f := &n.Freely[c][octave(s.size[c])]
		*f = max(*f, s.util)
		return
	}
	switch gap := d.now - b.last; {
	case gap > 20:
		*b = burst{}
	case gap > 1:
		*b = burst{gain: b.gain, byPeers: b.byPeers}
	}
	b.byPeers = b.byPeers || s.size[c] < [2]float64{wholeRead, certain}[c]
	if b.length > 1 && !math.IsNaN(b.pending) {
		n.cap.add(b.pending, 0.1, 1)
	}
	b.last, b.length = d.now, b.length+1
	if b.length > 2 && s.util < 0.85 {
		n.flow[c].saturated, n.flow[c].size = d.now, s.size[c]
	}
	if b.pending = d.shortOf(n, c); b.pending > 0 {
		if n.CapAt == 0 || n.Tests[capped].Log == 0 {
			n.CapAt = s.util
		}
		if b.byPeers && math.Abs(math.Log(s.util/n.CapAt)) > capNear {
			b.pending = -0.25
		}
		n.CapAt += (s.util - n.CapAt) / 10
	}
}

// shortOf is by what log factor a saturated node moves less than its peak; NaN where something else
// than its link may be the reason.
func (d *Detector) shortOf(n *node, c Class) float64 {
	s, other := &n.now, 1-c
	plain := s.size[c] >= [2]float64{wholeRead, certain}[c]
	// Of small or random requests the peers can say that it is not the job: they serve its others freely.
	// One file may be written through one node alone, so that of writes the node's own past must say it too.
	peers := n.burst.length > settled && d.freePeers(n, c) >= 2
	past := s.util*movedMore < n.Freely[c][octave(s.size[c])]
	all, some := d.jobWaits(n, c)
	if s.util < leastCap || all || !plain && !(peers && (c == Read || past)) {
		return math.NaN()
	}
	n.burst.byPeers = n.burst.byPeers || some
	if w := s.size[Write]; c == Read && s.seen[Write] && w > 24<<10 && w < certain && s.known[Write] &&
		s.residual[Write] > 0.7 {
		return math.NaN() // writes to a shared file may hold the threads that reads wait for
	}
	if s.seen[other] && s.known[other] && s.size[other] > 2*smallRequest && s.residual[other]-d.common[other] < 0.3 {
		return 0 // large requests of the other class are served as fast as ever: locks, not the link
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

const (
	settled   = 3   // saturated seconds after which a burst is compared with those of peers
	slowPool  = 0.2 // log of how much slower a storage pool must be to matter here
	movedMore = 1.1 // times as much without waiting, for the past to speak
)

// octave is the place of a request size in node.Freely.
func octave(size float64) int {
	return max(0, min(octaves-1, int(math.Log2(max(size, 1))+0.5)-15))
}

// stretched says that the streamed requests themselves take longer than on a full but healthy node; byPast
// that the fleet does not show: what it needs for small writes has its shared files in it.
func (d *Detector) stretched(n *node, c Class, byPast bool) bool {
	s := &n.now
	full := s.size[c] * d.set.Threads / d.peak.value()
	took := math.Exp(s.log[c] - max(0, d.common[c]))
	return took > 1.3*full && (byPast || !s.known[c] || s.residual[c]-d.common[c] > 0.25)
}

const peerWindow = 30 // seconds

// jobWaits says that the other forwarders of one of the node's jobs wait like it, for reads like its or for any
// writes, which one shared file may hold up: then it is the job. A few may wait for reasons of their own: some says so.
func (d *Detector) jobWaits(n *node, c Class) (all, some bool) {
	off := func(size float64) float64 { return math.Abs(math.Log(size / n.now.size[c])) }
	for _, job := range d.jobs[n] {
		waiting, free := 0, 0
		for _, p := range job {
			f := p.flow[c]
			switch {
			case p == n:
			case d.now-f.saturated < peerWindow && f.saturated >= f.free && (c == Write || off(f.size) < 0.5):
				waiting++
			case d.now-f.free < peerWindow && off(f.freeSize) < 0.35:
				free++
			}
		}
		some = some || waiting > 0
		all = all || waiting > 0 && waiting >= free
	}
	return all, some
}

// freePeers counts the other forwarders of the node's jobs that stream requests of that size without waiting,
// during this burst.
func (d *Detector) freePeers(n *node, c Class) (free int) {
	window := min(peerWindow, int64(n.burst.length))
	for p := range d.peers(n) {
		if f := p.flow[c]; d.now-f.free < window && f.free > f.saturated &&
			math.Abs(math.Log(f.freeSize/n.now.size[c])) < 0.35 {
			free++
		}
	}
	return free
}

func (d *Detector) closeCap(n *node) {
	e := n.cap
	n.cap = estimate{}
	if e.Weight == 0 {
		return
	}
	least := -0.3
	if n.burst.byPeers {
		least = -1
	}
	bet := clip(Against(e.mean()-0.15, e.variance()+0.15*0.15, 0.4), least, 3)
	if n.burst.byPeers {
		bet = min(bet, max(0, mostByPeers*d.limit-n.burst.gain))
	}
	n.burst.gain += max(0, bet)
	n.Tests[capped].Bet(d.now, bet, d.limit+overThreshold)
}
