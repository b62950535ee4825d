package p9

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"
	"time"
)

const attrBasic = 0x7ff // everything stat(2) gives

// GetAttr reads the file's attributes.
func (f *Fid) GetAttr(ctx context.Context) (Attr, error) {
	var a Attr
	err := f.c.call(ctx, "getattr", tGetattr, func(e *encoder) {
		e.u32(f.id)
		e.u64(attrBasic)
	}, func(d *decoder) { a = d.attr() })
	if err == nil && !a.possible() {
		err = fmt.Errorf("getattr: mode %o, %d bytes: no file has these: %w", a.Mode, a.Size, syscall.EIO)
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
	return a.Size <= math.MaxInt64 && max(a.AtimeNsec, a.MtimeNsec, a.CtimeNsec) < second
}

// SetAttr changes the file's attributes.
func (f *Fid) SetAttr(ctx context.Context, s SetAttr) error {
	return f.c.call(ctx, "setattr", tSetattr, func(e *encoder) {
		e.u32(f.id)
		e.u32(s.Valid)
		e.u32(s.Mode)
		e.u32(s.UID)
		e.u32(s.GID)
		e.u64(s.Size)
		e.u64(s.AtimeSec)
		e.u64(s.AtimeNsec)
		e.u64(s.MtimeSec)
		e.u64(s.MtimeNsec)
	}, nil)
}

// ReadDir reads entries of an open directory behind an offset (0 is the start, then the last entry's
// Offset); an empty answer is the end.
func (f *Fid) ReadDir(ctx context.Context, offset uint64) ([]Dirent, error) {
	var out []Dirent
	err := f.c.call(ctx, "readdir", tReaddir, func(e *encoder) {
		e.u32(f.id)
		e.u64(offset)
		e.u32(f.c.IOUnit())
	}, func(d *decoder) {
		n := int(d.u32())
		if d.err != nil || n != len(d.b) {
			d.err = errShort
			return
		}
		out, d.err = dirents(d.b)
	})
	return out, err
}

// Mkdir creates a directory in the directory f.
func (f *Fid) Mkdir(ctx context.Context, name string, mode, gid uint32) (QID, error) {
	var q QID
	err := f.c.call(ctx, "mkdir "+name, tMkdir, func(e *encoder) {
		e.u32(f.id)
		e.str(name)
		e.u32(mode)
		e.u32(gid)
	}, func(d *decoder) { q = d.qid() })
	return q, err
}

// Mknod creates a device, fifo or socket in the directory f.
func (f *Fid) Mknod(ctx context.Context, name string, mode, major, minor, gid uint32) (QID, error) {
	var q QID
	err := f.c.call(ctx, "mknod "+name, tMknod, func(e *encoder) {
		e.u32(f.id)
		e.str(name)
		e.u32(mode)
		e.u32(major)
		e.u32(minor)
		e.u32(gid)
	}, func(d *decoder) { q = d.qid() })
	return q, err
}

// Symlink creates a symbolic link in the directory f.
func (f *Fid) Symlink(ctx context.Context, name, target string, gid uint32) (QID, error) {
	var q QID
	err := f.c.call(ctx, "symlink "+name, tSymlink, func(e *encoder) {
		e.u32(f.id)
		e.str(name)
		e.str(target)
		e.u32(gid)
	}, func(d *decoder) { q = d.qid() })
	return q, err
}

// Readlink reads a symbolic link's target.
func (f *Fid) Readlink(ctx context.Context) (string, error) {
	var s string
	err := f.c.call(ctx, "readlink", tReadlink, func(e *encoder) { e.u32(f.id) }, func(d *decoder) { s = d.str() })
	return s, err
}

// Link makes name in the directory f another name of the file target.
func (f *Fid) Link(ctx context.Context, target *Fid, name string) error {
	return f.c.call(ctx, "link "+name, tLink, func(e *encoder) {
		e.u32(f.id)
		e.u32(target.id)
		e.str(name)
	}, nil)
}

// Fsync flushes the open file to storage.
func (f *Fid) Fsync(ctx context.Context, dataOnly bool) error {
	return f.c.call(ctx, "fsync", tFsync, func(e *encoder) {
		e.u32(f.id)
		if dataOnly {
			e.u32(1)
		} else {
			e.u32(0)
		}
	}, nil)
}

// StatFS reads the file system's size and free space.
func (f *Fid) StatFS(ctx context.Context) (StatFS, error) {
	var s StatFS
	err := f.c.call(ctx, "statfs", tStatfs, func(e *encoder) { e.u32(f.id) }, func(d *decoder) { s = d.statfs() })
	return s, err
}

// Rename moves name from the directory f to another directory and name. Servers without Trenameat
// (diod before 1.1) get a walk and Trename.
func (f *Fid) Rename(ctx context.Context, name string, dir *Fid, to string) error {
	err := f.c.tryAt(func() error {
		return f.c.call(ctx, "renameat "+name, tRenameat, func(e *encoder) {
			e.u32(f.id)
			e.str(name)
			e.u32(dir.id)
			e.str(to)
		}, nil)
	})
	if !errors.Is(err, errNoAt) {
		return err
	}
	file, err := f.Walk(ctx, name)
	if err != nil {
		return err
	}
	defer file.ClunkLater()
	return f.c.call(ctx, "rename "+name, tRename, func(e *encoder) {
		e.u32(file.id)
		e.u32(dir.id)
		e.str(to)
	}, nil)
}

// atRemoveDir is the flag of unlinkat(2) for directories.
const atRemoveDir = 0x200

// Unlink removes name from the directory f. Servers without Tunlinkat get a walk and Tremove.
func (f *Fid) Unlink(ctx context.Context, name string, dir bool) error {
	err := f.c.tryAt(func() error {
		return f.c.call(ctx, "unlinkat "+name, tUnlinkat, func(e *encoder) {
			e.u32(f.id)
			e.str(name)
			if dir {
				e.u32(atRemoveDir)
			} else {
				e.u32(0)
			}
		}, nil)
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

// ReadFile reads a whole small file below f, such as one of a control tree. More than limit bytes is
// an error.
func (f *Fid) ReadFile(ctx context.Context, limit int, names ...string) ([]byte, error) {
	g, err := f.Walk(ctx, names...)
	if err != nil {
		return nil, err
	}
	defer g.ClunkLater()
	if err := g.Open(ctx, syscall.O_RDONLY); err != nil {
		return nil, err
	}
	var out []byte
	buf := make([]byte, min(limit+1, int(g.chunk)))
	for {
		// A control file's size is not known and its reads may be short before the end.
		n, err := g.ReadAt(ctx, buf, int64(len(out)))
		out = append(out, buf[:n]...)
		switch {
		case err != nil && err != io.EOF:
			return nil, err
		case len(out) > limit:
			return nil, fmt.Errorf("%v at %s: more than %d bytes", names, f.c.addr, limit)
		case n == 0:
			return out, nil
		}
	}
}

// TimeGetAttr measures one getattr: with f in a tree's worker pool it is what a metadata request
// waits there now.
func (f *Fid) TimeGetAttr(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	_, err := f.GetAttr(ctx)
	return time.Since(start), err
}
