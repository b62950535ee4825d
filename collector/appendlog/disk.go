// Package appendlog is what every append-only file of fairway is made of: records whose CRC-32C shows a damaged
// or unfinished one, the cutting of a torn end, the lock that keeps a second process away, and the order of writes
// and fsyncs. It is below all of its users, and so in collector: the agent's spool is one of them, beside the remote
// stores' spool, the embedded store's log, the job history and the journal.
//
// Two framings share these rules. A log for programs has binary records (Seal, ReadRecord); a log that people read,
// such as the journal, has lines of text, each with the checksum of its own.
package appendlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the CRC-32C of parts, one after the other.
func Sum(parts ...[]byte) uint32 {
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// ErrLocked says that another process has a log open.
var ErrLocked = errors.New("in use by another process")

// Lock makes the file at path where it is missing and takes it for this process. The lock goes with the process,
// however it ends.
func Lock(path string, mode os.FileMode) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%s: %w", f.Name(), ErrLocked)
		}
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// ReadPrivate reads a file that nobody but its owner may read, without the space around its text.
func ReadPrivate(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read by others (mode %v); chmod 600 it", path, info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// ReplaceFile makes b the content of path: a reader, also one after a crash, sees the old file or the new
// one, never a part.
func ReplaceFile(path string, b []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// ReadNote reads a small file of JSON into v, which stays as it is where the file is missing.
func ReadNote(path string, v any) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// WriteNote replaces a small file of JSON.
func WriteNote(path string, v any, mode os.FileMode) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("BUG: write %s: %w", path, err)
	}
	return ReplaceFile(path, append(b, '\n'), mode)
}
