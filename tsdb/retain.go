package tsdb

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// retainEvery is how often old hours are looked for.
const retainEvery = time.Minute

// retain removes what the retention settings no longer keep. The sealer calls it.
func (db *DB) retain(now time.Time) {
	list := db.view.Load().files
	sizes := make([]int64, len(list))
	total := int64(0)
	for i, f := range list {
		if st, err := os.Stat(f.path); err == nil {
			sizes[i] = st.Size()
			total += sizes[i]
		}
	}
	for i, f := range list {
		old := db.opts.RetentionAge > 0 && now.Sub(time.Unix(f.hour+fileSeconds, 0)) > db.opts.RetentionAge
		full := db.opts.RetentionBytes > 0 && total > db.opts.RetentionBytes && i < len(list)-1
		if !old && !full {
			continue
		}
		if err := db.removeFile(f); err != nil {
			db.log.Error("old blocks stay", "file", f.path, "error", err)
			continue
		}
		total -= sizes[i]
	}
}

// removeFile takes an hour out of the store. A query that still reads it keeps the file's bytes
// until it is done; the collector then closes it.
func (db *DB) removeFile(f *blockFile) error {
	if err := db.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	next := *db.view.Load()
	next.files = slices.DeleteFunc(slices.Clone(next.files), func(g *blockFile) bool { return g == f })
	db.view.Store(&next)
	return nil
}
