package engine

import (
	"os"
	"time"
)

// RetainForTest applies the retention settings as the sealer does.
func (db *DB) RetainForTest(now time.Time) { db.sealer.retain(now) }

// unsynced leaves out the fsyncs, to measure their cost and for tests that do without.
type unsynced struct{ osFiles }

type unsyncedFile struct{ file }

func (unsyncedFile) Sync() error { return nil }

func (u unsynced) Create(path string) (file, error) {
	f, err := u.osFiles.Create(path)
	return unsyncedFile{f}, err
}

func (u unsynced) OpenAppend(path string) (file, error) {
	f, err := u.osFiles.OpenAppend(path)
	return unsyncedFile{f}, err
}

func (unsynced) CreateLog(path string) (logFile, error) {
	f, err := os.Create(path)
	return osLog{f}, err
}

func (unsynced) SyncDir(string) error { return nil }

// WithoutSync gives up durability for a measurement.
func (o Options) WithoutSync() Options {
	o.fs = unsynced{}
	return o
}
