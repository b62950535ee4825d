package judge

import (
	"context"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb"
)

// frozenSpan is the part of the series that is kept with a change; at seven metrics it takes about
// 20 kB of the journal.
const frozenSpan = 2 * time.Minute

// frozenMetrics are what a fail-slow forwarder shows itself in.
var frozenMetrics = collector.ShownAs(topology.Forwarder, collector.Evidence)

// freeze keeps what a node did before a change, and the middle of the others at that instant. What
// cannot be read is left out: a change is recorded with what is known.
func (j *Judge) freeze(ctx context.Context, node topology.NodeID, s *remap.Situation, now time.Time) *anomaly.Frozen {
	if j.cfg.Store == nil || node == anomaly.Everywhere {
		return nil
	}
	f := &anomaly.Frozen{Series: map[string][]anomaly.Value{}, Peers: map[string]float64{}}
	var peers []topology.NodeID
	for _, f := range s.Index.Forwarders() {
		if f.Node() != node {
			peers = append(peers, f.Node())
		}
	}
	for _, m := range frozenMetrics {
		q := tsdb.Query{Nodes: []topology.NodeID{node}, Metric: m, FromMillis: now.Add(-frozenSpan).UnixMilli(),
			ToMillis: now.UnixMilli(), StepMillis: 1000}
		series, err := j.cfg.Store.Select(ctx, q)
		if err != nil {
			j.cfg.Log.Warn("the evidence of a finding is kept without a series", "node", node, "metric", m, "err", err)
			continue
		}
		for _, one := range series {
			for _, p := range one.Points {
				f.Series[m.String()] = append(f.Series[m.String()], anomaly.Value(p))
			}
		}
		q.Nodes, q.FromMillis, q.StepMillis, q.Agg = peers, now.Add(-10*time.Second).UnixMilli(), 60_000, tsdb.AggMean
		if series, err = j.cfg.Store.Select(ctx, q); err != nil {
			continue
		}
		var values []float64
		for _, one := range series {
			for _, p := range one.Points {
				values = append(values, p.Value)
			}
		}
		if len(values) > 0 {
			slices.Sort(values)
			f.Peers[m.String()] = values[len(values)/2]
		}
	}
	return f
}
