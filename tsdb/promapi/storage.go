// Package promapi answers PromQL over a store: Prometheus's own engine on a storage.Queryable, and
// the part of its HTTP API that Grafana and promtool use. A metric of a node is a series such as
//
//	fairway_read_bytes_per_second{node="fwd3", role="forwarder", rack="r2"}
//
// with one sample a second; a second that was not reported has none.
package promapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// queryable shows a store to PromQL.
type queryable struct {
	store tsdb.Store
	cfg   *Config
	room  *atomic.Int64 // the samples that the query has read so far; nil where none are
	// made is how many bytes of labels the query makes for a series whose own have at most longest; nil: none.
	made func(longest int64) int64
}

// A sample as it is read takes 16 bytes, one that the engine holds five times as much (measured).
const readForHeld = 5

// allowed is how many samples a query may read.
func (q *queryable) allowed() int64 { return readForHeld * int64(q.cfg.MaxSamples) }

func (q queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{queryable: q, from: mint, to: maxt + 1}, nil
}

// querier reads [from, to), Unix milliseconds.
type querier struct {
	queryable
	from, to int64
}

func (q *querier) Close() error { return nil }

// wanted is one series that matchers select.
type wanted struct {
	node   topology.NodeID
	labels labels.Labels
}

// group is the wanted series of one metric; MetricNone stands for the occupancy.
type group struct {
	metric collector.Metric
	series []wanted
}

// match lists the series that all matchers accept, by metric.
func (q *querier) match(ctx context.Context, matchers []*labels.Matcher) ([]group, error) {
	nodes, err := q.store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	named := func(name string) bool {
		return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool {
			return m.Name == model.MetricNameLabel &&
				!m.Matches(name)
		})
	}
	peaks, racks := q.cfg.peaks(), q.cfg.racks()
	nodes, err = accepted(ctx, nodes, matchers, racks)
	var out []group
	b := labels.NewScratchBuilder(4)
	for metric := range collector.Metric(collector.MetricCount) {
		name := occupancyName
		if metric != collector.MetricNone {
			name = metric.SeriesName()
		}
		if metric != collector.MetricNone && !metric.Known() || !named(name) {
			continue
		}
		g := group{metric: metric}
		for i := range nodes {
			n := &nodes[i]
			if metric == collector.MetricNone && peaks[n.Node] <= 0 || metric != collector.MetricNone &&
				!slices.Contains(n.Metrics, metric) {
				continue
			}
			b.Reset()
			b.Add(model.MetricNameLabel, name)
			b.Add("node", string(n.Node))
			if rack := racks[n.Node]; rack != "" {
				b.Add("rack", rack)
			}
			b.Add("role", n.Role.String())
			g.series = append(g.series, wanted{n.Node, b.Labels()})
		}
		if len(g.series) > 0 {
			out = append(out, g)
		}
	}
	return out, err
}

// lookEvery is after how many nodes it is looked whether the asker still waits: a regular expression may be slow.
const lookEvery = 64

// accepted are the nodes whose labels all matchers accept, but for the metric's name.
func accepted(ctx context.Context, nodes []tsdb.NodeInfo, matchers []*labels.Matcher,
	racks map[topology.NodeID]string) (out []tsdb.NodeInfo, err error) {
	for i := range nodes {
		if i%lookEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		n := &nodes[i]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool {
			switch m.Name {
			case model.MetricNameLabel:
				return false
			case "node":
				return !m.Matches(string(n.Node))
			case "rack":
				return !m.Matches(racks[n.Node])
			case "role":
				return !m.Matches(n.Role.String())
			}
			return !m.Matches("")
		}) {
			out = append(out, *n)
		}
	}
	return out, nil
}

// makes counts the labels that the query makes of its series among what it reads; an error says that they are too many.
func (q *querier) makes(groups []group) error {
	if q.made == nil || q.room == nil {
		return nil
	}
	longest, series := 0, int64(0)
	for _, g := range groups {
		series += int64(len(g.series))
		for _, w := range g.series {
			w.labels.Range(func(l labels.Label) { longest = max(longest, len(l.Value)) })
		}
	}
	const sample = 16 // bytes
	if q.room.Add(series*q.made(int64(longest))/sample) > q.allowed() {
		return fmt.Errorf("the query makes labels of %d bytes for each of %d series: choose fewer series or shorter "+
			"labels", q.made(int64(longest)), series)
	}
	return nil
}

// Select implements storage.Querier.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	from, to := q.from, q.to
	if hints != nil && !hints.DisableTrimming {
		from, to = max(from, hints.Start), min(to, hints.End+1)
	}
	groups, err := q.match(ctx, matchers)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	if err := q.makes(groups); err != nil {
		return storage.ErrSeriesSet(err)
	}
	if hints != nil && hints.Func == "series" { // the series endpoint needs no samples
		to = from
	}
	set := &seriesSet{at: -1}
	old, err := q.readTiers(ctx, groups, from, to, hints)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	set.warnings = old.warnings
	for _, g := range groups {
		if hints != nil && hints.Step > 0 && q.room != nil &&
			(hints.End-hints.Start)/hints.Step*int64(len(g.series)) > q.allowed() {
			return storage.ErrSeriesSet(fmt.Errorf("%d series of %s at %d steps are more than %d points: choose fewer "+
				"nodes or a longer step", len(g.series), g.metric, (hints.End-hints.Start)/hints.Step, q.allowed()))
		}
		if g.metric != collector.MetricNone && q.room != nil &&
			q.room.Load()+int64(len(g.series))*max(to-from, 0)/1000 > q.allowed() {
			return storage.ErrSeriesSet(
				fmt.Errorf("the query reads more than %d samples: choose fewer nodes or a shorter range",
					q.allowed()))
		}
		points, err := q.read(ctx, &g, from, to)
		if err != nil {
			return storage.ErrSeriesSet(err)
		}
		if q.room != nil {
			for _, p := range points {
				q.room.Add(int64(len(p)))
			}
		}
		for _, w := range g.series {
			p := samples{buckets: old.of(g.metric, w.node), seconds: points[w.node]}
			if p.Len() > 0 || hints != nil && hints.Func == "series" {
				set.series = append(set.series, &series{labels: w.labels, points: p})
			}
		}
	}
	slices.SortFunc(set.series, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	return set
}

