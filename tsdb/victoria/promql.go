package victoria

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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

// vector is one series of an answer.
type vector struct {
	Metric map[string]string `json:"metric"`
	Values []sample          `json:"values"` // of a range
	Value  sample            `json:"value"`  // of an instant
}

// sample is a point as Prometheus writes it: [seconds, "value"].
type sample struct {
	millis int64
	value  float64
}

var errAnswer = errors.New("not a sample")

// UnmarshalJSON implements json.Unmarshaler.
func (s *sample) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), "[]")
	at, value, ok := strings.Cut(text, ",")
	if !ok {
		return fmt.Errorf("%w: %.40q", errAnswer, b)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(at), 64)
	if err != nil {
		return fmt.Errorf("%w: %.40q", errAnswer, b)
	}
	s.millis = int64(math.Round(seconds * 1000))
	s.value, err = strconv.ParseFloat(strings.Trim(strings.TrimSpace(value), `"`), 64)
	return err
}

// ask evaluates PromQL at an instant.
func (s *Store) ask(ctx context.Context, promql string, atMillis int64) ([]vector, error) {
	form := url.Values{
		"query": {promql}, "time": {strconv.FormatFloat(float64(atMillis)/1000, 'f', 3, 64)},
		"nocache": {"1"}, // late samples must be seen
	}
	var out struct {
		Result []vector `json:"result"`
	}
	err := s.post(ctx, "/api/v1/query", form, &out)
	return out.Result, err
}

// post sends a form and reads the data of the answer.
func (s *Store) post(ctx context.Context, path string, form url.Values, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("ask VictoriaMetrics: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := s.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask VictoriaMetrics: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(res.Body, 500)) // the status is the error
		return fmt.Errorf("ask VictoriaMetrics: %s%s answers %s: %s", s.url, path, res.Status,
			strings.TrimSpace(string(why)))
	}
	answer := struct {
		Data any `json:"data"`
	}{data}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("read VictoriaMetrics' answer: %w", err)
	}
	return nil
}

// raw implements remote.Raw.
func (s *Store) raw(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis, toMillis int64,
	put func(topology.NodeID, int64, float64)) error {
	if m.String() == "" {
		return nil
	}
	// A range is (at - width, at]; the samples of a second lie in all its milliseconds.
	list, err := s.ask(ctx, fmt.Sprintf("%s[%dms]", selector(nodes, m), toMillis-fromMillis), toMillis-1)
	if err != nil {
		return err
	}
	byNode := map[string][]sample{}
	for _, v := range list {
		node := v.Metric["node"]
		had := byNode[node]
		byNode[node] = append(had, v.Values...)
		if len(had) > 0 { // a node whose role changed has two series
			slices.SortStableFunc(byNode[node], func(a, b sample) int { return int(a.millis - b.millis) })
		}
	}
	for node, samples := range byNode {
		for _, p := range samples {
			put(topology.NodeID(node), p.millis/1000, p.value)
		}
	}
	return nil
}

// maxAhead is how far ahead VictoriaMetrics takes samples, and a little more.
const maxAhead = 72 * time.Hour

// span implements remote.Span.
func (s *Store) span(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis,
	toMillis int64) (first, last int64, ok bool, err error) {
	if m.String() == "" {
		return 0, 0, false, nil
	}
	// The server takes no sample further ahead, and answers nothing to a far instant.
	toMillis = min(toMillis, time.Now().Add(maxAhead).UnixMilli())
	// It also looks some way before a range and answers nothing where that is before 1970.
	fromMillis = max(fromMillis, 86_400_000)
	if fromMillis >= toMillis {
		return 0, 0, false, nil
	}
	for _, f := range []string{"min(tfirst_over_time", "max(tlast_over_time"} {
		list, err := s.ask(ctx, fmt.Sprintf("%s(%s[%dms]))", f, selector(nodes, m), toMillis-fromMillis), toMillis-1)
		if err != nil {
			return 0, 0, false, err
		}
		for _, v := range list {
			at := int64(v.Value.value * 1000)
			if !ok {
				first, ok = at, true
			}
			last = at
		}
	}
	return first, last, ok, nil
}

// known lists every series, for the directory of nodes.
func (s *Store) known(ctx context.Context) ([]remote.Known, error) {
	metrics := map[string]collector.Metric{}
	for m := range collector.Metrics() {
		metrics[m.SeriesName()] = m
	}
	var series []map[string]string
	// It takes a start of 0 for one that is not given.
	form := url.Values{"match[]": {`{__name__=~"fairway_.+",node!=""}`}, "start": {"1"},
		"end": {strconv.FormatInt(time.Now().Add(maxAhead).Unix(), 10)}}
	if err := s.post(ctx, "/api/v1/series", form, &series); err != nil {
		return nil, err
	}
	var out []remote.Known
	for _, labels := range series {
		if m, ok := metrics[labels["__name__"]]; ok {
			role, _ := topology.ParseRole(labels["role"])
			out = append(out, remote.Known{Node: topology.NodeID(labels["node"]), Role: role, Metric: m})
		}
	}
	return out, nil
}
