package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
)

// Rules of forwarders that answer nothing.
const (
	// hangAge is the age of a request, seconds, that no queue explains while others are answered.
	hangAge = 4.0
	// hangNodes is how many of a forwarder's compute nodes must wait so long: one may be its own trouble.
	hangNodes = 2
	// hangSince is for how long it hangs at most, in words: what a request waited before then adds nothing.
	hangSince = time.Hour
	// answeredElsewhere is how many other forwarders must have answered in the second: else it is what is behind all.
	answeredElsewhere = 2
)

// waits are what the compute nodes of one forwarder wait for, of those that list their outstanding requests, and what
// it answers all of them: two nodes' word is not enough against a forwarder that others get answers from.
type waits struct {
	nodes, stuck int     // that wait for something, and for something older than hangAge
	oldest       float64 // seconds
	ended        float64 // operations in the second, of all its compute nodes
}

func (w *waits) take(f *collector.Frame) {
	for _, m := range classOf {
		w.ended += max(0, valueOr(f, m.ops, 0))
	}
	age, known := f.Value(collector.RequestAge)
	if !known {
		return
	}
	if age > 0 {
		w.nodes++
	}
	if age >= hangAge {
		w.stuck++
	}
	w.oldest = max(w.oldest, age)
}

// deadSilence is for how long neither its clients nor the daemon hear anything of a node that is dead, s.
const deadSilence = 20

// bury makes those dead of which nothing answers, neither their service nor their agent.
func (s *silence) bury(now time.Time, hung []anomaly.Verdict) []anomaly.Verdict {
	for i := range hung {
		v := &hung[i]
		if a, known := s.agents[v.Node]; known && now.Unix()-a.at >= deadSilence && v.Score >= deadSilence {
			v.Condition = anomaly.Dead
			v.Sentence += "; its agent does not answer either"
		}
	}
	return hung
}

// mute reports whether a node's agent, which reported before, has been silent for as long as a request that no queue
// explains.
func (s *silence) mute(now time.Time, n topology.NodeID) bool {
	a, known := s.agents[n]
	return known && float64(now.Unix()-a.at) >= hangAge
}

// hangs accuses forwarders that answer none of their compute nodes while others answer theirs. No statistics are
// needed: the age of a request is a fact. Against one whose agent says nothing either, one node's word and one other
// forwarder that answers are enough.
func (c *clients) hangs(now time.Time, mute func(time.Time, topology.NodeID) bool) (out []anomaly.Verdict) {
	answered := 0
	for _, sums := range c.of {
		if w := &sums.waits; w.ended > 0 && w.stuck == 0 {
			answered++
		}
	}
	for f, sums := range c.of {
		w := &sums.waits
		nodes, elsewhere := hangNodes, answeredElsewhere
		if mute(now, f.Node()) {
			nodes, elsewhere = 1, 1
		}
		if answered < elsewhere || w.stuck < nodes || 2*w.stuck < w.nodes || w.ended > 0 {
			continue
		}
		out = append(out, anomaly.Verdict{Node: f.Node(), Kind: anomaly.FailSlow, Level: anomaly.Alarm,
			Since:      now.Add(-time.Duration(min(w.oldest, hangSince.Seconds()) * float64(time.Second))).UTC(),
			Confidence: 0.95, Score: w.oldest, Model: "hang-1", Condition: anomaly.Hung,
			Evidence: map[string]float64{"request_age": w.oldest, "nodes_waiting": float64(w.stuck)},
			Sentence: fmt.Sprintf("%s answers nothing: %s %.0f s and longer for it, while %s", f,
				counted(w.stuck, "compute node waits", "compute nodes wait"), hangAge,
				counted(answered, "other forwarder answers", "other forwarders answer"))})
	}
	slices.SortFunc(out, func(a, b anomaly.Verdict) int { return cmp.Compare(a.Node, b.Node) })
	return out
}
