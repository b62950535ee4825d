package mount

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"fairway/collector/p9"
)

// A forced remap or a lost forwarder leaves open whether a request was carried out. The operations below that are not
// harmless to repeat take the second run's "it is so already" as the first run's success.
func already(err error, retry int, want syscall.Errno) bool {
	return retry > 0 && errors.Is(err, want)
}

// make runs an operation that creates name in the directory, gives the new file to the caller and
// looks it up.
func (n *node) make(ctx context.Context, op opKind, name string, out *fuse.EntryOut,
	create func(dir *p9.Fid, gid uint32) error) (inode *fs.Inode, errno syscall.Errno) {
	errno = n.doWith(ctx, op, func(ctx context.Context, s *session, dir *p9.Fid, retry int) (err error) {
		if err = create(dir, callersGroup(ctx)); err == nil || already(err, retry, syscall.EEXIST) {
			inode, err = n.find(ctx, s, dir, name, out)
		}
		return err
	})
	return inode, errno
}

// callersGroup is the group of who asked for an operation, which a new file gets.
func callersGroup(ctx context.Context) uint32 {
	if c, ok := fuse.FromContext(ctx); ok {
		return c.Gid
	}
	return 0
}

// Mkdir makes a directory.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.make(ctx, opMkdir, name, out, func(dir *p9.Fid, gid uint32) error {
		return dir.Mkdir(ctx, name, mode, gid)
	})
}

// Mknod makes a device, fifo or socket.
func (n *node) Mknod(ctx context.Context, name string, mode, dev uint32, out *fuse.EntryOut) (*fs.Inode,
	syscall.Errno) {
	return n.make(ctx, opMknod, name, out, func(dir *p9.Fid, gid uint32) error {
		return dir.Mknod(ctx, name, mode, unix.Major(uint64(dev)), unix.Minor(uint64(dev)), gid)
	})
}

// Symlink makes a symbolic link.
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.make(ctx, opSymlink, name, out, func(dir *p9.Fid, gid uint32) error {
		return dir.Symlink(ctx, name, target, gid)
	})
}

// Link makes another name of a file.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (inode *fs.Inode,
	errno syscall.Errno) {
	other, ok := target.EmbeddedInode().Operations().(*node)
	if !ok {
		return nil, syscall.EXDEV
	}
	errno = n.doWith(ctx, opLink, func(ctx context.Context, s *session, dir *p9.Fid, retry int) error {
		return other.with(ctx, s, func(file *p9.Fid) error {
			if err := dir.Link(ctx, file, name); err != nil && !already(err, retry, syscall.EEXIST) {
				return err
			}
			a, err := file.GetAttr(ctx)
			if err == nil {
				fill(&out.Attr, a)
				inode = other.EmbeddedInode()
			}
			return err
		})
	})
	return inode, errno
}

// Unlink removes a file's name.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, opUnlink, name, false)
}

// Rmdir removes an empty directory.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, opRmdir, name, true)
}

func (n *node) remove(ctx context.Context, op opKind, name string, dir bool) syscall.Errno {
	return n.doWith(ctx, op, func(ctx context.Context, s *session, fid *p9.Fid, retry int) error {
		back, err := n.keepOpen(ctx, s, fid, name, nil)
		if err != nil {
			return err
		}
		if err = fid.Unlink(ctx, name, dir); already(err, retry, syscall.ENOENT) {
			return nil
		}
		if errors.As(err, new(*p9.Error)) {
			back()
		}
		return err
	})
}

