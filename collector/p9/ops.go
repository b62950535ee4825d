package p9

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"syscall"
	"time"
)

const attrBasic = 0x7ff // everything stat(2) gives

// GetAttr reads the file's attributes.
func (f *Fid) GetAttr(ctx context.Context) (Attr, error) {
	var a Attr
	err := f.c.call(ctx, "getattr", TGetattr, func(d *Decoder) { a = d.attr() }, f.id, uint64(attrBasic))
	if err == nil && !a.possible() {
		err = fmt.Errorf("getattr: number %d, mode %o, %d bytes: no file has these: %w", a.QID.Path, a.Mode, a.Size,
			syscall.EIO)
	}
	return a, err
}

// possible reports whether a file can have these attributes. A kernel that is shown others gives the file up for good.
func (a *Attr) possible() bool {
	switch a.Mode & syscall.S_IFMT {
	case syscall.S_IFREG, syscall.S_IFDIR, syscall.S_IFLNK, syscall.S_IFCHR, syscall.S_IFBLK, syscall.S_IFIFO,
		syscall.S_IFSOCK:
	default:
		return false
	}
	const second = 1e9
	return a.Size <= math.MaxInt64 && a.QID.Path != math.MaxUint64 &&
		max(a.AtimeNsec, a.MtimeNsec, a.CtimeNsec) < second
}

// SetAttr changes the file's attributes.
func (f *Fid) SetAttr(ctx context.Context, s SetAttr) error {
	return f.c.call(ctx, "setattr", TSetattr, nil, f.id, s.Valid, s.Mode, s.UID, s.GID, s.Size, s.AtimeSec, s.AtimeNsec,
		s.MtimeSec, s.MtimeNsec)
}

// ReadDir reads entries of an open directory behind an offset (0 is the start, then the last entry's
// Offset); an empty answer is the end.
func (f *Fid) ReadDir(ctx context.Context, offset uint64) ([]Dirent, error) {
	var out []Dirent
	err := f.c.call(ctx, "readdir", TReaddir, func(d *Decoder) {
		n := int(d.U32())
		if d.Err != nil || n != len(d.Rest) {
			d.Err = errShort
			return
		}
		out, d.Err = dirents(d.Rest)
	}, f.id, offset, f.c.IOUnit())
	return out, err
}

// Mkdir creates a directory in the directory f.
func (f *Fid) Mkdir(ctx context.Context, name string, mode, gid uint32) error {
	return f.c.call(ctx, "mkdir "+name, TMkdir, nil, f.id, name, mode, gid)
}

// Mknod creates a device, fifo or socket in the directory f.
func (f *Fid) Mknod(ctx context.Context, name string, mode, major, minor, gid uint32) error {
	return f.c.call(ctx, "mknod "+name, TMknod, nil, f.id, name, mode, major, minor, gid)
}

// Symlink creates a symbolic link in the directory f.
func (f *Fid) Symlink(ctx context.Context, name, target string, gid uint32) error {
	return f.c.call(ctx, "symlink "+name, TSymlink, nil, f.id, name, target, gid)
}

// Readlink reads a symbolic link's target.
func (f *Fid) Readlink(ctx context.Context) (s string, err error) {
	err = f.c.call(ctx, "readlink", TReadlink, func(d *Decoder) { s = d.Text() }, f.id)
	return s, err
}

// Link makes name in the directory f another name of the file target.
func (f *Fid) Link(ctx context.Context, target *Fid, name string) error {
	return f.c.call(ctx, "link "+name, TLink, nil, f.id, target.id, name)
}

// Fsync flushes the open file to storage; mode 1: its data only.
func (f *Fid) Fsync(ctx context.Context, mode uint32) error {
	return f.c.call(ctx, "fsync", TFsync, nil, f.id, mode)
}

// StatFS reads the file system's size and free space.
func (f *Fid) StatFS(ctx context.Context) (s StatFS, err error) {
	err = f.c.call(ctx, "statfs", TStatfs, func(d *Decoder) { s = d.statfs() }, f.id)
	return s, err
}

// Rename moves name from the directory f to another directory and name. Servers without Trenameat
// (diod before 1.1) get a walk and Trename.
func (f *Fid) Rename(ctx context.Context, name string, dir *Fid, to string) error {
	err := f.c.tryAt(func() error {
		return f.c.call(ctx, "renameat "+name, TRenameat, nil, f.id, name, dir.id, to)
	})
	if !errors.Is(err, errNoAt) {
		return err
	}
	file, err := f.Walk(ctx, name)
	if err != nil {
		return err
	}
	defer file.ClunkLater()
	return f.c.call(ctx, "rename "+name, TRename, nil, file.id, dir.id, to)
}

// atRemoveDir is the flag of unlinkat(2) for directories.
const atRemoveDir = 0x200

// Unlink removes name from the directory f. Servers without Tunlinkat get a walk and Tremove.
func (f *Fid) Unlink(ctx context.Context, name string, dir bool) error {
	flags := uint32(0)
	if dir {
		flags = atRemoveDir
	}
	err := f.c.tryAt(func() error {
		return f.c.call(ctx, "unlinkat "+name, TUnlinkat, nil, f.id, name, flags)
	})
	if !errors.Is(err, errNoAt) {
		return err
	}
	file, err := f.Walk(ctx, name)
	if err != nil {
		return err
	}
	if file.qid.IsDir() != dir {
		file.ClunkLater()
		if dir {
			return &Error{"remove " + name, syscall.ENOTDIR}
		}
		return &Error{"remove " + name, syscall.EISDIR}
	}
	return file.Remove(ctx)
}

var errNoAt = errors.New("the server has no *at operations")

// tryAt runs one of the *at operations unless the server is known to lack them, and remembers when it
// turns out so.
func (c *Client) tryAt(op func() error) error {
	c.mu.Lock()
	no := c.noAt
	c.mu.Unlock()
	if no {
		return errNoAt
	}
	err := op()
	if errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP) {
		c.mu.Lock()
		c.noAt = true
		c.mu.Unlock()
		return errNoAt
	}
	return err
}

// ReadFile reads a file of a control tree below f into buf, grown as needed; more than limit bytes are an error. Where
// it fits into buf that takes four requests: its size is not known, and a short read with a whole last line ends it.
func (f *Fid) ReadFile(ctx context.Context, buf []byte, limit int, name string) ([]byte, error) {
	const first = 16 << 10
	if buf = buf[:0]; cap(buf) < first {
		buf = make([]byte, 0, first)
	}
	g, err := f.Walk(ctx, name)
	if err != nil {
		return buf, err
	}
	defer g.ClunkLater() // a hung forwarder must not hold the caller past its deadline
	if err := g.Open(ctx, syscall.O_RDONLY); err != nil {
		return buf, err
	}
	for {
		room := buf[len(buf):cap(buf)]
		n, err := g.ReadAt(ctx, room, int64(len(buf)))
		buf = buf[:len(buf)+n]
		switch {
		case err != nil && err != io.EOF:
			return buf, err
		case len(buf) > limit:
			return buf, fmt.Errorf("%s at %s: more than %d bytes", name, f.c.addr, limit)
		case n == 0, n < len(room) && buf[len(buf)-1] == '\n':
			return buf, nil
		}
		buf = slices.Grow(buf, 1)
	}
}

// TimeGetAttr measures one getattr: with f in a tree's worker pool it is what a metadata request
// waits there now.
func (f *Fid) TimeGetAttr(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	_, err := f.GetAttr(ctx)
	return time.Since(start), err
}
