package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"fairway/cmd/program"
	"fairway/remap/desk"
	"fairway/tsdb/history"
)

// Keep says how long what is beside the seconds is kept; store.keep is theirs.
type Keep struct {
	Journal time.Duration `toml:"-"`
	History time.Duration `toml:"history" help:"How long ended jobs stay in the history; 0: for ever."`
	Archive time.Duration `toml:"archive" help:"How long days stay in the I/O-log archive; 0: for ever."`
	Memory  time.Duration `toml:"-"`
}

func defaultKeep() Keep { return Keep{Journal: 365 * 24 * time.Hour, Memory: time.Hour} }

func (k *Keep) validate() error {
	const least = 24 * time.Hour
	for _, s := range []struct {
		name string
		long time.Duration
	}{{"history", k.History}, {"archive", k.Archive}} {
		if s.long != 0 && s.long < least {
			return fmt.Errorf("%w: keep.%s = %s: want %s or more, or 0", program.ErrSettings, s.name, s.long, least)
		}
	}
	return nil
}

// leastSegment is how many records of the journal are worth a segment.
const leastSegment = 1000

// forgetOld takes out of journal and history what is older than it is kept, once a day, until ctx ends.
func (d *daemon) forgetOld(ctx context.Context) {
	for wait := time.NewTimer(time.Minute); ; wait.Reset(24 * time.Hour) {
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case now := <-wait.C:
			if err := d.forget(ctx, now); err != nil && ctx.Err() == nil {
				d.log.Warn("what is old is still in the journal or the history; the next try is in a day", "err", err)
			}
		}
	}
}

// forget takes out of journal and history what is older than it is kept.
func (d *daemon) forget(ctx context.Context, now time.Time) error {
	k := &d.conf.Keep
	if d.conf.view {
		return nil
	}
	var failed error
	// The journal of a cluster is equal in all daemons: none of them shortens it alone.
	if k.Journal > 0 && d.cluster == nil {
		old, err := d.desk.Archive(ctx, now.Add(-k.Journal), leastSegment)
		if failed = err; old != nil && err == nil {
			d.log.Info("old records of the journal are in a segment", "file", old.Segment, "records", old.Records)
		}
	}
	if k.History > 0 {
		n, err := d.history.Forget(now.Add(-k.History))
		if failed = errors.Join(failed, err); n > 0 {
			d.log.Info("old runs of the history are forgotten", "runs", n)
		}
	}
	return failed
}

// forgetArchive takes old days out of the archive once an hour, until ctx ends.
func (d *daemon) forgetArchive(ctx context.Context) {
	if d.conf.Keep.Archive == 0 || d.conf.view {
		return
	}
	for wait := time.NewTimer(time.Minute); ; wait.Reset(time.Hour) {
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case now := <-wait.C:
			n, err := forgetDays(filepath.Join(d.conf.StateDir, "archive"), now.Add(-d.conf.Keep.Archive))
			if err != nil {
				d.log.Warn("old days are still in the archive; the next try is in an hour", "err", err)
			}
			if n > 0 {
				d.log.Info("old days of the archive are forgotten", "days", n)
			}
		}
	}
}

// remembered are runs without those that the history would forget.
func (k *Keep) remembered(runs iter.Seq2[history.Run, error], now time.Time) iter.Seq2[history.Run, error] {
	if k.History == 0 {
		return runs
	}
	return func(yield func(history.Run, error) bool) {
		for r, err := range runs {
			if err == nil && r.End.Before(now.Add(-k.History)) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// stateFormat grows when a fairwayd of before could not read what this one writes into its state directory.
const stateFormat = 1

// stateNote is the file format of a state directory.
type stateNote struct {
	Format int    `json:"format"`
	By     string `json:"by"` // the version that wrote it first
}

// checkFormat refuses a state directory of a later fairwayd, by that one's name, and notes the format in one without a
// note. Nothing is changed where it is refused.
func checkFormat(dir string) error {
	path, note := filepath.Join(dir, formatFile), stateNote{}
	b, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(b, &note); err != nil {
			return fmt.Errorf("%s: %w; restore it from a backup", path, err)
		}
		if note.Format > stateFormat {
			return fmt.Errorf(
				"%s was written by fairwayd %s in format %d, and this is fairwayd %s, which reads formats "+
					"up to %d: install %s or later, or restore a backup that this version made", dir, note.By,
				note.Format,
				version, stateFormat, note.By)
		}
		if note.Format == stateFormat {
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if b, err = json.Marshal(stateNote{stateFormat, version}); err != nil {
		return fmt.Errorf("BUG: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("state_dir: %w", err)
	}
	return desk.ReplaceFile(path, append(b, '\n'), 0o640)
}

// formatFile is the stateNote's name in a state directory.
const formatFile = "format"
