package promapi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// tiered is a store that keeps buckets of what it no longer keeps seconds of.
type tiered interface {
	// Tiers lists the stretches of buckets that touch a range, oldest first.
	Tiers(fromMillis, toMillis int64) ([]tsdb.Tier, error)
}

// buckets are a series of which the seconds are gone. Each bucket answers as the seconds that it was made of, all
// with one value, so that an expression finds as many samples, at the same resolution, as before.
type buckets struct{ list []bucket }

// bucket is count seconds of the millis that begin at startMillis.
type bucket struct {
	startMillis, millis int64
	count               int
	value               float64
	before              int // seconds in the buckets before it
}

// second is the time of the bucket's i-th second; missing ones are spread over it.
func (b *bucket) second(i int) int64 {
	return b.startMillis + int64(i)*(b.millis/1000)/int64(b.count)*1000
}

func (b *buckets) len() int {
	if len(b.list) == 0 {
		return 0
	}
	last := &b.list[len(b.list)-1]
	return last.before + last.count
}

func (b *buckets) at(i int) tsdb.Point {
	k := sort.Search(len(b.list), func(k int) bool { return b.list[k].before > i }) - 1
	return tsdb.Point{TimeMillis: b.list[k].second(i - b.list[k].before), Value: b.list[k].value}
}

// oldData are the series of a query of which only buckets are left.
type oldData struct {
	series   map[collector.Metric]map[topology.NodeID]*buckets
	warnings annotations.Annotations
}

func (o *oldData) of(m collector.Metric, node topology.NodeID) buckets {
	if b := o.series[m][node]; b != nil {
		return *b
	}
	return buckets{}
}

// exact are the functions over a range that buckets answer as their seconds would, each with the figure that its
// buckets are read by.
var exact = map[string]tsdb.Agg{"max_over_time": tsdb.AggMax, "min_over_time": tsdb.AggMin,
	"sum_over_time": tsdb.AggMean, "avg_over_time": tsdb.AggMean, "count_over_time": tsdb.AggMean,
	"last_over_time": tsdb.AggLast, "present_over_time": tsdb.AggMean, "absent_over_time": tsdb.AggMean}

// readTiers fetches what is left as buckets. Its annotations say where means stand in for seconds.
func (q *querier) readTiers(ctx context.Context, groups []group, from, to int64,
	hints *storage.SelectHints) (out oldData, err error) {
	t, ok := q.store.(tiered)
	if !ok || from >= to {
		return out, nil
	}
	parts, err := t.Tiers(from, to)
	if err != nil || len(parts) == 0 {
		return out, err
	}
	agg, over := tsdb.AggMean, false
	if hints != nil && hints.Range > 0 {
		if agg, over = exact[hints.Func]; !over {
			agg = tsdb.AggMean
		}
	}
	out.series = map[collector.Metric]map[topology.NodeID]*buckets{}
	for _, g := range groups {
		if g.metric == collector.MetricNone {
			continue // read has it, of columns of its own
		}
		nodes := make([]topology.NodeID, len(g.series))
		for i, w := range g.series {
			nodes[i] = w.node
		}
		of := map[topology.NodeID]*buckets{}
		for _, p := range parts {
			if err := q.readTier(ctx, p, g.metric, nodes, agg, of); err != nil {
				return out, err
			}
		}
		out.series[g.metric] = of
	}
	coarsest, kept := parts[0].BucketMillis/1000, timeOf(parts[len(parts)-1].ToMillis)
	switch {
	case hints == nil || over && !cuts(hints, parts):
	case over:
		out.warnings.Add(fmt.Errorf("%w: before %s only buckets of up to %d s are kept, and the range begins or ends "+
			"inside of one", annotations.PromQLInfo, kept, coarsest))
	case hints.Range > 0:
		out.warnings.Add(fmt.Errorf("%w: before %s only means of up to %d s are kept: %s is of these, not of seconds",
			annotations.PromQLWarning, kept, coarsest, hints.Func))
	default:
		out.warnings.Add(fmt.Errorf("%w: before %s only means of up to %d s are kept", annotations.PromQLInfo, kept,
			coarsest))
	}
	return out, nil
}

