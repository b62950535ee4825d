package appendlog

import (
	"bufio"
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

// Rewrite writes a file anew that the caller has open, from the old one's content, and returns what is at path then,
// locked and to be read from its begin. After a kill at any point there is the old file or the new one. Those who read
// the old one go on; the runtime closes it when nobody does. A
// file that comes with an error is in the place of the old one, and takes nothing more.
func Rewrite(path string, write func(io.Writer) error) (*File, *os.File, error) {
	f, file, err := OpenFile(path + ".new")
	if err != nil {
		return nil, nil, err
	}
	err = file.Truncate(0) // what an attempt before left
	out := bufio.NewWriterSize(file, 1<<20)
	if err == nil {
		err = write(out)
	}
	if err = errors.Join(err, out.Flush()); err == nil {
		err = file.Sync()
	}
	if err == nil {
		f.size, err = file.Seek(0, io.SeekEnd)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close(), os.Remove(path+".new"))
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		// After a crash the name may be the old file's again: nothing that comes now would be in it.
		return f, file, f.breakOff("fsync", err)
	}
	return f, file, nil
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
