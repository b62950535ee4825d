package engine

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// retainEvery is how often old hours are looked for.
const retainEvery = time.Minute

// retain removes what the retention settings no longer keep. The sealer calls it.
func (s *sealer) retain(now time.Time) {
	list := s.head.blocks.view.Load().files
	sizes := make([]int64, len(list))
	total := int64(0)
	for i, f := range list {
		if st, err := os.Stat(f.path); err == nil {
			sizes[i] = st.Size()
			total += sizes[i]
		}
	}
	for i, f := range list {
		old := s.opts.RetentionAge > 0 && now.Sub(time.Unix(f.hour+fileSeconds, 0)) > s.opts.RetentionAge
		full := s.opts.RetentionBytes > 0 && total > s.opts.RetentionBytes && i < len(list)-1
		if !old && !full || !s.tiers.complete(f.hour) {
			continue
		}
		if err := s.head.blocks.remove(f); err != nil {
			s.log.Error("old blocks stay", "file", f.path, "error", err)
			continue
		}
		total -= sizes[i]
	}
	s.tiers.retain(now)
}

// retain removes the tiers' files that are older than their level is kept.
func (ts *tierSet) retain(now time.Time) {
	for _, t := range ts.levels {
		for f := range figures {
			old := t.views[f].Load()
			next := &view{}
			for _, file := range old.files {
				if end := time.Unix((file.hour+fileSeconds)*t.seconds, 0); now.Sub(end) <= t.keep {
					next.files = append(next.files, file)
					continue
				}
				if err := ts.fs.Remove(file.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					ts.log.Error("an old tier stays", "file", file.path, "error", err)
					next.files = append(next.files, file)
				}
			}
			if len(next.files) < len(old.files) {
				t.views[f].Store(next)
				ts.head.blocks.indexes.clear()
			}
		}
	}
}

// complete reports whether the tiers have all of an hour, making what is missing of it.
func (ts *tierSet) complete(hour int64) bool {
	if len(ts.levels) == 0 {
		return true
	}
	t := ts.levels[0]
	for at := hour; at < hour+fileSeconds; at += t.blockSpan() {
		if err := ts.bringUp(0, at); err != nil {
			ts.log.Error("an hour stays, for its tier cannot be made", "hour", hour, "error", err)
			return false
		}
	}
	return true
}
