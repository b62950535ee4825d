package client

import (
	"context"
	"net/url"

	"fairway/webui/report"
)

// Report returns the report of a period; empty: of the last seven days. Errors: ErrInvalid.
func (c *Client) Report(ctx context.Context, from, to string) (*report.Report, error) {
	q := url.Values{}
	for name, text := range map[string]string{"from": from, "to": to} {
		if text != "" {
			q.Set(name, text)
		}
	}
	return get[*report.Report](ctx, c, q, "report")
}
