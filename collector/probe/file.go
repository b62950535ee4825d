package probe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ByFile probes a forwarder through a file system that is mounted through it.
type ByFile struct {
	Dir  string // in that file system, and writable
	File string
	Size int
}

// Bytes implements Way.
func (w ByFile) Bytes() int { return 2 * w.Size }

// Probe implements Way. Data goes to the server before the write counts as done, and this host's
// cache is dropped before the read. A hung mount holds its probe's goroutine until it answers; the
// runner asks no second one meanwhile.
func (w ByFile) Probe(ctx context.Context) (Took, error) {
	type answer struct {
		took Took
		err  error
	}
	done := make(chan answer, 1)
	begun := time.Now()
	go func() { // ends with the file system's answer
		t, err := w.io()
		done <- answer{t, err}
	}()
	select {
	case a := <-done:
		return a.took, a.err
	case <-ctx.Done():
		return Took{Write: time.Since(begun)}, fmt.Errorf("canary: %s does not answer: %w", w.Dir, ctx.Err())
	}
}

func (w ByFile) io() (took Took, err error) {
	path := filepath.Join(w.Dir, w.File)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return took, fmt.Errorf("canary: %w", err)
	}
	defer f.Close()
	buf := make([]byte, w.Size)
	begun := time.Now()
	if _, err = f.WriteAt(buf, 0); err == nil {
		err = f.Sync()
	}
	took.Write = time.Since(begun)
	if err != nil {
		return took, fmt.Errorf("canary: write: %w", err)
	}
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // advice: without it the read is quicker than it should be
	begun = time.Now()
	_, err = f.ReadAt(buf, 0)
	took.Read = time.Since(begun)
	if err != nil {
		return took, fmt.Errorf("canary: read: %w", err)
	}
	begun = time.Now()
	_, err = os.Stat(path)
	took.Meta = time.Since(begun)
	if err != nil {
		return took, fmt.Errorf("canary: %w", err)
	}
	return took, nil
}
