package tsdb

import "time"

// RetainForTest applies the retention settings as the sealer does.
func (db *DB) RetainForTest(now time.Time) { db.retain(now) }

// unsynced leaves out the fsyncs of the log, to tell what they cost.
type unsynced struct{ osFiles }

type unsyncedFile struct{ file }

func (unsyncedFile) Sync() error { return nil }

func (u unsynced) Create(path string) (file, error) {
	f, err := u.osFiles.Create(path)
	return unsyncedFile{f}, err
}

// WithoutSync gives up durability for a measurement.
func (o Options) WithoutSync() Options {
	o.fs = unsynced{}
	return o
}
