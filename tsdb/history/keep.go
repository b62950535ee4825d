package history

import (
	"errors"
	"fmt"
	"io"
	"time"

	"fairway/collector/appendlog"
)

// Forget takes the runs that ended before a time out of the history and returns how many. Runs that have not ended or
// wait for their profile stay, and so do records that are damaged: they may be mended. Predictions and questions go on
// beside it, new runs wait until it has written the file anew. After a kill at any point the file is the old one or the
// new one.
func (s *Store) Forget(before time.Time) (forgotten int, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.log.Broken(); err != nil {
		return 0, fmt.Errorf("history: %w", err)
	}
	whole := io.NewSectionReader(s.file, 0, s.log.Size())
	gone := map[beginning]bool{}
	if _, _, err := scan(whole, func(_ int, _ int64, b []byte) error {
		if r, err := decode(b); err == nil && !r.End.IsZero() && !r.Pending && r.End.Before(before) {
			gone[beginningOf(&r)] = true
			forgotten++
		}
		return nil
	}); err != nil || forgotten == 0 {
		return 0, err
	}
	log, file, err := appendlog.Rewrite(s.path, func(w io.Writer) error {
		_, _, err := scan(io.NewSectionReader(whole, 0, whole.Size()), func(_ int, _ int64, b []byte) error {
			if r, err := decode(b); err == nil && gone[beginningOf(&r)] {
				return nil
			}
			_, err := w.Write(b)
			return err
		})
		return err
	})
	if log == nil {
		return 0, fmt.Errorf("history: forget old runs: %w", err)
	}
	fresh := remember(file)
	_, again := fresh.load(s.path)
	s.log = log
	s.mu.Lock()
	s.memory = fresh
	s.mu.Unlock()
	if err := errors.Join(err, again); err != nil {
		return forgotten, fmt.Errorf("history: forget old runs: %w", err)
	}
	return forgotten, nil
}
