package engine

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"fairway/tsdb/engine/disk"
)

// faultyFiles is a file system that sometimes has no room, writes a part, or fails an fsync, and
// that knows of every file what a power cut could take: bytes after the last successful fsync, what a failed
// fsync left in the page cache only (a later fsync does not save it), a truncation that was not synced, a
// name whose directory was not.
type faultyFiles struct {
	disk.OS
	mu     sync.Mutex
	rng    *rand.Rand
	odds   int                        // one in odds operations fails; 0 none
	broken func(op, path string) bool // nil, or which operations fail in any case
	disk   map[string]*onDisk
	logs   []*faultyLog
	failed int
	// cutDue is set when what a failed fsync left could not be cut off: that the machine then runs on and only
	// the process is killed, and the power is cut later, is more than the store promises.
	cutDue bool
}

// onDisk is what is known of a file's durable state.
type onDisk struct {
	synced   int64  // bytes on the device
	poisoned bool   // an fsync failed: what lies beyond synced is clean in the page cache and on no device
	named    bool   // its directory was synced
	before   []byte // what was under the name before, until its directory is synced; nil for nothing
	// uncut and uncutSynced are content and synced bytes before a truncation that was not synced.
	uncut       []byte
	uncutSynced int64
	// device is what is on the device of a log file after a write that failed; nil where it is what the file holds.
	device []byte
}

func newFaultyFiles(seed uint64) *faultyFiles {
	return &faultyFiles{rng: rand.New(rand.NewPCG(3, seed)), disk: map[string]*onDisk{}}
}

func (f *faultyFiles) failOneIn(odds int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.odds = odds
}

