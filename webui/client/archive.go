package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/tsdb"
	"fairway/tsdb/history/iolog"
	"fairway/webui/api"
	"fairway/webui/report"
)

// Ask puts a question to the daemon's I/O-log archive. Numbers of the answer are json.Number, so that
// none loses digits. Errors: ErrInvalid, ErrNotAllowed, ErrUnreachable.
func (c *Client) Ask(ctx context.Context, q iolog.Question) (iolog.Result, error) {
	query, what := url.Values{}, q.Analysis.Name
	if what == "" {
		query.Set("q", q.SQL)
		what = "sql"
	}
	for name, value := range q.Params {
		query.Set(name, value)
	}
	raw, err := get[json.RawMessage](ctx, c, query, "archive", what)
	if err != nil {
		return iolog.Result{}, err
	}
	var res iolog.Result
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return res, d.Decode(&res)
}

// SlowJobs lists program runs of low bandwidth, op being read or write; all: also those that are not slow.
func (c *Client) SlowJobs(ctx context.Context, op string, all bool) ([]api.SlowJob, error) {
	q := iolog.Question{Analysis: iolog.Analysis{Name: "low-bandwidth"}, Params: map[string]string{"op": op}}
	if all {
		q.Params["max_bytes_per_sec"], q.Params["min_procs"], q.Params["min_bytes_per_proc"] = "1e18", "0", "0"
	}
	res, err := c.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	rows := make([]map[string]any, len(res.Rows))
	for i, r := range res.Rows {
		rows[i] = map[string]any{}
		for k, v := range r {
			rows[i][res.Columns[k]] = v
		}
	}
	b, _ := json.Marshal(rows) // they came as JSON
	jobs := []api.SlowJob{}
	if err := json.Unmarshal(b, &jobs); err != nil {
		return nil, fmt.Errorf("low-bandwidth jobs: the answer is not what this version of fairway reads: %w", err)
	}
	return jobs, nil
}

// Shares is what a policy would give the running jobs, of a forwarder or, for none, of all.
func (c *Client) Shares(ctx context.Context, policy string, on topology.ForwarderID) (api.SharesView, error) {
	return get[api.SharesView](ctx, c, given(map[string]string{"policy": policy, "forwarder": string(on)}), "shares")
}

// Pattern staggers the periodic applications of a set, JSON as fairway periodic reads it.
func (c *Client) Pattern(ctx context.Context, set string) (api.PatternView, error) {
	return get[api.PatternView](ctx, c, url.Values{"set": {set}}, "periodic")
}

// Windows is the pattern of the periodic jobs that run.
func (c *Client) Windows(ctx context.Context) (dispatch.RunningPattern, error) {
	return get[dispatch.RunningPattern](ctx, c, nil, "windows")
}

// Domains compares ways of dividing a file that several processes of a job wrote.
func (c *Client) Domains(ctx context.Context, id topology.JobID, q api.DomainsQuery) (api.DomainsView, error) {
	return get[api.DomainsView](ctx, c, q.Values(), "jobs", string(id), "domains")
}

// Cause explains a job from its logs; ErrNotFound when the archive has none of it.
func (c *Client) Cause(ctx context.Context, id topology.JobID) (api.JobCause, error) {
	return get[api.JobCause](ctx, c, nil, "jobs", string(id), "rootcause")
}

// Report returns the report of a period; empty: of the last seven days. Errors: ErrInvalid.
func (c *Client) Report(ctx context.Context, from, to string) (*report.Report, error) {
	return get[*report.Report](ctx, c, given(map[string]string{"from": from, "to": to}), "report")
}

// Series asks for one metric of some nodes second by second, from inclusive, to exclusive. A second of which nothing is
// known has no point.
func (c *Client) Series(ctx context.Context, m collector.Metric, nodes []topology.NodeID, from,
	to time.Time) (map[topology.NodeID][]tsdb.Point, error) {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	a, err := get[api.SeriesAnswer](ctx, c, url.Values{"metric": {m.String()}, "node": {strings.Join(names, ",")},
		"step": {"1s"}, "from": {from.UTC().Format(time.RFC3339)}, "to": {to.UTC().Format(time.RFC3339)}}, "series")
	if err != nil {
		return nil, err
	}
	out := map[topology.NodeID][]tsdb.Point{}
	for _, s := range a.Series {
		for _, p := range s.Points {
			if p.Value != nil {
				out[s.Node] = append(out[s.Node], tsdb.Point{TimeMillis: p.TimeMillis, Value: *p.Value})
			}
		}
	}
	return out, nil
}
