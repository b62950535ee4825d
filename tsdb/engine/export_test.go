package engine

import (
	"os"
	"time"

	"fairway/tsdb/engine/disk"
)

// RetainForTest applies the retention settings as the sealer does.
func (db *DB) RetainForTest(now time.Time) { db.sealer.retain(now) }

// unsynced leaves out the fsyncs, to measure their cost and for tests that do without.
type unsynced struct{ disk.OS }

type unsyncedFile struct{ disk.File }

func (unsyncedFile) Sync() error { return nil }

func (u unsynced) Create(path string) (disk.File, error) {
	f, err := u.OS.Create(path)
	return unsyncedFile{f}, err
}

func (u unsynced) OpenAppend(path string) (disk.File, error) {
	f, err := u.OS.OpenAppend(path)
	return unsyncedFile{f}, err
}

func (unsynced) CreateLog(path string) (disk.Log, error) {
	f, err := os.Create(path)
	return unsyncedLog{f}, err
}

type unsyncedLog struct{ *os.File }

func (l unsyncedLog) WriteSync(b []byte, at int64) error {
	_, err := l.WriteAt(b, at)
	return err
}

func (unsynced) SyncDir(string) error { return nil }

// WithoutSync gives up durability for a measurement.
func (o Options) WithoutSync() Options {
	o.fs = unsynced{}
	return o
}