func (f *faultyFiles) breakOff(broken func(op, path string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = broken
}

func (f *faultyFiles) fails(op, path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil && f.broken(op, path) {
		return true
	}
	if f.odds == 0 || f.rng.IntN(f.odds) > 0 {
		return false
	}
	f.failed++
	return true
}

// state returns a file's state; the caller holds mu. A file that is met first was there before.
func (f *faultyFiles) state(path string) *onDisk {
	s := f.disk[path]
	if s == nil {
		s = &onDisk{named: true}
		if st, err := os.Stat(path); err == nil {
			s.synced = st.Size()
		} else {
			s.named = false
		}
		f.disk[path] = s
	}
	return s
}

type faultyFile struct {
	disk.File
	fs   *faultyFiles
	path string
}

func (f *faultyFiles) Create(path string) (disk.File, error) {
	if f.fails("create", path) {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state(path)
	*s = onDisk{named: s.named, before: s.before}
	inner, err := f.OS.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{inner, f, path}, nil
}

// CreateLog makes a log file; what WriteSync has written is on the device.
func (f *faultyFiles) CreateLog(path string) (disk.Log, error) {
	file, err := f.Create(path)
	if err != nil {
		return nil, err
	}
	made := &faultyLog{file.(*faultyFile)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs = append(f.logs, made)
	return made, nil
}

// abandon lets go of the log's files as a killed process would.
func (f *faultyFiles) abandon() {
	for _, l := range f.logs {
		l.Close() // most were closed by the log
	}
	f.logs = nil
}

type faultyLog struct{ *faultyFile }

func (f *faultyLog) WriteSync(b []byte, at int64) error {
	short, lost := f.fs.fails("write", f.path), f.fs.fails("sync", f.path)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	s := f.fs.state(f.path)
	if (short || lost) && s.device == nil {
		var err error
		if s.device, err = os.ReadFile(f.path); err != nil {
			return err
		}
	}
	if short {
		b = b[:len(b)/3]
	}
	w, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := w.WriteAt(b, at); err != nil {
		return err
	}
	switch {
	case short:
		s.poisoned = true
		return errors.Join(syscall.ENOSPC, w.Close())
	case lost:
		s.poisoned = true
		return errors.Join(syscall.EIO, w.Close())
	case s.device != nil:
		return errors.New("test: the log goes on in a file of which a write failed")
	}
	s.synced = max(s.synced, at+int64(len(b)))
	return w.Close()
}

func (f *faultyFiles) OpenAppend(path string) (disk.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state(path)
	inner, err := f.OS.OpenAppend(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{inner, f, path}, nil
}

func (f *faultyFiles) Rename(from, to string) error {
	if f.fails("rename", to) {
		return syscall.EIO
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old, next := f.state(to), *f.state(from)
	next.named, next.before = false, old.before
	if old.named {
		var err error
		if next.before, err = os.ReadFile(to); err != nil {
			return err
		}
	}
	if err := f.OS.Rename(from, to); err != nil {
		return err
	}
	f.disk[to] = &next
	delete(f.disk, from)
	return nil
}

func (f *faultyFiles) SyncDir(dir string) error {
	if f.fails("syncdir", dir) {
		return syscall.EIO
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, s := range f.disk {
		if filepath.Dir(path) == filepath.Clean(dir) {
			s.named, s.before = true, nil
		}
	}
	return nil
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if f.fs.fails("write", f.path) {
		n, _ := f.File.Write(b[:len(b)/3])
		return n, syscall.ENOSPC
	}
	return f.File.Write(b)
}

func (f *faultyFile) Sync() error {
	bad := f.fs.fails("sync", f.path)
	size, err := f.File.Size() // the test's power cut is its own: no real fsync is needed
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	s := f.fs.state(f.path)
	switch {
	case err != nil:
		return err
	case bad:
		s.poisoned = s.poisoned || size > s.synced
		return syscall.EIO
	case !s.poisoned:
		s.synced, s.uncut, s.device = size, nil, nil
	}
	return nil
}

func (f *faultyFile) Truncate(size int64) error {
	bad := f.fs.fails("truncate", f.path)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	s := f.fs.state(f.path)
	if bad {
		f.fs.cutDue = f.fs.cutDue || s.poisoned
		return syscall.EIO
	}
	if s.uncut == nil {
		s.uncut, _ = os.ReadFile(f.path)
		s.uncutSynced = s.synced
	}
	if size <= s.synced {
		s.poisoned = false
	}
	s.synced = min(s.synced, size)
	return f.File.Truncate(size)
}

// powerCut leaves of every file what is on the device and a random part of the rest, some of it garbage.
func (f *faultyFiles) powerCut(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(f.disk)) {
		s := f.disk[path]
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !s.named && f.rng.IntN(2) == 0 {
			if data = s.before; data == nil {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				continue
			}
		} else {
			if s.uncut != nil && f.rng.IntN(2) == 0 {
				data, s.synced = s.uncut, s.uncutSynced
			}
			if s.device != nil {
				data = f.mixed(s.device, data)
			} else {
				data = f.torn(data, s.synced)
			}
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clear(f.disk)
	f.cutDue = false
}

// mixed returns a log file of which some pages of a failed write reached the device and some did not.
func (f *faultyFiles) mixed(device, cached []byte) []byte {
	out := slices.Clone(cached)
	if f.rng.IntN(2) == 0 && len(device) > len(cached) { // the length, or the truncation, did not
		out = append(out, device[len(cached):]...)
	}
	const sector = 512
	for at := 0; at < min(len(device), len(out)); at += sector {
		if end := min(at+sector, len(device), len(out)); f.rng.IntN(2) == 0 {
			copy(out[at:end], device[at:end])
		}
	}
	for at := len(device); at < len(out); at += sector { // new sectors without the data are zeros
		if f.rng.IntN(2) == 0 {
			clear(out[at:min(at+sector, len(out))])
		}
	}
	return out
}

// torn returns what a power cut leaves of a file.
func (f *faultyFiles) torn(data []byte, synced int64) []byte {
	size := int64(len(data))
	if size <= synced {
		return data
	}
	if f.rng.IntN(3) > 0 {
		size = synced + f.rng.Int64N(size-synced+1)
		data = data[:size]
	}
	if size > synced && f.rng.IntN(2) == 0 { // a page that never reached the disk
		at := synced + f.rng.Int64N(size-synced)
		clear(data[at:min(at+50, size)])
	}
	return data
}
