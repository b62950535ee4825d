package watch

import (
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/clientslow"
	"fairway/anomaly/failslow"
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
