package client

import (
	"context"

	"fairway/webui/api"
)

// Alerts returns who is called, and how delivery goes.
func (c *Client) Alerts(ctx context.Context) (api.Alerts, error) {
	return get[api.Alerts](ctx, c, nil, "alerts")
}

// TestAlerts sends a test alert to every receiver. Errors: ErrNotAllowed, ErrConflict without a receiver.
func (c *Client) TestAlerts(ctx context.Context) (api.Alerts, error) {
	return send[api.Alerts](ctx, c, struct{}{}, "alerts", "test")
}
