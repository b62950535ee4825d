package failslow

import (
	"math"
	"slices"
	"time"

	"fairway/collector/topology"
)

// canaryLayer gathers the canaries of the layer, so that one is judged against the others of its time.
type canaryLayer struct {
	recent [classes][]float64 // newest log residuals, a ring
	at     [classes]int
}

const recentCanaries = 64

// settle is called at the end of each second.
func (l *canaryLayer) settle(*Detector) {}

const idleLoad = 0.02 // of peak: below it a node counts as idle

// Probe takes what a canary saw.
func (d *Detector) Probe(now time.Time, p Probe) {
	n := d.nodes[p.Node]
	if n == nil {
		return
	}
	n.Probed = now.Unix()
	worst := math.Inf(1)
	for c := range classes {
		if !known(p.Took[c]) {
			continue
		}
		x := math.Log(p.Took[c])
		l := &d.canaries
		usual := n.Canary[c].Mean
		if len(l.recent[c]) >= 8 {
			s := slices.Sorted(slices.Values(l.recent[c]))
			usual = s[len(s)/2]
		} else if n.Canary[c].Count < 5 {
			usual = x
		}
		if len(l.recent[c]) < recentCanaries {
			l.recent[c] = append(l.recent[c], x)
		} else {
			l.recent[c][l.at[c]%recentCanaries] = x
			l.at[c]++
		}
		n.Canary[c].Count++
		n.Canary[c].Mean += (x - n.Canary[c].Mean) / min(n.Canary[c].Count, 100)
		if Class(c) != Meta {
			worst = min(worst, x-usual)
		}
	}
	if !math.IsInf(worst, 1) {
		n.Tests[canary].bet(d.now, clip(against(worst, 0.15*0.15, 0.3), -0.5, 3), d.limit()+3)
	}
}

// Due lists the nodes that want a canary now, the suspects first: those in doubt or alarm every
// SuspectProbeEvery, those without load every IdleProbeEvery. A node in the list is not listed again
// before its time, whether or not anything came of it. What came is told with Probe.
func (d *Detector) Due(now time.Time) []topology.NodeID {
	t := now.Unix()
	var suspects, idle []topology.NodeID
	for _, n := range d.order {
		if t-n.Seen > 5 || n.Queue > 0 {
			continue
		}
		doubt := n.Alarm || n.score(d.limit()) > 0.15
		switch {
		case doubt && t-n.Asked >= int64(d.set.SuspectProbeEvery.Seconds()):
			n.Asked = t
			suspects = append(suspects, n.ID)
		case !doubt && n.Load < idleLoad && t-n.Asked >= int64(d.set.IdleProbeEvery.Seconds()):
			n.Asked = t
			idle = append(idle, n.ID)
		}
	}
	return append(suspects, idle...)
}

func (n *node) score(limit float64) float64 {
	s := 0.0
	for i := range n.Tests {
		s = max(s, n.Tests[i].Log/limit)
	}
	return s
}
