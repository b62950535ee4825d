// Package iologs keeps the archive of jobs' I/O logs, which a daemon has that was built with a C++ compiler.
package iologs

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"
)

// ForgetOld takes old days out of the archive of a state directory once an hour, until ctx ends.
func ForgetOld(ctx context.Context, stateDir string, keep time.Duration, log *slog.Logger) {
	if keep == 0 {
		return
	}
	for wait := time.NewTimer(time.Minute); ; wait.Reset(time.Hour) {
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case now := <-wait.C:
			n, err := forget(filepath.Join(stateDir, "archive"), now.Add(-keep))
			if err != nil {
				log.Warn("old days are still in the archive; the next try is in an hour", "err", err)
			}
			if n > 0 {
				log.Info("old days of the archive are forgotten", "days", n)
			}
		}
	}
}
