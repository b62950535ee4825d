package archive

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Backup copies the archive in from to the new directory to. It holds the importer's lock meanwhile: a part that is
// being moved would be in the copy twice or not at all. ErrBusy means that an import is running; ask again later. An
// archive that does not exist is copied as none.
func Backup(ctx context.Context, from, to string) error {
	if _, err := os.Stat(from); os.IsNotExist(err) {
		return nil
	}
	s, err := openStore(from)
	if err != nil {
		return err
	}
	defer s.close()
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !e.IsDir() || e.Name() == "pending" {
			continue // the lock, and what a killed import left
		}
		if err := os.CopyFS(filepath.Join(to, e.Name()), os.DirFS(filepath.Join(from, e.Name()))); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	if _, err := os.Stat(to); err != nil {
		return nil // it was empty
	}
	return syncTree(to)
}
