package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"fairway/collector/appendlog"
)

// Forget takes the runs that ended before a time out of the history at path, which must not be open, and returns how
// many. Runs that have not ended or wait for their profile stay, and so do records that are damaged: they may be
// mended. After a kill at any point the file is the old one or the new one.
func Forget(path string, before time.Time) (forgotten int, err error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	held, f, err := appendlog.OpenFile(path)
	if err != nil {
		return 0, fmt.Errorf("open history: %w", err)
	}
	defer held.Close()
	gone := map[beginning]bool{}
	if _, _, err := scan(f, func(_ int, _ int64, b []byte) error {
		if r, err := decode(b); err == nil && !r.End.IsZero() && !r.Pending && r.End.Before(before) {
			gone[beginningOf(&r)] = true
			forgotten++
		}
		return nil
	}); err != nil || forgotten == 0 {
		return 0, err
	}
	to, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("forget old runs: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, errors.Join(err, to.Close())
	}
	out := bufio.NewWriterSize(to, 1<<20)
	_, _, err = scan(io.NewSectionReader(f, 0, info.Size()), func(_ int, _ int64, b []byte) error {
		if r, err := decode(b); err == nil && gone[beginningOf(&r)] {
			return nil
		}
		_, err := out.Write(b)
		return err
	})
	if err := errors.Join(err, out.Flush(), to.Sync(), to.Close()); err != nil {
		return 0, fmt.Errorf("forget old runs: %w", err)
	}
	return forgotten, errors.Join(os.Rename(path+".new", path), appendlog.SyncDir(filepath.Dir(path)))
}
