// Package archive keeps the I/O logs of a site for questions in SQL: every log is read once, its rows
// lie in Parquet files partitioned by day, and DuckDB answers over them in this process. Spark and Trino
// open the same files.
//
// A directory is an archive:
//
//	job/day=2026-11-21/1f0c….parquet   the parts of the table job, and so for each table of package iolog
//	pending/1f0c…/                     a batch being written; it has the same folders below it
//	pending/1f0c…/COMMIT               its parts are whole and on disk: whoever comes next moves them in
//	lock                               held by the one importer
//
// A batch of logs is taken in whole or not at all: its parts are written and synced below pending, then
// COMMIT appears by a rename, then each part is renamed into place. After a kill, a batch with COMMIT is
// finished by the next one to open the archive, and one without is thrown away. The names of the logs
// that were read are rows of the same batch (table read), so rows and memory cannot disagree.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fairway/collector/appendlog"
)

// ErrBusy means that another process imports into the archive.
var ErrBusy = errors.New("the archive is being written by another import")

const commitName = "COMMIT"

// store is the archive's directory, held for writing.
type store struct {
	dir  string
	lock io.Closer
}

// openStore creates the directory where needed, takes its lock and finishes what a killed import left.
func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	lock, err := appendlog.Lock(filepath.Join(dir, "lock"), 0o640)
	if errors.Is(err, appendlog.ErrLocked) {
		return nil, fmt.Errorf("archive %s: %w", dir, ErrBusy)
	} else if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	s := &store{dir: dir, lock: lock}
	if err := s.recover(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close gives the lock back.
func (s *store) close() { s.lock.Close() }

// recover finishes batches that were committed and removes the others.
func (s *store) recover() error {
	pending, err := os.ReadDir(filepath.Join(s.dir, "pending"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	for _, e := range pending {
		dir := filepath.Join(s.dir, "pending", e.Name())
		if _, err := os.Stat(filepath.Join(dir, commitName)); err == nil {
			if err := s.moveIn(dir); err != nil {
				return err
			}
		} else if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	return nil
}

// begin makes the folder of a new batch.
func (s *store) begin(batch string) (string, error) {
	dir := filepath.Join(s.dir, "pending", batch)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("archive: %w", err)
	}
	return dir, nil
}

// commit makes a batch whose parts are written part of the archive.
func (s *store) commit(dir string) error {
	if err := syncTree(dir); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := appendlog.ReplaceFile(filepath.Join(dir, commitName), nil, 0o640); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return s.moveIn(dir)
}

// moveIn renames the parts of a committed batch into place and removes its folder. Doing it twice is safe: a part is
// either still below pending or already in.
func (s *store) moveIn(batch string) error {
	touched := map[string]bool{}
	err := filepath.WalkDir(batch, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".parquet") {
			return err
		}
		rel, err := filepath.Rel(batch, p)
		if err != nil {
			return err
		}
		to := filepath.Join(s.dir, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return err
		}
		touched[filepath.Dir(to)] = true
		touched[filepath.Dir(filepath.Dir(to))] = true
		return os.Rename(p, to)
	})
	for dir := range touched {
		err = errors.Join(err, appendlog.SyncDir(dir))
	}
	if err == nil {
		err = appendlog.SyncDir(s.dir)
	}
	if err == nil {
		err = os.RemoveAll(batch)
	}
	if err != nil {
		return fmt.Errorf("archive: batch %s: %w", filepath.Base(batch), err)
	}
	return nil
}

// syncTree writes every file and folder below dir to disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return appendlog.SyncDir(p) // a file's bytes as well
	})
}

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
	if err := syncTree(to); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// Forget takes the days that ended before a time out of the archive in dir and returns how many. Which logs were read
// is not forgotten: a file that is still there is not read again. ErrBusy means that an import is running.
func Forget(dir string, before time.Time) (days int, err error) {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return 0, nil
	}
	s, err := openStore(dir)
	if err != nil {
		return 0, err
	}
	defer s.close()
	gone := map[string]bool{}
	for _, t := range tables {
		if t == readTable {
			continue
		}
		found, err := filepath.Glob(filepath.Join(dir, t.name, "day=*"))
		if err != nil {
			return 0, fmt.Errorf("archive: BUG: %w", err)
		}
		for _, path := range found {
			name := filepath.Base(path)
			day, err := time.Parse(time.DateOnly, strings.TrimPrefix(name, "day="))
			if err != nil || !day.AddDate(0, 0, 1).Before(before) {
				continue
			}
			// A folder that goes by one rename is there for a question or is not.
			pending, err := s.begin("forget-" + t.name + "-" + name)
			if err == nil {
				err = os.Rename(path, filepath.Join(pending, name))
			}
			if err := errors.Join(err, os.RemoveAll(pending), appendlog.SyncDir(filepath.Dir(path))); err != nil {
				return len(gone), fmt.Errorf("archive: forget %s of %s: %w", name, t.name, err)
			}
			gone[name] = true
		}
	}
	return len(gone), nil
}
