package watch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
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
	// mostReading bounds the reads left behind in a store that does not answer.
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
	reading atomic.Int32
}

// read returns what each of the nodes did before now, and the median of the other forwarders. Metrics that cannot
// be read within the deadline are listed as missing: a change is recorded with what is known.
func (e *evidence) read(ctx context.Context, now time.Time, nodes []topology.NodeID,
	forwarders []topology.ForwarderID) map[topology.NodeID]*anomaly.Frozen {
	out := map[topology.NodeID]*anomaly.Frozen{}
	for _, n := range nodes {
		if n != anomaly.Everywhere {
			out[n] = &anomaly.Frozen{Series: map[string][]anomaly.Value{}, Peers: map[string]float64{}}
		}
	}
	if e.store == nil || len(out) == 0 {
		return nil
	}
	r := &evidenceRead{store: e.store, now: now}
	for n := range out {
		r.nodes = append(r.nodes, n)
	}
	for _, f := range forwarders {
		r.forwarders = append(r.forwarders, f.Node())
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceWithin)
	defer cancel()
	missing, err := slices.Clone(frozenMetrics), context.DeadlineExceeded
	if e.reading.Add(1) > mostReading {
		e.reading.Add(-1)
	} else {
		missing, err = r.all(ctx, out, func() { e.reading.Add(-1) })
	}
	if len(missing) > 0 {
		e.log.Warn("findings change with incomplete evidence: the store did not answer", "nodes", r.nodes,
			"missing_metrics", len(missing), "err", err)
	}
	for _, f := range out {
		for _, m := range missing {
			f.Missing = append(f.Missing, m.String())
		}
	}
	return out
}

// evidenceRead is one read of the evidence about some nodes.
type evidenceRead struct {
	store      Series
	now        time.Time
	nodes      []topology.NodeID
	forwarders []topology.NodeID
}

// metricRead is what was read of one metric.
type metricRead struct {
	metric collector.Metric
	own    []tsdb.Series
	peers  map[topology.NodeID]float64 // mean over peersSpan
	err    error
}

// all reads every metric at the same time and gives out what comes before ctx ends. ended is called once no read is
// left, which may be later.
func (r *evidenceRead) all(ctx context.Context, out map[topology.NodeID]*anomaly.Frozen,
	ended func()) (missing []collector.Metric, why error) {
	came := make(chan metricRead, len(frozenMetrics))
	var reads sync.WaitGroup
	for _, m := range frozenMetrics {
		reads.Go(func() { came <- r.one(ctx, m) })
	}
	go func() {
		reads.Wait()
		ended()
	}()
	missing = slices.Clone(frozenMetrics)
	for range frozenMetrics {
		select {
		case got := <-came:
			if got.err != nil {
				why = got.err
				continue
			}
			got.put(out)
			missing = slices.DeleteFunc(missing, func(m collector.Metric) bool { return m == got.metric })
		case <-ctx.Done():
			return missing, ctx.Err()
		}
	}
	return missing, why
}

func (r *evidenceRead) one(ctx context.Context, m collector.Metric) metricRead {
	got := metricRead{metric: m, peers: map[topology.NodeID]float64{}}
	q := tsdb.Query{Nodes: r.nodes, Metric: m, FromMillis: r.now.Add(-frozenSpan).UnixMilli(),
		ToMillis: r.now.UnixMilli(), StepMillis: 1000}
	if got.own, got.err = r.store.Select(ctx, q); got.err != nil {
		return got
	}
	q.Nodes, q.FromMillis = r.forwarders, r.now.Add(-peersSpan).UnixMilli()
	var peers []tsdb.Series
	peers, got.err = r.store.Select(ctx, q)
	for _, s := range peers {
		sum := 0.0
		for _, p := range s.Points {
			sum += p.Value
		}
		if len(s.Points) > 0 {
			got.peers[s.Node] = sum / float64(len(s.Points))
		}
	}
	return got
}

// put gives each node its own series and the median of the others.
func (g *metricRead) put(out map[topology.NodeID]*anomaly.Frozen) {
	name := g.metric.String()
	for _, s := range g.own {
		f := out[s.Node]
		if f == nil {
			continue
		}
		for _, p := range s.Points {
			f.Series[name] = append(f.Series[name], anomaly.Value(p))
		}
	}
	for n, f := range out {
		values := make([]float64, 0, len(g.peers))
		for peer, v := range g.peers {
			if peer != n {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			slices.Sort(values)
			f.Peers[name] = values[len(values)/2]
		}
	}
}
