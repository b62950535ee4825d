package watch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/clientslow"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
)

// links judges the way between clients and those forwarders that time their own requests: what a capped link costs
// shows in no time of the server. It compares what clients waited beyond the time in the server, by the test that
// judges forwarders without a clock.
type links struct {
	test *clientslow.Detector
	rows []failslow.Observation
	// outside is the part of their waiting that clients spent on the way, lately; doubted are those of
	// the newest second.
	outside map[topology.NodeID][3]float64
	doubted map[topology.NodeID]bool
}

func newLinks(every time.Duration) links {
	return links{test: clientslow.New(every), outside: map[topology.NodeID][3]float64{},
		doubted: map[topology.NodeID]bool{}}
}

// take notes a second of a forwarder with a clock beside what its clients saw. Sums are compared, for an operation of a
// client may be several requests; where not all clients report, too much is taken off, which accuses nobody.
func (l *links) take(o failslow.Observation, sums *clientSums) {
	outside := l.outside[o.Node]
	for c := range o.Class {
		k := &o.Class[c]
		inside := k.Ops * (k.Wait + k.Exec)
		k.Exec, k.Wait = math.NaN(), math.NaN()
		if sums.ops[c] > 0 && inside >= 0 {
			k.Exec = max(sums.took[c]-inside, math.SmallestNonzeroFloat64) / sums.ops[c]
			k.Ops = sums.ops[c]
			if sums.took[c] > 0 {
				outside[c] = max(0, 1-inside/sums.took[c])
			}
		}
	}
	l.outside[o.Node] = outside
	o.InFlight, o.Completed = 0, 0 // its queue is judged by its own clock
	l.rows = append(l.rows, o)
}

// judge returns the forwarders whose way to their clients is in doubt, or worse; own are the verdicts by their own
// clocks. Where one of these leans against a forwarder, too, its clients wait for it and the way is not to blame.
func (l *links) judge(now time.Time, own []anomaly.Verdict) (out []anomaly.Verdict) {
	clear(l.doubted)
	accused := func(n topology.NodeID) bool {
		return slices.ContainsFunc(own, func(o anomaly.Verdict) bool { return o.Node == n && o.Level >= anomaly.Doubt })
	}
	for _, v := range l.test.Second(now, l.rows) {
		if v.Level < anomaly.Doubt {
			continue
		}
		_, lossy := v.Evidence["lost"]
		switch {
		case lossy:
		case accused(v.Node):
			v.Sentence += ", beyond the time in the forwarder, which is slow, too"
		default:
			v.Sentence += "; the time in the forwarder is taken off: it is the way between it and its clients"
		}
		l.doubted[v.Node] = true
		out = append(out, v)
	}
	l.rows = l.rows[:0]
	return out
}

// lost is the part of a class's waiting that a way in doubt costs clients beyond that of the peers.
func (l *links) lost(id topology.NodeID, class int) float64 {
	if r := l.test.Ratio(id)[class]; l.doubted[id] && r > 1 {
		return l.outside[id][class] * (1 - 1/r)
	}
	return 0
}

// Rules of links that run at a part of their rate.
const (
	// lowRate is the share of a rate below which a forwarder's links are not what they were: a card for management
	// that is left out from then on takes less off.
	lowRate = 0.9
	// lowFor is for how long that must last, seconds: links are trained again and fall back at once.
	lowFor = 3
	// settled is for how long a forwarder must report, and a rate must last, seconds, before it counts: links come up
	// one after the other when a node starts.
	settled = 60
	// lasting is how long a lower rate must last, seconds, to be what the forwarder has by design from then on.
	lasting = 7 * 24 * 3600
	// oneLane is what no port of a forwarder has by design, unlike two.
	oneLane = 1
	// equalPeers is how many other forwarders must have one higher rate, two thirds of the others at least.
	equalPeers = 3
)

// linkRates watches for forwarders whose links run at less than they did, or on one lane where nearly all others have
// the same higher rate. No load is needed and no statistics: the kernel says at what rate a link runs.
type linkRates map[topology.NodeID]*linkRate

