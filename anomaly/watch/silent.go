package watch

import (
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/topology"
)

// silence watches for what needs no statistics: forwarders that no longer report what they serve, dead, hung or cut
// off; links that run at a part of their rate; nodes of which another one reports; and what explains that one is slow.
type silence struct {
	intruders func(since time.Time) []ingest.Intruder // nil: nobody knows
	last      map[topology.NodeID]int64               // newest second with service figures, Unix
	quiet     map[topology.NodeID]int64               // since when, of those that are or were silent
	order     []topology.NodeID
	rates     linkRates
	causes    causes
}

const (
	// silentAfter is longer than an agent or diod takes to restart, seconds.
	silentAfter = 15
	// afterSilence is how long a forwarder that reports again gets clean verdicts, seconds.
	afterSilence = 900
)

// served are the metrics of which a forwarder at work always reports one.
var served = []collector.Metric{collector.ReadOps, collector.WriteOps, collector.MetaOps, collector.ReadBytes,
	collector.WriteBytes}

// take notes that a forwarder reports what it serves. Frames of an agent that outlives it do not count.
func (s *silence) take(f *collector.Frame, now int64) {
	if !slices.ContainsFunc(served, func(m collector.Metric) bool { _, ok := f.Value(m); return ok }) {
		return
	}
	if s.last[f.Node] == 0 {
		s.order = append(s.order, f.Node)
		slices.Sort(s.order)
	}
	s.last[f.Node] = now
}

// verdicts accuse the forwarders that stopped reporting while most of the layer reports: otherwise the fault is the
// collector's. used counts the compute nodes that are mapped to a forwarder.
func (s *silence) verdicts(now time.Time, used func(topology.NodeID) int) (out []anomaly.Verdict) {
	t, fresh := now.Unix(), 0
	for _, at := range s.last {
		if t-at <= silentAfter/3 {
			fresh++
		}
	}
	most := fresh > 0 && 2*fresh >= len(s.last)
	for _, n := range s.order {
		at := s.last[n]
		since := s.quiet[n]
		switch {
		case t-at > silentAfter && most:
			if since == 0 {
				since = at
				s.quiet[n] = at
			}
			begun := time.Unix(since, 0).UTC()
			sentence := fmt.Sprintf("%s does not report, while %s", n,
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

// counted is a number with the words for one or for more.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
