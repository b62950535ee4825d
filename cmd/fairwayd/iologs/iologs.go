// Package iologs keeps the archive of jobs' I/O logs, which a daemon has that was built with a C++ compiler.
package iologs

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"fairway/collector/pace"
)

// ForgetOld takes old days out of the archive of a state directory once an hour, until ctx ends.
func ForgetOld(ctx context.Context, stateDir string, keep time.Duration, log *slog.Logger) {
	if keep == 0 {
		return
	}
	pace.Every(ctx, time.Minute, time.Hour, func(now time.Time) {
		n, err := forget(filepath.Join(stateDir, "archive"), now.Add(-keep))
		if err != nil {
			log.Warn("old days are still in the archive; the next try is in an hour", "err", err)
		}
		if n > 0 {
			log.Info("old days of the archive are forgotten", "days", n)
		}
	})
}
