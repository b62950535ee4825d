package tsdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Backup copies the store into a new directory while it is in use. The copy holds everything that
// was appended before the call and opens as a store of its own. The directory must not exist or be
// empty; after an error it is incomplete and must be removed.
func (db *DB) Backup(ctx context.Context, dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("backup: %s is not empty; choose a new directory", dir)
	}
	if err := db.Flush(ctx); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	for _, d := range []string{filepath.Join(dir, "wal"), filepath.Join(dir, blocksDir)} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	for _, f := range db.view.Load().files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		if err := f.copyTo(filepath.Join(dir, blocksDir, filepath.Base(f.path))); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	// Names and ids last: they are then at least as new as every block that was copied.
	db.mu.Lock()
	entries := append([]nodeEntry(nil), db.table.entries...)
	nextBlock := db.nextBlock + 1
	db.mu.Unlock()
	if err := saveNodes(osFiles{}, dir, entries); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := replaceFile(osFiles{}, filepath.Join(dir, "wal", segmentName(1)), logHeader(1, nextBlock)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// copyTo copies the blocks that are sealed now.
func (b *blockFile) copyTo(path string) error {
	if _, err := b.frames(); err != nil {
		return err
	}
	b.mu.Lock()
	from, size := b.file, b.end
	b.mu.Unlock()
	if from == nil {
		return nil
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.NewSectionReader(from, 0, size))
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}
