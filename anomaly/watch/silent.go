package watch

import (
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
)

// silence watches for forwarders that no longer tell what they serve: dead, hung or cut off.
type silence struct {
	heard map[topology.NodeID]int64 // newest second with service figures, Unix
	quiet map[topology.NodeID]int64 // since when, of those that are or were silent
	order []topology.NodeID
}

const (
	// silentAfter is longer than a restart of an agent or of a diod takes, seconds.
	silentAfter = 15
	// afterSilence is how long a forwarder that is heard again is said to be well, seconds.
	afterSilence = 900
)

// served are the metrics of which a forwarder at work always tells one.
var served = []collector.Metric{collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.ReadBytes,
	collector.WriteBytes}

// take notes that a forwarder was heard. Its agent may live on without it: that is not being heard.
func (s *silence) take(f *collector.Frame, now int64) {
	if !slices.ContainsFunc(served, func(m collector.Metric) bool { _, ok := f.Value(m); return ok }) {
		return
	}
	if s.heard[f.Node] == 0 {
		s.order = append(s.order, f.Node)
		slices.Sort(s.order)
	}
	s.heard[f.Node] = now
}

// verdicts accuse those that have fallen silent while most of the layer is heard: else it is the collector
// that hears nothing. used says how many compute nodes are mapped to a forwarder.
func (s *silence) verdicts(now time.Time, used func(topology.NodeID) int) (out []anomaly.Verdict) {
	t, fresh := now.Unix(), 0
	for _, at := range s.heard {
		if t-at <= silentAfter/3 {
			fresh++
		}
	}
	most := fresh > 0 && 2*fresh >= len(s.heard)
	for _, n := range s.order {
		at := s.heard[n]
		since := s.quiet[n]
		switch {
		case t-at > silentAfter && most:
			if since == 0 {
				since = at
				s.quiet[n] = at
			}
			begun := time.Unix(since, 0).UTC()
			sentence := fmt.Sprintf("%s has not told its collector anything since %s, while %s", n,
				begun.Format("15:04:05"),
				counted(fresh, "other forwarder does", "other forwarders do"))
			if clients := used(n); clients > 0 {
				sentence += "; " + counted(clients, "compute node is mapped to it", "compute nodes are mapped to it")
			}
			out = append(out, anomaly.Verdict{Node: n, Kind: anomaly.ForwarderSilent, Level: anomaly.Alarm,
				Since: begun, Confidence: 0.95,
				Score: float64(t - at), Model: "silence-1",
				Evidence: map[string]float64{"silent_seconds": float64(t - at)}, Sentence: sentence})
		case since != 0 && t == at:
			out = append(out, anomaly.Verdict{Node: n, Kind: anomaly.ForwarderSilent, Level: anomaly.Clean})
		}
		if since != 0 && t-since > afterSilence && t == at {
			delete(s.quiet, n)
		}
	}
	return out
}

// counted is a number of things and what is said of them.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