// read fetches the samples of one metric.
func (q *querier) read(ctx context.Context, g *group, from, to int64) (map[topology.NodeID][]tsdb.Point, error) {
	if from >= to {
		return nil, nil
	}
	nodes := make([]topology.NodeID, len(g.series))
	for i, w := range g.series {
		nodes[i] = w.node
	}
	out := make(map[topology.NodeID][]tsdb.Point, len(nodes))
	if g.metric != collector.MetricNone {
		list, err := q.store.Select(ctx, tsdb.Query{Nodes: nodes, Metric: g.metric, FromMillis: from, ToMillis: to})
		for _, s := range list {
			out[s.Node] = append(out[s.Node], s.Points...)
		}
		return out, err
	}
	return out, q.readOccupancy(ctx, nodes, from, to, out)
}

// readOccupancy adds the samples of the occupancy to out. One is of the two minutes that end there; where only buckets
// of five minutes are left, five have the share of the ten minutes that they are in.
func (q *querier) readOccupancy(ctx context.Context, nodes []topology.NodeID, from, to int64,
	out map[topology.NodeID][]tsdb.Point) error {
	const step, ofTiers = occupancyStepSeconds * 1000, 2 * coarsestMillis
	after, to := -tsdb.FloorDiv(-from, step)*step-step, tsdb.FloorDiv(to-1, step)*step
	add := func(to, bucket int64) error {
		list, err := q.store.Occupancy(ctx, tsdb.OccupancyQuery{Nodes: nodes, BucketMillis: bucket,
			FromMillis: tsdb.FloorDiv(after, bucket) * bucket, ToMillis: -tsdb.FloorDiv(-to, bucket) * bucket,
			PeakBytesPerSec: q.cfg.peaks()})
		for _, o := range list {
			for _, b := range o.Buckets {
				for at := b.TimeMillis + step; at <= b.TimeMillis+bucket; at += step {
					if at > after && at <= to {
						out[o.Node] = append(out[o.Node], tsdb.Point{TimeMillis: at, Value: b.Share()})
					}
				}
			}
		}
		return err
	}
	if t, ok := q.store.(tiered); ok {
		parts, err := t.Tiers(after, to)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if end := min(to, tsdb.FloorDiv(p.ToMillis, step)*step); step%p.BucketMillis != 0 && after < end {
				if err := add(end, ofTiers); err != nil {
					return err
				}
				after = end
			}
		}
	}
	return add(to, step)
}

// LabelValues implements storage.Querier.
func (q *querier) LabelValues(ctx context.Context, name string, _ *storage.LabelHints,
	matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	groups, err := q.reported(ctx, matchers)
	found := map[string]bool{}
	for _, g := range groups {
		for _, w := range g.series {
			if v := w.labels.Get(name); v != "" {
				found[v] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil, err
}

// LabelNames implements storage.Querier.
func (q *querier) LabelNames(ctx context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	groups, err := q.reported(ctx, matchers)
	found := map[string]bool{}
	for _, g := range groups {
		for _, w := range g.series {
			w.labels.Range(func(l labels.Label) { found[l.Name] = true })
		}
	}
	return slices.Sorted(maps.Keys(found)), nil, err
}

type seriesSet struct {
	series   []*series
	at       int
	warnings annotations.Annotations
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return s.warnings }

type series struct {
	labels labels.Labels
	points samples
}

func (s *series) Labels() labels.Labels { return s.labels }

func (s *series) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	if it, ok := old.(interface{ Reset(storage.Samples) }); ok {
		it.Reset(s.points)
		return old
	}
	return storage.NewListSeriesIterator(s.points)
}

// samples shows buckets and then seconds to Prometheus's iterator, without copying them.
type samples struct {
	buckets buckets
	seconds []tsdb.Point
}

func (s samples) Len() int { return s.buckets.len() + len(s.seconds) }

func (s samples) Get(i int) chunks.Sample {
	if n := s.buckets.len(); i >= n {
		return (*sample)(&s.seconds[i-n])
	}
	p := s.buckets.at(i)
	return (*sample)(&p)
}

// sample is a point as Prometheus names it; there are no histograms.
type sample tsdb.Point

func (s *sample) T() int64                      { return s.TimeMillis }
func (s *sample) ST() int64                     { return 0 }
func (s *sample) F() float64                    { return s.Value }
func (s *sample) H() *histogram.Histogram       { return nil }
func (s *sample) FH() *histogram.FloatHistogram { return nil }
func (s *sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s *sample) Copy() chunks.Sample           { c := *s; return &c }
