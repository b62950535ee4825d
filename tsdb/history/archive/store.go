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
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
		}
		if err := os.RemoveAll(dir); err != nil {
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
		return err
	}
	mark := filepath.Join(dir, commitName)
	if err := os.WriteFile(mark+".tmp", nil, 0o640); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := os.Rename(mark+".tmp", mark); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := syncPath(dir); err != nil {
		return err
	}
	if err := s.moveIn(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// moveIn renames the parts of a committed batch into place. Doing it twice is safe: a part is either
// still below pending or already in.
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
	if err != nil {
		return fmt.Errorf("archive: batch %s: %w", filepath.Base(batch), err)
	}
	for dir := range touched {
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	return syncPath(s.dir)
}

// syncTree writes every file and folder below dir to disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		return syncPath(p)
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("archive: sync %s: %w", path, err)
	}
	return nil
}
