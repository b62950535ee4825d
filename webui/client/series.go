package client

import (
	"context"
	"net/url"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Point is one second of a series.
type Point struct {
	TimeMillis int64
	Value      float64
}

// Series asks for one metric of some nodes second by second, from inclusive, to exclusive. A second of which nothing is
// known has no point.
func (c *Client) Series(ctx context.Context, m collector.Metric, nodes []topology.NodeID, from,
	to time.Time) (map[topology.NodeID][]Point, error) {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	type answer struct {
		Series []struct {
			Node   topology.NodeID `json:"node"`
			Points []struct {
				TimeMillis int64    `json:"t"`
				Value      *float64 `json:"v"`
			} `json:"points"`
		} `json:"series"`
	}
	a, err := get[answer](ctx, c, url.Values{"metric": {m.String()}, "node": {strings.Join(names, ",")}, "step": {"1s"},
		"from": {from.UTC().Format(time.RFC3339)}, "to": {to.UTC().Format(time.RFC3339)}}, "series")
	if err != nil {
		return nil, err
	}
	out := map[topology.NodeID][]Point{}
	for _, s := range a.Series {
		for _, p := range s.Points {
			if p.Value != nil {
				out[s.Node] = append(out[s.Node], Point{p.TimeMillis, *p.Value})
			}
		}
	}
	return out, nil
}
