package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"

	"fairway/collector/topology"
	"fairway/console"
	"fairway/tsdb/history/iolog"
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

// Cause explains a job from its logs; ErrNotFound when the archive has none of it.
func (c *Client) Cause(ctx context.Context, id topology.JobID) (console.JobCause, error) {
	return get[console.JobCause](ctx, c, nil, "jobs", string(id), "rootcause")
}
