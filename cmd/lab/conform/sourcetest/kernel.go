package sourcetest

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"syscall"
	"time"
)

// Kernel makes a tree of texts behave as the kernel's files do: every file has size 0, and the tables of LNet give
// one line a read, EINVAL to a buffer that is shorter than the line, and ESTALE once the table has changed since
// its first line.
type Kernel struct {
	fs.FS
	// Changes is asked before every read but a file's first whether the table has changed; nil: never.
	Changes func(name string) bool
}

// lineTables are the files that give one line a read.
var lineTables = []string{"peers", "routes", "routers", "nis"}

// Open opens a file. What is read stays as it was when it was opened.
func (k Kernel) Open(name string) (fs.File, error) {
	f, err := k.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err := f.Close(); err != nil {
		return nil, err
	}
	return &kernelFile{k: k, name: name, rest: text, info: info, lines: slices.Contains(lineTables, path.Base(name))},
		err
}

// ReadFile reads as os.ReadFile does a file of size 0: with 512 bytes free at least at every read.
func (k Kernel) ReadFile(name string) ([]byte, error) {
	f, err := k.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const free = 512
	out := make([]byte, 0, free)
	for {
		out = slices.Grow(out, free)
		n, err := f.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, &fs.PathError{Op: "read", Path: name, Err: err}
		}
	}
}

// ReadDir and Glob keep the tree's own.
func (k Kernel) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(k.FS, name) }

// kernelFile is one open file.
type kernelFile struct {
	k     Kernel
	name  string
	rest  []byte
	info  fs.FileInfo
	lines bool
	begun bool
}

func (f *kernelFile) Close() error               { return nil }
func (f *kernelFile) Stat() (fs.FileInfo, error) { return noSize{f.info}, nil }

func (f *kernelFile) Read(into []byte) (int, error) {
	if f.begun && f.lines && len(f.rest) > 0 && f.k.Changes != nil && f.k.Changes(f.name) {
		return 0, syscall.ESTALE
	}
	f.begun = true
	if len(f.rest) == 0 {
		return 0, io.EOF
	}
	n := min(len(into), len(f.rest))
	if f.lines {
		end := bytes.IndexByte(f.rest, '\n') + 1
		if end == 0 {
			end = len(f.rest)
		}
		if len(into) < end {
			return 0, syscall.EINVAL
		}
		n = end
	}
	copy(into, f.rest[:n])
	f.rest = f.rest[n:]
	return n, nil
}

// noSize is a file of /proc.
type noSize struct{ fs.FileInfo }

func (noSize) Size() int64        { return 0 }
func (noSize) ModTime() time.Time { return time.Time{} }
