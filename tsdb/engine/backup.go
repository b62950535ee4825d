package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/tsdb/engine/tier"
)

// Backup copies a store's directory into a new one, whether a daemon has it open or not. The copy
// holds every append that was answered before the call and opens as a store of its own. The new
// directory must not exist or be empty; after an error it is incomplete and must be removed.
//
// The order makes the copy whole without the daemon's help: the log first, then the blocks. Rows
// that are sealed in between are in both, and the copy's Open takes them once; a block that was
// being written is cut short, is dropped for that, and its rows come from the log. A log segment
// that is gone before it is read is one whose blocks are sealed. A tier's block that is not in all of
// its figures yet is made again. The names come last, so that they are as new as everything before.
func Backup(ctx context.Context, from, to string) error {
	if _, err := os.Stat(filepath.Join(from, "wal")); err != nil {
		return fmt.Errorf("backup: %s is not a store: %w", from, err)
	}
	if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
		return fmt.Errorf("backup: %s is not empty; choose a new directory", to)
	}
	tiers := tier.Dirs(from)
	for i, dir := range append([]string{"wal", blocksDir}, tiers...) {
		if i == 2 { // the tiers to make again are noted before the rows they miss are in a block
			if err := os.MkdirAll(filepath.Join(to, tier.Dir), 0o750); err != nil {
				return fmt.Errorf("backup: %w", err)
			}
			if err := copyFile(filepath.Join(from, tier.Dir, tier.LateFile),
				filepath.Join(to, tier.Dir, tier.LateFile)); err != nil {
				return fmt.Errorf("backup: %w", err)
			}
		}
		if err := copyDir(ctx, filepath.Join(from, dir), filepath.Join(to, dir)); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	if err := copyFile(filepath.Join(from, nodesFile), filepath.Join(to, nodesFile)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

func copyDir(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if ext := filepath.Ext(e.Name()); ext != ".log" && ext != ".blk" {
			continue
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies what a file holds now; one that is gone by now has nothing to copy.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