// Rename moves a name. The fids of everything below the old name point at old paths afterwards, so
// all kept fids are walked to again.
func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string,
	flags uint32) syscall.Errno {
	target, ok := parent.EmbeddedInode().Operations().(*node)
	if !ok {
		return syscall.EXDEV
	}
	if flags != 0 && flags != unix.RENAME_NOREPLACE {
		return syscall.EINVAL // exchange and whiteout are not in the protocol
	}
	return n.doWith(ctx, opRename, func(ctx context.Context, s *session, from *p9.Fid, retry int) error {
		return target.with(ctx, s, func(dir *p9.Fid) error {
			if flags == unix.RENAME_NOREPLACE && retry == 0 && exists(ctx, dir, to) {
				return &p9.Error{Op: "rename", Errno: syscall.EEXIST}
			}
			back, err := target.keepOpen(ctx, s, dir, to, n.childNode(name))
			if err != nil {
				return err
			}
			err = from.Rename(ctx, name, dir, to)
			if already(err, retry, syscall.ENOENT) && exists(ctx, dir, to) {
				err = nil
			}
			if errors.As(err, new(*p9.Error)) {
				back()
			}
			n.m.names.Add(1)
			return err
		})
	})
}

// exists reports whether a name can be walked to.
func exists(ctx context.Context, dir *p9.Fid, name string) bool {
	there, err := dir.Walk(ctx, name)
	if err == nil {
		there.ClunkLater()
	}
	return err == nil
}

// A forwarder knows files by their names, so a file that is removed while programs have it open would
// be lost to fstat, ftruncate and the next remap. As NFS clients do, the mount gives it another name
// in its directory first and removes that when the last program closes it.

// removedPrefix begins the names of removed files that are still open.
const removedPrefix = ".fairway-removed-"

// spare is the name of a removed file that is still open.
type spare struct {
	dir  *node
	name string
	uid  uint32 // who removed the file, and so may remove this name
}

// opened keeps a handle of the node until it is released.
func (n *node) opened(h *handle) {
	n.mu.Lock()
	n.opens++
	n.mu.Unlock()
	n.m.link.add(h)
}

// released takes note that a handle is gone; the last one takes a removed file's spare name away.
func (n *node) released(ctx context.Context) {
	n.mu.Lock()
	n.opens--
	var gone *spare
	if n.opens == 0 {
		gone, n.spare = n.spare, nil
	}
	n.mu.Unlock()
	if gone != nil {
		gone.dir.remove(asUser(ctx, gone.uid), opUnlink, gone.name, false)
	}
}

// path is the node's present place below the root.
func (n *node) path() []string {
	n.mu.Lock()
	gone := n.spare
	n.mu.Unlock()
	if gone != nil {
		return append(gone.dir.path(), gone.name)
	}
	if p := n.Path(n.m.root.EmbeddedInode()); p != "" {
		return strings.Split(p, "/")
	}
	return nil
}

// keepOpen gives the file behind a name of the directory a spare name if a program has it open; other
// is a node that needs none. back undoes it when the name stays after all. Where the file system has no
// hard links, the file is removed as it is.
func (n *node) keepOpen(ctx context.Context, s *session, dir *p9.Fid, name string, other *node) (back func(),
	err error) {
	back = func() {}
	c := n.childNode(name)
	if c == nil || c == other {
		return back, nil
	}
	c.mu.Lock()
	open, gone := c.opens > 0 && !c.IsDir(), c.spare
	c.mu.Unlock()
	switch {
	case !open || gone != nil && gone.name != name:
		return back, nil
	case gone != nil:
		return back, &p9.Error{Op: "remove " + name, Errno: syscall.EBUSY}
	}
	gone = &spare{n, fmt.Sprintf("%s%016x", removedPrefix, rand.Uint64()), n.m.userOf(ctx)}
	err = c.with(ctx, s, func(file *p9.Fid) error { return dir.Link(ctx, file, gone.name) })
	if errors.As(err, new(*p9.Error)) {
		return back, nil
	}
	if err != nil {
		return back, err
	}
	c.setSpare(gone)
	return func() {
		c.setSpare(nil)
		dir.Unlink(ctx, gone.name, false)
	}, nil
}

// setSpare changes the node's spare name; its fid is walked to again.
func (n *node) setSpare(to *spare) {
	n.mu.Lock()
	n.spare = to
	n.mu.Unlock()
	n.OnForget()
}

// childNode is the node that the kernel knows by a name of the directory, or nil.
func (n *node) childNode(name string) *node {
	if in := n.GetChild(name); in != nil {
		c, _ := in.Operations().(*node)
		return c
	}
	return nil
}
