package failslow

import (
	"fmt"
	"math"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// explain writes the verdict's sentence and numbers.
func (d *Detector) explain(n *node, top int, v *anomaly.Verdict) {
	r, w := math.Exp(n.ratio[Read]), math.Exp(n.ratio[Write])
	v.Evidence = map[string]float64{"read_ratio": r, "write_ratio": w, "score": v.Score}
	if c := Class(top - readSlow); (top == readSlow || top == writeSlow) && n.ratio[c] < visible {
		v.Class = c.String()
		v.Sentence = fmt.Sprintf("%s was slow at %s, for its load; it is not now", n.ID,
			[]string{"reading", "writing"}[c])
		if n.through[c] >= visible {
			v.Sentence = fmt.Sprintf(
				"%s is slow at canary %ss, those of the other class take as long as through its peers", n.ID, v.Class)
		}
		return
	}
	switch top {
	case readSlow:
		v.Class = Read.String()
		v.Sentence = fmt.Sprintf("%s is %s slow at reading, for its load; writing is normal", n.ID, anomaly.Times(r))
	case writeSlow:
		v.Class = Write.String()
		v.Sentence = fmt.Sprintf("%s is %s slow at writing, for its load; reading is normal", n.ID, anomaly.Times(w))
	case metaSlow:
		v.Class = Meta.String()
		v.Sentence = fmt.Sprintf("%s is slow at metadata, unlike its peers", n.ID)
	case capped:
		v.Sentence = fmt.Sprintf("%s moves only %.0f%% of a forwarder's peak while requests wait", n.ID,
			100*n.Habit.CapAt)
	default: // both classes, by its load, by canaries or by both: what the load shows says more
		shown := max(n.ratio[Read], n.ratio[Write])
		if top == canary {
			shown = min(n.ratio[Read], n.ratio[Write])
		}
		if shown < visible {
			v.Sentence = fmt.Sprintf(
				"%s is slow at canaries: reads %s and writes %s as long as through its peers", n.ID,
				anomaly.Times(math.Exp(n.through[Read])), anomaly.Times(math.Exp(n.through[Write])))
			if top != canary && max(n.through[Read], n.through[Write]) < visible {
				v.Sentence = fmt.Sprintf("%s was slow at reading and writing, for its load; it is not now", n.ID)
			}
			return
		}
		v.Sentence = fmt.Sprintf("%s is %s slow at reading and %s at writing, for its load", n.ID, anomaly.Times(r),
			anomaly.Times(w))
	}
}

// Ratio is how many times as long as on its peers at the same load operations of each class of a node took lately; 0
// where that is not known, ok is false for a node that was never seen.
func (d *Detector) Ratio(id topology.NodeID) (ratio [classes]float64, ok bool) {
	n := d.nodes.Known(id)
	if n == nil {
		return ratio, false
	}
	for c := range Meta {
		ratio[c] = math.Exp(n.ratio[c])
	}
	return ratio, true
}
