package influx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/influxdata/influxdb-client-go/v2/api"
	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/remote"
)

// literal writes a string of Flux. Names come from outside, so every byte that could mean something
// to Flux is written by its number.
func literal(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_./: ", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// from begins a query of some nodes' seconds of one metric.
func (s *Store) from(nodes []topology.NodeID, m collector.Metric, fromMillis, toMillis int64) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"from(bucket: %s) |> range(start: %s, stop: %s) |> filter(fn: (r) => r._measurement == %s and r._field == %s",
		literal(s.bucket), instant(fromMillis), instant(toMillis), literal(measurement), literal(m.String()))
	for i, n := range nodes {
		word := " or "
		if i == 0 {
			word = " and ("
		}
		fmt.Fprintf(&b, "%sr.node == %s", word, literal(string(n)))
	}
	b.WriteString("))")
	return b.String()
}

func instant(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339Nano) }

// raw implements remote.Raw.
func (s *Store) raw(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis, toMillis int64,
	put func(topology.NodeID, int64, float64)) error {
	flux := s.from(nodes, m, fromMillis, toMillis) + ` |> keep(columns: ["_time", "_value", "node"])`
	return s.rows(ctx, flux, func(r *query.FluxRecord) {
		if v, ok := r.Value().(float64); ok {
			node, _ := r.ValueByKey("node").(string)
			put(topology.NodeID(node), r.Time().Unix(), v)
		}
	})
}

// span implements remote.Span.
func (s *Store) span(ctx context.Context, nodes []topology.NodeID, m collector.Metric, fromMillis,
	toMillis int64) (first, last int64, ok bool, err error) {
	for _, end := range []string{"first", "last"} {
		flux := s.from(nodes, m, fromMillis, toMillis) + " |> " + end + `() |> keep(columns: ["_time"])`
		err := s.rows(ctx, flux, func(r *query.FluxRecord) {
			at := r.Time().UnixMilli()
			if !ok {
				first, last, ok = at, at, true
			}
			first, last = min(first, at), max(last, at)
		})
		if err != nil {
			return 0, 0, false, err
		}
	}
	return first, last, ok, nil
}

// known lists every series with its newest time, for the directory of nodes.
func (s *Store) known(ctx context.Context) (out []remote.Known, err error) {
	const farFuture = 9_000_000_000_000 // a clock ahead must not hide its node
	flux := fmt.Sprintf(
		"from(bucket: %s) |> range(start: 1970-01-01T00:00:00Z, stop: %s) |> filter(fn: (r) => "+
			"r._measurement == %s) |> last() |> keep(columns: [\"_time\", \"_field\", \"node\", \"role\"])",
		literal(s.bucket), instant(farFuture), literal(measurement))
	err = s.rows(ctx, flux, func(r *query.FluxRecord) {
		m, ok := collector.ParseMetric(r.Field())
		if !ok {
			return
		}
		node, _ := r.ValueByKey("node").(string)
		word, _ := r.ValueByKey("role").(string)
		role, _ := topology.ParseRole(word)
		out = append(out, remote.Known{Node: topology.NodeID(node), Role: role, Metric: m,
			LastMillis: r.Time().UnixMilli()})
	})
	return out, err
}

// rows calls visit for every row of a query's answer.
func (s *Store) rows(ctx context.Context, flux string, visit func(*query.FluxRecord)) error {
	// The client's QueryAPI (2.14.0) remembers its URL without a lock, so each query has its own.
	res, err := api.NewQueryAPI(s.org, s.client.HTTPService()).Query(ctx, flux)
	if err != nil {
		return fmt.Errorf("ask InfluxDB: %w", err)
	}
	for res.Next() {
		visit(res.Record())
	}
	if err := errors.Join(res.Err(), res.Close()); err != nil {
		return fmt.Errorf("read InfluxDB's answer: %w", err)
	}
	return nil
}