// linkRate is a forwarder's; what has a capital is saved. Times are Unix seconds.
type linkRate struct {
	Best   float64 // the most that lasted
	BestAt int64   // when it was last so
	Low    int64   // since when the rate is too low; 0: it is not

	bits, lanes float64 // in the newest second; no lanes: not known
	at          int64   // newest second
	since       int64   // reports since then without a gap
	changed     int64   // has its rate since then
	healed      int64   // when it was no longer low; 0: it never was
}

// take notes what a forwarder's links run at.
func (l linkRates) take(f *collector.Frame, now int64) {
	bits, known := f.Value(collector.LinkRateBits)
	if !known {
		return
	}
	r := anomaly.Entry(l, f.Node)
	if now-r.at > silentAfter || now < r.at {
		r.since, r.changed = now, now
	}
	if bits != r.bits {
		r.changed = now
	}
	r.bits, r.lanes, r.at = bits, valueOr(f, collector.LinkLanes, 0), now
	if bits > r.Best && now-r.changed >= settled || r.Best > 0 && now-r.BestAt > lasting {
		r.Best, r.BestAt = bits, now
	}
	if bits >= lowRate*r.Best {
		r.BestAt = now
	}
}

// verdicts accuse the forwarders whose links are too slow, and those whose links are what they were are clean.
func (l linkRates) verdicts(now time.Time) (out []anomaly.Verdict) {
	t := now.Unix()
	reporting, fell := l.count(t)
	for _, n := range slices.Sorted(maps.Keys(l)) {
		r := l[n]
		if !r.reports(t) {
			continue
		}
		const one = 1
		better, sentence := 0.0, ""
		if r.fell() && (fell == one || 2*fell <= reporting) { // else it is what connects them, or meant
			better = r.Best
			sentence = fmt.Sprintf("the links of %s run at %s, at %s before", n, gigabits(r.bits), gigabits(r.Best))
		} else if rate, equal := l.peers(n, t); r.lanes == oneLane && rate > 0 {
			better = rate
			sentence = fmt.Sprintf("the links of %s run at %s, those of %d other forwarders at %s", n, gigabits(r.bits),
				equal, gigabits(rate))
		}
		if r.Low > 0 && !r.fell() && r.lanes != oneLane {
			r.Low, r.healed = 0, t
		}
		switch {
		case better > 0 && r.Low == 0:
			r.Low = t
		case better == 0 && r.Low == 0 && r.healed > 0 && t-r.healed <= afterSilence:
			out = append(out, anomaly.Verdict{Node: n, Kind: anomaly.FailSlow, Level: anomaly.Clean})
		}
		if better == 0 || t-r.Low+1 < lowFor {
			continue
		}
		if r.lanes == oneLane {
			sentence += ": an InfiniBand port runs on one lane"
		}
		out = append(out, anomaly.Verdict{Node: n, Kind: anomaly.FailSlow, Level: anomaly.Alarm,
			Since: time.Unix(r.Low, 0).UTC(), Confidence: 0.95, Score: better / r.bits, Model: "link-rate-1",
			Evidence: map[string]float64{anomaly.LinkBits: r.bits, anomaly.LinkBits + "_before": better},
			Sentence: sentence})
	}
	return out
}

// count says how many forwarders report their rates, and of how many it fell.
func (l linkRates) count(t int64) (reporting, fell int) {
	for _, r := range l {
		if r.reports(t) {
			reporting++
			if r.fell() {
				fell++
			}
		}
	}
	return reporting, fell
}

func (r *linkRate) reports(t int64) bool {
	return t-r.at <= int64(fresh/time.Second) && t-r.since >= settled
}

func (r *linkRate) fell() bool { return r.bits < lowRate*r.Best }

// peers returns the higher rate, on more lanes, that nearly all other forwarders have; 0: they have not.
func (l linkRates) peers(n topology.NodeID, t int64) (rate float64, equal int) {
	type link struct{ bits, lanes float64 }
	of, others, own := map[link]int{}, 0, l[n]
	for id, r := range l {
		if id != n && r.reports(t) {
			of[link{r.bits, r.lanes}]++
			others++
		}
	}
	for k, n := range of {
		if n >= equalPeers && 3*n >= 2*others && k.lanes > own.lanes && own.bits < lowRate*k.bits {
			return k.bits, n
		}
	}
	return 0, 0
}

func gigabits(bits float64) string {
	const giga = 1e9
	return anomaly.Digits(bits/giga) + " Gb/s"
}
