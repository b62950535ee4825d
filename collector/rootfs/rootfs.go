// Package rootfs reads the files below a node's root for sources, once a second or more often: most of what they cost
// is system calls. A file takes four of them, where os.ReadFile takes nine for what Go's poller cannot wait for. A FIFO
// in a file's place is refused where os.ReadFile would wait for a writer, and of an endless file no more is read than
// shows that it is one.
package rootfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	// maxFile bounds a file, bytes: job_stats of a busy server's target have some ten MB.
	maxFile = 64 << 20
	// usual is what most files have at most, and free what a read always has room for: LNet gives one line a read, and
	// none to a buffer that is shorter.
	usual, free = 2 << 10, 512
)

// Root is a folder that stands for a node's root.
type Root struct {
	fs.FS // what os.DirFS makes of it
	dir   string
}

var _ interface {
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
	fs.ReadLinkFS
} = Root{}

// At returns the file system below dir.
func At(dir string) Root { return Root{os.DirFS(dir), dir} }

// ReadDir lists a folder.
func (r Root) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

// Stat describes what a name leads to.
func (r Root) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

// Lstat describes a name, which may be a link's.
func (r Root) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.FS, name) }

// ReadLink says where a link leads.
func (r Root) ReadLink(name string) (string, error) { return fs.ReadLink(r.FS, name) }

// ReadFile reads a whole file.
func (r Root) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	var fd int
	err := again(func() (err error) {
		fd, err = syscall.Open(filepath.Join(r.dir, name), syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer syscall.Close(fd)
	b, err := readAll(fd)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return b, nil
}

var errNoFile = errors.New("it is neither a file nor a link to one")

func readAll(fd int) ([]byte, error) {
	b := make([]byte, 0, usual)
	for len(b) <= maxFile {
		b = slices.Grow(b, free)
		var n int
		err := again(func() (err error) {
			n, err = syscall.Read(fd, b[len(b):cap(b)])
			return err
		})
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return nil, errNoFile
		case err != nil:
			return nil, err
		case n == 0 && len(b) == 0:
			return b, isFile(fd)
		case n == 0:
			return b, nil
		}
		b = b[:len(b)+n]
	}
	return nil, fmt.Errorf("it has more than %d bytes and is not read", maxFile)
}

// isFile refuses what nobody writes to: a FIFO looks like an empty file then.
func isFile(fd int) error {
	var st syscall.Stat_t
	if err := again(func() error { return syscall.Fstat(fd, &st) }); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return errNoFile
	}
	return nil
}

// again calls a system call until no signal interrupts it.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// ReadOfSelf reads a file of this process below a proc, or, where proc is another PID namespace's, of the first one.
func ReadOfSelf(files fs.FS, proc, name string) ([]byte, error) {
	b, err := fs.ReadFile(files, path.Join(proc, "self", name))
	if errors.Is(err, fs.ErrNotExist) {
		b, err = fs.ReadFile(files, path.Join(proc, "1", name))
	}
	return b, err
}

// CPUTime is how long a process has had a processor. The line's command, which may hold spaces and brackets, ends at
// the last bracket; user and system time are in hundredths of a second on every Linux.
func CPUTime(proc fs.FS, pid int) (seconds float64, err error) {
	name := strconv.Itoa(pid) + "/stat"
	text, err := fs.ReadFile(proc, name)
	if err != nil {
		return 0, err
	}
	const user, system, perSecond = 11, 12, 100 // behind the command
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) <= system {
		return 0, fmt.Errorf("%s: %d fields behind the command, want more than %d", name, len(f), system)
	}
	u, bad := strconv.ParseUint(f[user], 10, 62)
	s, also := strconv.ParseUint(f[system], 10, 62)
	if err := errors.Join(bad, also); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return float64(u+s) / perSecond, nil
}
