package anomaly

import (
	"math"
	"slices"
	"time"
)

// steps are the factors that a headline says; more would be read as measured to the digit. Half way
// between two is within a sixth of both.
var steps = [...]float64{1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, Saturated}

const (
	binWidth = 0.05 // log; of the ratios that are counted
	binCount = 100
	// pastStep is how far a median must be beyond its step's edge before the step changes, log.
	pastStep = 0.05
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

// headline is the ratio of a finding that is shown: what its clients measure since the change and, where these do not
// time their requests, the median of its seconds' ratios.
type headline struct {
	measure measure
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

// heading is a headline: the factor, and whether it is only known to be as much or more.
type heading struct {
	factor  float64
	atLeast bool
}

// next is the step that is nearest to what is known, after the one shown so far; factor 0 of a node that is hardly
// slower than its peers.
func (h *headline) next(shown heading, class string) heading {
	log, atLeast, known := h.measure.ratio(class)
	if !known {
		log, atLeast = h.median(), false
	}
	next := stepOf(log)
	switch {
	case atLeast:
		least := floorOf(log)
		return heading{least, least > 0}
	case log > math.Log(Saturated)+pastStep:
		return heading{Saturated, true}
	case shown.factor == 0 || next == 0 || shown.atLeast:
	case next > shown.factor: // beyond the edge, not at it
		next = max(shown.factor, stepOf(log-pastStep))
	default:
		next = min(shown.factor, stepOf(log+pastStep))
	}
	return heading{factor: next}
}

// say is what to say at now, after what was shown so far. A suspicion has no headline yet, which may change as it will.
func (h *headline) say(now time.Time, shown heading, class string, suspected bool) heading {
	next := h.next(shown, class)
	h.changed = slices.DeleteFunc(h.changed, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if next == shown || next.factor == 0 && shown.factor != 0 {
		return shown
	}
	if suspected {
		return next
	}
	wait := changeWait
	for range len(h.changed) - 1 {
		wait *= changeWaitGrowth
	}
	if n := len(h.changed); shown.factor != 0 && n > 0 && (n >= mostChanges || now.Sub(h.changed[n-1]) < wait) {
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

// floorOf is the greatest step that a log ratio reaches; 0 below the first one.
func floorOf(log float64) (floor float64) {
	for _, step := range steps {
		if math.Log(step) <= log {
			floor = step
		}
	}
	return floor
}

// past is a ring of a node's newest log ratios, and of what its clients waited, by second.
type past struct {
	at    [pastSeconds]int64
	log   [pastSeconds]float32
	waits [pastSeconds]*Waits
	n     int
}

// note keeps a second; of one whose ratio is not known the one before stands.
func (p *past) note(now int64, v *Verdict) {
	i := p.n % pastSeconds
	p.at[i], p.waits[i], p.log[i] = now, v.Waits, p.log[(i+pastSeconds-1)%pastSeconds]
	if v.Ratio > 0 {
		p.log[i] = float32(math.Log(v.Ratio))
	}
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

// since begins a headline at the change that a ring shows; without one it begins with what comes. The seconds up to the
// change have requests of both sides, and count on neither. The newest second is the finding's own to take.
func (p *past) since() (h headline, at time.Time) {
	second, from, known := p.rise()
	n := min(p.n, pastSeconds)
	var before Waits
	for i := range n - 1 {
		k := (p.n - n + i) % pastSeconds
		if known && i >= from {
			h.take(float64(p.log[k]))
		}
		switch w := p.waits[k]; {
		case w == nil, known && i <= from && i > from-leastPart:
		case known && i > from:
			h.measure.take(w)
		default:
			before.add(w)
			h.measure.before = before.All
		}
	}
	if known {
		at = time.Unix(second, 0).UTC()
	}
	return h, at
}
