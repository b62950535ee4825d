package failslow

import (
	"fmt"
	"math"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// explain writes the verdict's sentence and numbers.
func (d *Detector) explain(n *node, top int, v *anomaly.Verdict) {
	r, w, c := math.Exp(n.ratio[Read]), math.Exp(n.ratio[Write]), Class(top-readSlow)
	v.Evidence = map[string]float64{"read_ratio": r, "write_ratio": w, "score": v.Score}
	one := top == readSlow || top == writeSlow
	shown := max(n.ratio[Read], n.ratio[Write])
	if top == canary {
		shown = min(n.ratio[Read], n.ratio[Write])
	}
	if one || top == metaSlow {
		v.Class = c.String()
	}
	what := anomaly.ClassWords(v.Class)
	switch {
	case one && n.ratio[c] >= visible:
		v.Sentence = fmt.Sprintf("%s is %s slow at %s, for its load; %s is normal", n.ID,
			anomaly.Times(math.Exp(n.ratio[c])), what, anomaly.ClassWords((1 - c).String()))
	case one && n.through[c] >= visible:
		v.Sentence = fmt.Sprintf(
			"%s is slow at canary %ss, those of the other class take as long as through its peers", n.ID, v.Class)
	case top == metaSlow:
		v.Sentence = fmt.Sprintf("%s is slow at metadata, unlike its peers", n.ID)
	case top == capped:
		v.Sentence = fmt.Sprintf("%s moves only %.0f%% of a forwarder's peak while requests wait", n.ID,
			100*n.Habit.CapAt)
	// both classes, by its load, by canaries or by both: what the load shows says more
	case !one && shown >= visible:
		v.Sentence = fmt.Sprintf("%s is %s slow at reading and %s at writing, for its load", n.ID, anomaly.Times(r),
			anomaly.Times(w))
	case !one && (top == canary || max(n.through[Read], n.through[Write]) >= visible):
		v.Sentence = fmt.Sprintf("%s is slow at canaries: reads %s and writes %s as long as through its peers", n.ID,
			anomaly.Times(math.Exp(n.through[Read])), anomaly.Times(math.Exp(n.through[Write])))
	default:
		v.Sentence = fmt.Sprintf("%s was slow at %s, for its load; it is not now", n.ID, what)
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
