package watch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

const (
	// frozenSpan is the part of the series that is kept with a change; at seven metrics it takes about
	// 20 kB of the journal.
	frozenSpan = 2 * time.Minute
	// peersSpan is what the peers' value is averaged over.
	peersSpan = 10 * time.Second
	// evidenceWithin is the deadline for everything that is kept with the changes of one second: the
	// next second is judged in time.
	evidenceWithin = time.Second
	// mostReading bounds the reads of all metrics left behind in a store that does not answer.
	mostReading = 4
)

// frozenMetrics are those in which a fail-slow forwarder shows.
var frozenMetrics = collector.ShownAs(topology.Forwarder, collector.Evidence)

// Series reads stored seconds.
type Series interface {
	Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error)
}

// evidence reads what is kept with a change.
type evidence struct {
	store   Series
	log     *slog.Logger
	reading atomic.Int32 // metrics
}

// read returns what each of the nodes did before now, and the median of the other forwarders. Metrics that cannot
// be read within the deadline are listed as missing: a change is recorded with what is known.
func (e *evidence) read(ctx context.Context, now time.Time, nodes []topology.NodeID,
	forwarders []topology.ForwarderID) map[topology.NodeID]*anomaly.Frozen {
	out := map[topology.NodeID]*anomaly.Frozen{}
	for _, n := range nodes {
		if n != anomaly.Everywhere {
			out[n] = &anomaly.Frozen{Series: map[string][]tsdb.Point{}, Peers: map[string]float64{}}
		}
	}
	if e.store == nil || len(out) == 0 {
		return nil
	}
	nodes = slices.Sorted(maps.Keys(out))
	all := make([]topology.NodeID, len(forwarders))
	for i, f := range forwarders {
		all[i] = f.Node()
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceWithin)
	defer cancel()
	came := make(chan metricRead, len(frozenMetrics))
	for _, m := range frozenMetrics {
		if int(e.reading.Add(1)) > mostReading*len(frozenMetrics) {
			e.reading.Add(-1)
			came <- metricRead{metric: m, err: errors.New("earlier reads have not ended")}
			continue
		}
		go func() { // a store may answer after the deadline, or never
			defer e.reading.Add(-1)
			came <- readMetric(ctx, e.store, m, now, nodes, all)
		}()
	}
	missing, err := slices.Clone(frozenMetrics), error(nil)
	for range frozenMetrics {
		select {
		case got := <-came:
			if got.err != nil {
				err = got.err
				continue
			}
			got.put(out)
			missing = slices.DeleteFunc(missing, func(m collector.Metric) bool { return m == got.metric })
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if len(missing) > 0 {
		e.log.Warn("findings change with incomplete evidence: the store did not answer", "nodes", nodes,
			"missing_metrics", len(missing), "err", err)
	}
	for _, f := range out {
		for _, m := range missing {
			f.Missing = append(f.Missing, m.String())
		}
	}
	return out
}

// metricRead is what was read of one metric.
type metricRead struct {
	metric     collector.Metric
	own, peers []tsdb.Series
	err        error
}

func readMetric(ctx context.Context, store Series, m collector.Metric, now time.Time,
	nodes, forwarders []topology.NodeID) metricRead {
	got := metricRead{metric: m}
	q := tsdb.Query{Nodes: nodes, Metric: m, FromMillis: now.Add(-frozenSpan).UnixMilli(),
		ToMillis: now.UnixMilli(), StepMillis: 1000}
	if got.own, got.err = store.Select(ctx, q); got.err == nil {
		q.Nodes, q.FromMillis = forwarders, now.Add(-peersSpan).UnixMilli()
		got.peers, got.err = store.Select(ctx, q)
	}
	return got
}

// put gives each node its own series and the median of the others' means.
func (g *metricRead) put(out map[topology.NodeID]*anomaly.Frozen) {
	name := g.metric.String()
	for _, s := range g.own {
		if f := out[s.Node]; f != nil {
			f.Series[name] = append(f.Series[name], s.Points...)
		}
	}
	for n, f := range out {
		var values []float64
		for _, s := range g.peers {
			if sum := 0.0; s.Node != n && len(s.Points) > 0 {
				for _, p := range s.Points {
					sum += p.Value
				}
				values = append(values, sum/float64(len(s.Points)))
			}
		}
		if len(values) > 0 {
			f.Peers[name] = anomaly.Median(values)
		}
	}
}
