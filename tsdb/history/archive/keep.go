package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
			if err := errors.Join(err, os.RemoveAll(pending), syncPath(filepath.Dir(path))); err != nil {
				return len(gone), fmt.Errorf("archive: forget %s of %s: %w", name, t.name, err)
			}
			gone[name] = true
		}
	}
	return len(gone), nil
}
