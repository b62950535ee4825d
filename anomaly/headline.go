package anomaly

import (
	"math"
	"slices"
	"time"
)

// steps are the factors that a headline says; more would be read as measured to the digit.
var steps = [...]float64{1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50}

const (
	binWidth = 0.05 // log; of the ratios that are counted
	binCount = 100
	// pastStep is how far a median must be beyond its step's edge before the step changes, log.
	pastStep = 0.08
	// mostChanges of a headline's step are in an hour; each waits changeWait longer than the one before, by growth.
	mostChanges      = 4
	changeWait       = 10 * time.Second
	changeWaitGrowth = 3
	// nowSeconds is the memory of the present factor.
	nowSeconds = 10
	// pastSeconds are kept of each node's ratios, to see where they changed; leastRise is by how much, log.
	pastSeconds = 240
	leastRise   = 0.3
	leastPart   = 3
)

// AmongPeers is the ratio to its peers below which a node is as they are: neither its headline nor its clients
// call it slow.
const AmongPeers = 1.2

// headline makes of the ratios of a finding's seconds the one that is shown: their median since the change.
type headline struct {
	counts  [binCount]uint32
	seconds uint32
	present float64     // log, smoothed
	changed []time.Time // of the step, the newest mostChanges
	well    int         // seconds in a row in which the present ratio was as the peers'
}

// take counts one second's ratio in log.
func (h *headline) take(log float64) {
	h.counts[max(0, min(int(log/binWidth), binCount-1))]++
	h.seconds++
	h.present += (log - h.present) / min(float64(h.seconds), nowSeconds)
}

func (h *headline) median() float64 {
	below := uint32(0)
	for i, n := range h.counts {
		if below += n; 2*below >= h.seconds {
			return (float64(i) + 0.5) * binWidth
		}
	}
	return 0
}

// factor is the step to say at now, after the one shown so far; 0 of a node that is hardly slower than its peers.
func (h *headline) factor(now time.Time, shown float64) float64 {
	if h.seconds == 0 {
		return shown
	}
	m := h.median()
	next := stepOf(m)
	if shown != 0 && next != 0 { // beyond the edge, not at it
		if next > shown {
			next = max(shown, stepOf(m-pastStep))
		} else {
			next = min(shown, stepOf(m+pastStep))
		}
	}
	h.changed = slices.DeleteFunc(h.changed, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if next == shown || next == 0 && shown != 0 {
		return shown
	}
	wait := changeWait
	for range len(h.changed) - 1 {
		wait *= changeWaitGrowth
	}
	if n := len(h.changed); shown != 0 && n > 0 && (n >= mostChanges || now.Sub(h.changed[n-1]) < wait) {
		return shown
	}
	h.changed = append(h.changed, now)
	return next
}

// stepOf is the step nearest to a log ratio; 0 below the first one's reach.
func stepOf(log float64) float64 {
	if log < math.Log(AmongPeers) {
		return 0
	}
	k := 0
	for k+1 < len(steps) && log > (math.Log(steps[k])+math.Log(steps[k+1]))/2 {
		k++
	}
	return steps[k]
}

// past is a ring of a node's newest log ratios, by second.
type past struct {
	at  [pastSeconds]int64
	log [pastSeconds]float32
	n   int
}

func (p *past) note(now int64, log float64) {
	p.at[p.n%pastSeconds], p.log[p.n%pastSeconds] = now, float32(log)
	p.n++
}

// rise returns the second in which the ratios rose most plainly, and how many lie before it; known is false where they
// did not. A test's own start may be a change of load of minutes before.
func (p *past) rise() (at int64, from int, known bool) {
	n := min(p.n, pastSeconds)
	get := func(i int) float64 { return float64(p.log[(p.n-n+i)%pastSeconds]) }
	all := 0.0
	for i := range n {
		all += get(i)
	}
	before, most := 0.0, 0.0
	for i := range n {
		k, left := float64(i), float64(n-i)
		if i >= leastPart && n-i >= leastPart {
			low, high := before/k, (all-before)/left
			if gain := k * left * (high - low) * (high - low); high-low > leastRise && low < high/2 && gain > most {
				most, from, known = gain, i, true
			}
		}
		before += get(i)
	}
	return p.at[(p.n-n+from)%pastSeconds], from, known
}

// since begins a headline at the change that a ring shows; without one it begins with what comes.
func (p *past) since() (h headline, at time.Time) {
	second, from, known := p.rise()
	if !known {
		return h, at
	}
	for i := from; i < min(p.n, pastSeconds); i++ {
		h.take(float64(p.log[(p.n-min(p.n, pastSeconds)+i)%pastSeconds]))
	}
	return h, time.Unix(second, 0).UTC()
}
