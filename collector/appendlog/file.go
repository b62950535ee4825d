package appendlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Handle is what a File needs of an *os.File; tests put a failing one in its place.
type Handle interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// File is an append-only file that one process has open. One goroutine may use it at a time.
type File struct {
	handle Handle
	size   int64 // of what is whole and on the device
	broken error // after a failed write nothing more is taken: what is on the device is not known
}

// OpenFile opens or makes the file at path and locks it; errors wrap ErrLocked. The caller reads it through the
// returned *os.File, then calls Settle with where the whole records end. Close the File, not the *os.File.
func OpenFile(path string) (*File, *os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := lock(f); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &File{handle: f}, f, nil
}

// On continues a file of size whole bytes, which the caller has locked and settled.
func On(h Handle, size int64) *File { return &File{handle: h, size: size} }

// Settle cuts off what a crash left unfinished after size bytes of whole records, and makes these and the file's
// name durable: what was read may be in memory only, if its writer was killed before an fsync, and new records
// follow from it.
func (f *File) Settle(path string, size int64, torn bool) error {
	if torn {
		if err := f.handle.Truncate(size); err != nil {
			return fmt.Errorf("cut off an unfinished record: %w", err)
		}
	}
	f.size = size
	return errors.Join(f.handle.Sync(), SyncDir(filepath.Dir(path)))
}

// Append writes whole records and returns when they are on the device. On an error none of them counts: they are cut
// off again, and where that fails too the file takes nothing more.
func (f *File) Append(records []byte) error {
	if f.broken != nil {
		return f.broken
	}
	if _, err := f.handle.Write(records); err != nil {
		if undo := f.handle.Truncate(f.size); undo == nil {
			return fmt.Errorf("write: %w (nothing was recorded; free the disk)", err)
		}
		return f.breakOff("write", err)
	}
	if err := f.handle.Sync(); err != nil {
		// After a failed fsync the kernel may have dropped the pages: what is on the device is not known.
		return f.breakOff("fsync", err)
	}
	f.size += int64(len(records))
	return nil
}

func (f *File) breakOff(op string, err error) error {
	f.broken = fmt.Errorf("%s: %w (nothing more is taken; look at the disk, then restart fairwayd)", op, err)
	return f.broken
}

// Size is how many bytes are whole and on the device.
func (f *File) Size() int64 { return f.size }

// Broken returns why the file takes nothing more until it is opened again; nil while it does.
func (f *File) Broken() error { return f.broken }

// Close releases the file and its lock; nothing can be appended any more.
func (f *File) Close() error {
	if f.broken == nil {
		f.broken = os.ErrClosed
	}
	return f.handle.Close()
}
