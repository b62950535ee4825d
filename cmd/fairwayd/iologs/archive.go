//go:build cgo

package iologs

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"path/filepath"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/tsdb/history/archive"
	"fairway/webui"
	"fairway/webui/access/budget"
)

// Open answers questions about the archive of a state directory, by a process of program for each where it is named.
func Open(stateDir, program string) webui.Archive {
	all := budget.Defaults()
	limits := archive.Limits{MemoryBytes: all.ArchiveBytes, AnswerBytes: all.AnswerBytes}
	var child []string
	if program != "" {
		child = []string{program, askCommand}
	}
	return archive.NewReader(filepath.Join(stateDir, "archive"), limits, child)
}

// Backup copies the archive in from to the new directory to.
func Backup(ctx context.Context, from, to string) error { return archive.Backup(ctx, from, to) }

// forget takes the days that ended before a time out of the archive in dir; while an import runs it takes none.
func forget(dir string, before time.Time) (days int, err error) {
	if days, err = archive.Forget(dir, before); errors.Is(err, archive.ErrBusy) {
		err = nil
	}
	return days, err
}

// KeepForwarders copies the forwarders' days out of the store into the archive until ctx ends.
func KeepForwarders(ctx context.Context, stateDir string, store tsdb.Store, log *slog.Logger) {
	archive.Keep(ctx, filepath.Join(stateDir, "archive"), store, func(days int, err error) {
		if err != nil {
			log.Warn("the forwarders' seconds were not added to the archive; the next try is in an hour", "err", err)
			return
		}
		log.Info("forwarders' seconds added to the archive", "days", days)
	})
}

// archiveLookedAt is how often the archive is looked at for new logs: a few folders' times are read then.
const archiveLookedAt = time.Minute

// learner adds the jobs that imports put into the archive to the history.
type learner struct {
	conf    *config.Config
	history *history.Store
	log     *slog.Logger
}

// KeepHistory adds the jobs that imports put into the archive to the history, until ctx ends.
func KeepHistory(ctx context.Context, conf *config.Config, h *history.Store, log *slog.Logger) {
	l := learner{conf, h, log}
	learned := ""
	pace.Every(ctx, 0, archiveLookedAt, func(time.Time) { learned = l.learn(ctx, learned) })
}

// learn adds the archive's runs to the history if it is not in the state that was learned before, and
// returns the state that is.
func (l *learner) learn(ctx context.Context, before string) string {
	dir := filepath.Join(l.conf.StateDir, "archive")
	now := archive.State(dir)
	if now == before {
		return before
	}
	runs := remembered(archive.Runs(ctx, dir, l.forwardersOf), l.conf.Keep.History, time.Now())
	sum, err := l.history.Import(ctx, runs)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Warn("the history did not take all runs of the archive; it is tried again", "err", err)
		}
		return before
	}
	for _, bad := range sum.Errors {
		l.log.Warn("a run of the archive is not taken into the history", "err", bad)
	}
	l.log.Info("runs of the archive added to the history", "runs", sum.Runs, "known", sum.Known, "refused", sum.Refused)
	return now
}

// forwardersOf counts the default forwarders of some nodes, 0 where one has none.
func (l *learner) forwardersOf(nodes []topology.NodeID) int {
	of, mapping := map[topology.ForwarderID]bool{}, l.conf.Machine().Default
	for _, n := range nodes {
		f, ok := mapping[n]
		if !ok {
			return 0
		}
		of[f] = true
	}
	return len(of)
}

// remembered are runs without those that the history, which keeps them for a time, would forget; 0: for ever.
func remembered(runs iter.Seq2[history.Run, error], keep time.Duration, now time.Time) iter.Seq2[history.Run, error] {
	if keep == 0 {
		return runs
	}
	return func(yield func(history.Run, error) bool) {
		for r, err := range runs {
			if err == nil && r.End.Before(now.Add(-keep)) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
