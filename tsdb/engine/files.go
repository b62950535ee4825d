package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"fairway/collector/appendlog"
)

// files is the part of a file system the engine uses. The tests put a faulty one in its place:
// torn writes, a full disk, an fsync that fails.
type files interface {
	// CreateLog makes or empties a file of a write-ahead log.
	CreateLog(path string) (logFile, error)
	Create(path string) (file, error) // truncates
	OpenAppend(path string) (file, error)
	Open(path string) (file, error) // for reading
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
}

// file is one open file of files.
type file interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error // data and length are on the device when it returns nil
	Truncate(size int64) error
	Size() (int64, error)
}

// logFile is a file that is written in whole pages, from buffers of logBuffer.
type logFile interface {
	// WriteSync writes at an offset; data and length are on the device when it returns nil.
	WriteSync(b []byte, at int64) error
	Truncate(size int64) error
	io.Closer
}

// osFiles is the machine's own file system.
type osFiles struct{}

// osLog is a log file of the machine's own file system, past the page cache where that can be.
type osLog struct{ *os.File }

func (osFiles) CreateLog(path string) (logFile, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_TRUNC | syscall.O_DSYNC
	f, err := os.OpenFile(path, flags|syscall.O_DIRECT, 0o640)
	if errors.Is(err, syscall.EINVAL) { // a file system without direct writes
		f, err = os.OpenFile(path, flags, 0o640)
	}
	if err != nil {
		return nil, err
	}
	return osLog{f}, nil
}

func (f osLog) WriteSync(b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	// A file system that says only now that it has no direct writes, or wants other pages.
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFL, 0)
	if errno != 0 || flags&syscall.O_DIRECT == 0 {
		return err
	}
	if _, _, errno = syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFL, flags&^syscall.O_DIRECT); errno != 0 {
		return err
	}
	_, err = f.WriteAt(b, at)
	return err
}

type osFile struct{ *os.File }

func (f osFile) Sync() error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func open(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0o640)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFiles) Create(path string) (file, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (osFiles) OpenAppend(path string) (file, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
}

func (osFiles) Open(path string) (file, error) { return open(path, os.O_RDONLY) }

func (osFiles) Rename(from, to string) error { return os.Rename(from, to) }

func (osFiles) Remove(path string) error { return os.Remove(path) }

func (osFiles) SyncDir(dir string) error { return appendlog.SyncDir(dir) }

// lockDir takes the store's directory for this process.
func lockDir(dir string) (io.Closer, error) {
	lock, err := appendlog.Lock(filepath.Join(dir, "LOCK"), 0o640)
	if errors.Is(err, appendlog.ErrLocked) {
		return nil, fmt.Errorf("open store %s: %w; stop that one or choose another directory", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return lock, nil
}
