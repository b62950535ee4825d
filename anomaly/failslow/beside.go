package failslow

import "math"

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
		if math.IsNaN(p.Took[c]) || at.Usual[c].Count < judgeAfter {
			return x, false
		}
		x[c] = longer(p.Took[c], at.Usual[c].Mean, at.share(c, w.off[c])) - n.habit(c)
	}
	return x, true
}

func (b *beside) note(n *node, now int64, ref *reference, over [classes]float64) {
	b.ring[b.next] = passed{now, n.index + 1, over, ref.pools, ref.common[Write]}
	b.next = (b.next + 1) % besideMost
}

// of is by how much the newest canaries through other nodes were slower than usual: the median, of two the slower one.
// Only those count that met a back end as slow as it is now.
func (b *beside) of(n *node, now int64, ref *reference) (level [classes]float64, ok bool) {
	var all [classes][]float64
	seen := map[int]bool{0: true, n.index + 1: true}
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
