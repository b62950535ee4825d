package engine

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
		if !old && !full || !db.tiered(f.hour) {
			continue
		}
		if err := db.removeFile(f); err != nil {
			db.log.Error("old blocks stay", "file", f.path, "error", err)
			continue
		}
		total -= sizes[i]
	}
	db.retainTiers(now)
}

// retainTiers removes the tiers' files that are older than their level is kept.
func (db *DB) retainTiers(now time.Time) {
	for _, t := range db.tiers {
		for f := range figures {
			old := t.views[f].Load()
			next := &view{}
			for _, file := range old.files {
				if end := time.Unix((file.hour+fileSeconds)*t.seconds, 0); now.Sub(end) <= t.keep {
					next.files = append(next.files, file)
					continue
				}
				if err := db.fs.Remove(file.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					db.log.Error("an old tier stays", "file", file.path, "error", err)
					next.files = append(next.files, file)
				}
			}
			if len(next.files) < len(old.files) {
				t.views[f].Store(next)
				db.indexes.clear()
			}
		}
	}
}

// tiered says whether the tiers have all of an hour, making what is missing of it.
func (db *DB) tiered(hour int64) bool {
	if len(db.tiers) == 0 {
		return true
	}
	t := db.tiers[0]
	for at := hour; at < hour+fileSeconds; at += t.blockSpan() {
		if err := db.bringUp(0, at); err != nil {
			db.log.Error("an hour stays, for its tier cannot be made", "hour", hour, "error", err)
			return false
		}
	}
	return true
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
	db.indexes.clear()
	return nil
}
