package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/evacuate"
	"fairway/webui/api"
)

// Settled waits until a plan is verified or has failed; partial success is ErrPartial.
func (c *Client) Settled(ctx context.Context, v api.PlanView, wait time.Duration) (api.PlanView, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		switch v.State {
		case remap.Verified:
			return v, nil
		case remap.Partial:
			n, ok, failed, _ := v.Progress()
			return v,
				fmt.Errorf(
					"plan %s: %w: %d of %d compute nodes moved, %d failed; 'fairway plan rollback %s' takes it back",
					v.ID, api.ErrPartial, ok, n, failed, v.ID)
		case remap.Failed, remap.Rejected, remap.Withdrawn, remap.Expired, remap.RolledBack, remap.Restored:
			return v, fmt.Errorf("plan %s is %s: %s", v.ID, v.State, v.Why())
		case remap.Proposed:
			return v, nil // it needs a second approval
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("plan %s is still %s after %s: %w", v.ID, v.State, wait, ctx.Err())
		case <-tick.C:
		}
		next, err := c.Plan(ctx, v.ID)
		if err != nil {
			return v, err
		}
		v = next
	}
}

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

// Alerts returns who is called, and how delivery goes.
func (c *Client) Alerts(ctx context.Context) (api.Alerts, error) {
	return get[api.Alerts](ctx, c, nil, "alerts")
}

// TestAlerts sends a test alert to every receiver. Errors: ErrNotAllowed, ErrConflict without a receiver.
func (c *Client) TestAlerts(ctx context.Context) (api.Alerts, error) {
	return send[api.Alerts](ctx, c, struct{}{}, "alerts", "test")
}
