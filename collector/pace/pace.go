// Package pace waits: once, or time and again.
package pace

import (
	"context"
	"time"
)

// Wait waits, and says whether ctx goes on.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Every calls do after first, and from then on once a period, with when it was due, until ctx ends. A call that takes
// longer than a period is followed by one at once.
func Every(ctx context.Context, first, period time.Duration, do func(now time.Time)) {
	if !Wait(ctx, first) {
		return
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for now := time.Now(); ctx.Err() == nil; {
		do(now)
		select {
		case now = <-tick.C:
		case <-ctx.Done():
		}
	}
}