// cuts reports whether a range of a query may begin or end inside a bucket: the bucket's figures are then not those of
// the seconds that are in the range.
func cuts(h *storage.SelectHints, parts []tsdb.Tier) bool {
	first, next := -tsdb.FloorDiv(-h.Start, 1000)*1000, tsdb.FloorDiv(h.End, 1000)*1000+1000
	once := h.End-h.Start < h.Range
	for _, p := range parts {
		b := p.BucketMillis
		if first > p.FromMillis && first%b != 0 || once && next < p.ToMillis && next%b != 0 ||
			!once && (h.Range%b != 0 || h.Step%b != 0) {
			return true
		}
	}
	return false
}

// readTier appends one stretch to the nodes' buckets.
func (q *querier) readTier(ctx context.Context, p tsdb.Tier, m collector.Metric, nodes []topology.NodeID,
	agg tsdb.Agg, of map[topology.NodeID]*buckets) error {
	query := tsdb.Query{Nodes: nodes, Metric: m, Agg: tsdb.AggCount, StepMillis: p.BucketMillis,
		FromMillis: p.FromMillis, ToMillis: p.ToMillis}
	counts, err := q.store.Select(ctx, query)
	if err != nil {
		return err
	}
	query.Agg = agg
	values, err := q.store.Select(ctx, query)
	if err != nil {
		return err
	}
	for i := range min(len(counts), len(values)) { // of the same nodes, with the same buckets
		b := of[values[i].Node]
		if b == nil {
			b = &buckets{}
			of[values[i].Node] = b
		}
		b.list = slices.Grow(b.list, len(values[i].Points))
		for k, v := range values[i].Points {
			next := bucket{startMillis: v.TimeMillis, millis: p.BucketMillis, value: v.Value,
				count: int(counts[i].Points[k].Value)}
			next.before = b.len()
			b.list = append(b.list, next)
		}
	}
	return nil
}

// coarsestMillis is the length of the longest buckets that a store keeps: whether a series has samples in a range is
// answered to this.
const coarsestMillis = 300_000

// reported lists the series that all matchers accept and that have samples in the querier's range.
func (q *querier) reported(ctx context.Context, matchers []*labels.Matcher) ([]group, error) {
	groups, err := q.match(ctx, matchers)
	if err != nil || q.from == 0 && q.to == math.MaxInt64 {
		return groups, err
	}
	const hour, end = 3_600_000, int64(1) << 60
	from, to := tsdb.FloorDiv(q.from, coarsestMillis)*coarsestMillis, end
	newest := from
	if q.to < end {
		to = -tsdb.FloorDiv(-q.to, coarsestMillis) * coarsestMillis
		newest = max(from, to-hour) // most series that are in the range are in its newest hour
	}
	for i := range groups {
		g := &groups[i]
		found := map[topology.NodeID]bool{}
		for _, part := range [][2]int64{{newest, to}, {from, newest}} {
			if err := q.find(ctx, g, part[0], part[1], found); err != nil {
				return nil, err
			}
		}
		g.series = slices.DeleteFunc(g.series, func(w wanted) bool { return !found[w.node] })
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.series) == 0 }), nil
}

// find adds the nodes of a group that have a sample in a range to found, asking only for those that are not in it.
func (q *querier) find(ctx context.Context, g *group, from, to int64, found map[topology.NodeID]bool) error {
	var nodes []topology.NodeID
	for _, w := range g.series {
		if !found[w.node] {
			nodes = append(nodes, w.node)
		}
	}
	if len(nodes) == 0 || from >= to {
		return nil
	}
	metric := g.metric
	if metric == collector.MetricNone { // the occupancy is of the bytes
		metric = collector.ReadBytes
	}
	list, err := q.store.Select(ctx, tsdb.Query{Nodes: nodes, Metric: metric, Agg: tsdb.AggCount,
		StepMillis: -tsdb.FloorDiv(-(to-from), coarsestMillis) * coarsestMillis, FromMillis: from, ToMillis: to})
	for _, s := range list {
		found[s.Node] = true
	}
	return err
}

func timeOf(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339) }
