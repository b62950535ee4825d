package prometheus

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/remote"
)

// selector matches some nodes' series of one metric.
func selector(nodes []topology.NodeID, m collector.Metric) string {
	words := make([]string, len(nodes))
	for i, n := range nodes {
		words[i] = regexp.QuoteMeta(string(n))
	}
	return fmt.Sprintf("%s{node=~%s}", m.SeriesName(), strconv.Quote(strings.Join(words, "|")))
}

// matrix reads an answer of several series, or says why it has not come.
func (s *Store) matrix(answer model.Value, warnings v1.Warnings, _ v1.Infos, err error) (model.Matrix, error) {
	if err != nil {
		return nil, fmt.Errorf("ask the store's server: %w", err)
	}
	if len(warnings) > 0 {
		s.log.Warn("the store's server may not show all that it has", "why", strings.Join(warnings, "; "))
	}
	m, ok := answer.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("ask the store's server: it answers a %s, want a matrix", answer.Type())
	}
	return m, nil
}

// raw implements remote.Raw.
func (s *Store) raw(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis, toMillis int64,
	put func(topology.NodeID, int64, float64)) error {
	// A range ends with its instant; the samples of a second lie in all its milliseconds.
	list, err := s.matrix(s.api.Query(ctx, fmt.Sprintf("%s[%dms]", selector(nodes, m), toMillis-fromMillis),
		time.UnixMilli(toMillis-1)))
	if err != nil {
		return err
	}
	byNode := map[model.LabelValue][]model.SamplePair{}
	for _, v := range list {
		node := v.Metric["node"]
		had := byNode[node]
		byNode[node] = append(had, v.Values...)
		if len(had) > 0 { // a node whose role changed has two series
			slices.SortStableFunc(byNode[node],
				func(a, b model.SamplePair) int { return int(a.Timestamp - b.Timestamp) })
		}
	}
	for node, samples := range byNode {
		for _, p := range samples {
			put(topology.NodeID(node), int64(p.Timestamp)/1000, float64(p.Value))
		}
	}
	return nil
}

const (
	day = 24 * time.Hour
	// windowsPerAsk is below what servers answer of one series (Prometheus: 11,000 points).
	windowsPerAsk = 10_000
)

// span implements remote.Span.
func (s *Store) span(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis,
	toMillis int64) (first, last int64, ok bool, err error) {
	// VictoriaMetrics looks some way before a range, and answers nothing where that is before 1970.
	from, to := time.UnixMilli(max(fromMillis, 2*day.Milliseconds())), time.UnixMilli(toMillis)
	if latest := time.Now().Add(maxAhead); to.After(latest) {
		to = latest
	}
	list := selector(nodes, m)
	begin, end, err := s.windows(ctx, list, from, to, day)
	if err != nil || end.IsZero() {
		return 0, 0, false, err
	}
	begin, _, err = s.windows(ctx, list, begin, begin.Add(day), time.Hour)
	if err == nil {
		_, end, err = s.windows(ctx, list, end.Add(-day), end, time.Hour)
	}
	return begin.UnixMilli(), end.UnixMilli() - 1, !begin.IsZero() && !end.IsZero(), err
}

// windows finds the first and the last of the windows of some width that have a sample: when the first begins and the
// last ends.
func (s *Store) windows(ctx context.Context, selector string, from, to time.Time, width time.Duration) (begin,
	end time.Time, err error) {
	count := fmt.Sprintf("count(count_over_time(%s[%dms]))", selector, width.Milliseconds())
	for at := from; at.Before(to); at = at.Add(windowsPerAsk * width) {
		r := v1.Range{Start: at.Add(width - time.Millisecond), Step: width}
		r.End = r.Start.Add(min(windowsPerAsk*width-width, to.Sub(at).Truncate(width)))
		list, err := s.matrix(s.api.QueryRange(ctx, count, r))
		if err != nil {
			return begin, end, err
		}
		for _, v := range list {
			for _, p := range v.Values {
				end = p.Timestamp.Time().Add(time.Millisecond)
				if begin.IsZero() {
					begin = end.Add(-width)
				}
			}
		}
	}
	return begin, end, nil
}

// known lists every series, for the directory of nodes.
func (s *Store) known(ctx context.Context) ([]remote.Known, error) {
	metrics := map[model.LabelValue]collector.Metric{}
	for m := range collector.Metrics() {
		metrics[model.LabelValue(m.SeriesName())] = m
	}
	// VictoriaMetrics takes a start of 0 for one that is not given.
	series, _, _, err := s.api.Series(ctx, []string{`{__name__=~"fairway_.+",node!=""}`}, time.Unix(1, 0),
		time.Now().Add(maxAhead))
	if err != nil {
		return nil, fmt.Errorf("ask the store's server for its series: %w", err)
	}
	var out []remote.Known
	for _, labels := range series {
		if m, ok := metrics[labels[model.MetricNameLabel]]; ok {
			role, _ := topology.ParseRole(string(labels["role"]))
			out = append(out, remote.Known{Node: topology.NodeID(labels["node"]), Role: role, Metric: m})
		}
	}
	return out, nil
}
