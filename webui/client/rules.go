package client

import (
	"context"
	"net/url"
	"time"

	"fairway/remap/policy/evacuate"
)

// Rules returns the site's rules about running jobs, and what they decided.
func (c *Client) Rules(ctx context.Context) (evacuate.View, error) {
	return get[evacuate.View](ctx, c, nil, "rules")
}

// TestRules returns what the rules would have done since a time.
func (c *Client) TestRules(ctx context.Context, from time.Time) (evacuate.Tested, error) {
	return get[evacuate.Tested](ctx, c, url.Values{"from": {from.UTC().Format(time.RFC3339)}}, "rules", "test")
}
