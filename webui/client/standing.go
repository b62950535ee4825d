package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/evacuate"
	"fairway/webui/api"
)

// Standing lists the standing approvals in force, the oldest first.
func (c *Client) Standing(ctx context.Context) ([]remap.Standing, error) {
	return get[[]remap.Standing](ctx, c, nil, "standing")
}

// Allow approves, for ttl, what policies propose for an application of a user (empty: of all).
// Errors: ErrNotAllowed, ErrInvalid.
func (c *Client) Allow(ctx context.Context, app, user string, ttl time.Duration, reason string) (remap.Standing,
	error) {
	return send[remap.Standing](ctx, c, api.Allow{App: app, User: user, TTL: ttl.String(), Reason: reason},
		"standing")
}

// RevokeNodes refuses the tokens that nodes were given, each up to a time; zero: until now.
// Errors: ErrNotAllowed, ErrInvalid.
func (c *Client) RevokeNodes(ctx context.Context, nodes map[topology.NodeID]time.Time) (api.Revocation, error) {
	return send[api.Revocation](ctx, c, api.Revocation{Nodes: nodes}, "revocations")
}

// Revoke ends a standing approval and returns those that are left. Errors: ErrNotAllowed, ErrNotFound.
func (c *Client) Revoke(ctx context.Context, id, reason string) ([]remap.Standing, error) {
	return write[[]remap.Standing](ctx, c, http.MethodDelete, nil, url.Values{"reason": {reason}}, "standing", id)
}

// Rules returns the site's rules about running jobs, and what they decided.
func (c *Client) Rules(ctx context.Context) (evacuate.View, error) {
	return get[evacuate.View](ctx, c, nil, "rules")
}

// TestRules returns what the rules would have done since a time.
func (c *Client) TestRules(ctx context.Context, from time.Time) (evacuate.Tested, error) {
	return get[evacuate.Tested](ctx, c, url.Values{"from": {from.UTC().Format(time.RFC3339)}}, "rules", "test")
}
