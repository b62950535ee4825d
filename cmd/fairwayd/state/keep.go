package state

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/collector/pace"
	"fairway/remap/desk"
	"fairway/tsdb/history"
)

// leastSegment is how many records of the journal are worth a segment.
const leastSegment = 1000

// Old takes out of journal and history what is older than it is kept.
type Old struct {
	Keep    *config.Keep
	Desk    *desk.Desk // nil: the journal is equal in all daemons of a cluster, and none of them shortens it alone
	History *history.Store
	Log     *slog.Logger
}

// Run forgets once a day, until ctx ends.
func (o *Old) Run(ctx context.Context) {
	pace.Every(ctx, time.Minute, 24*time.Hour, func(now time.Time) {
		if err := o.forget(ctx, now); err != nil && ctx.Err() == nil {
			o.Log.Warn("what is old is still in the journal or the history; the next try is in a day", "err", err)
		}
	})
}

func (o *Old) forget(ctx context.Context, now time.Time) error {
	var failed error
	if o.Keep.Journal > 0 && o.Desk != nil {
		old, err := o.Desk.Archive(ctx, now.Add(-o.Keep.Journal), leastSegment)
		if failed = err; old != nil && err == nil {
			o.Log.Info("old records of the journal are in a segment", "file", old.Segment, "records", old.Records)
		}
	}
	if o.Keep.History > 0 {
		n, err := o.History.Forget(now.Add(-o.Keep.History))
		if failed = errors.Join(failed, err); n > 0 {
			o.Log.Info("old runs of the history are forgotten", "runs", n)
		}
	}
	return failed
}
