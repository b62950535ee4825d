// Package disk is the file system under the store, and what is found damaged there.
package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"fairway/collector/appendlog"
)

// Files is the part of a file system that the store uses. The tests put a faulty one in its place:
// torn writes, a full disk, an fsync that fails.
type Files interface {
	// CreateLog makes or empties a file of a write-ahead log.
	CreateLog(path string) (Log, error)
	Create(path string) (File, error) // truncates
	OpenAppend(path string) (File, error)
	Open(path string) (File, error) // for reading
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
}

// File is one open file of Files.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error // data and length are on the device when it returns nil
	Truncate(size int64) error
	Size() (int64, error)
}

// Log is a file that is written in whole pages, from buffers that begin at a page.
type Log interface {
	// WriteSync writes at an offset; data and length are on the device when it returns nil.
	WriteSync(b []byte, at int64) error
	Truncate(size int64) error
	io.Closer
}

// OS is the machine's own file system.
type OS struct{}

// osLog is a log file of the machine's own file system, past the page cache where that can be.
type osLog struct{ *os.File }

func (OS) CreateLog(path string) (Log, error) {
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

func open(path string, flag int) (File, error) {
	f, err := os.OpenFile(path, flag, 0o640)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (OS) Create(path string) (File, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (OS) OpenAppend(path string) (File, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
}

func (OS) Open(path string) (File, error) { return open(path, os.O_RDONLY) }

func (OS) Rename(from, to string) error { return os.Rename(from, to) }

func (OS) Remove(path string) error { return os.Remove(path) }

func (OS) SyncDir(dir string) error { return appendlog.SyncDir(dir) }

// Lock takes a store's directory for this process.
func Lock(dir string) (io.Closer, error) {
	lock, err := appendlog.Lock(filepath.Join(dir, "LOCK"), 0o640)
	if errors.Is(err, appendlog.ErrLocked) {
		return nil, fmt.Errorf("open store %s: %w; stop that one or choose another directory", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return lock, nil
}

// Replace writes a file so that after a crash it is either the old or the new one, whole.
func Replace(fsys Files, path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := fsys.Create(tmp)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Sync makes what a file holds durable.
func Sync(fsys Files, path string) error {
	f, err := fsys.OpenAppend(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// List returns the numbers that files of a directory have before an extension, ascending.
func List(dir, ext string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ext); ok {
			if n, err := strconv.ParseInt(name, 10, 64); err == nil {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
