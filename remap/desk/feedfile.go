package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"fairway/collector/appendlog"
	"fairway/remap"
)

// KeepFeedFile writes the feed to path whenever the list changes and often enough that its lease
// never runs out, until ctx ends. A reader sees the old file or the new one, never a part: each is
// written beside it, forced to disk and renamed. A file that cannot be written is reported and
// tried again; its reader goes by the lease in the one it has.
func (d *exclusions) KeepFeedFile(ctx context.Context, path string, log *slog.Logger) {
	generation, failing := uint64(0), false
	f := d.Feed()
	for {
		err := writeFeed(path, f)
		switch {
		case err != nil && !failing:
			log.Error("the file of exclusions was not written; its readers fall back when its lease ends", "err", err,
				"valid_until", f.ValidUntil)
		case err == nil && failing:
			log.Info("the file of exclusions is written again", "file", path)
		}
		failing = err != nil
		generation = f.Generation
		if f, err = d.AwaitFeed(ctx, generation); err != nil {
			return
		}
		if failing { // a full disk is not helped by haste
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}
}

func writeFeed(path string, f remap.Feed) error {
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("BUG: encode the feed: %w", err)
	}
	if err := ReplaceFile(path, append(b, '\n'), 0o644); err != nil { // no secret, and its reader is another user
		return fmt.Errorf("exclusions: %w", err)
	}
	return nil
}

// ReplaceFile makes b the content of path: a reader, also one after a crash, sees the old file or the new
// one, never a part.
func ReplaceFile(path string, b []byte, mode os.FileMode) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return appendlog.SyncDir(filepath.Dir(path))
}
