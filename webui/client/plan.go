package client

import (
	"context"
	"fmt"
	"time"

	"fairway/remap"
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
