package mount

import (
	"context"
	"errors"
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
	errno = n.m.do(ctx, op, func(ctx context.Context, s *session, retry int) error {
		return n.with(ctx, s, func(dir *p9.Fid) error {
			if err := create(dir, callersGroup(ctx)); err != nil && !already(err, retry, syscall.EEXIST) {
				return err
			}
			fid, err := dir.Walk(ctx, name)
			if err != nil {
				return err
			}
			a, err := fid.GetAttr(ctx)
			if err != nil {
				fid.ClunkLater()
				return err
			}
			inode = n.child(ctx, s, name, fid, a, out)
			return nil
		})
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
		_, err := dir.Mkdir(ctx, name, mode, gid)
		return err
	})
}

// Mknod makes a device, fifo or socket.
func (n *node) Mknod(ctx context.Context, name string, mode, dev uint32, out *fuse.EntryOut) (*fs.Inode,
	syscall.Errno) {
	return n.make(ctx, opMknod, name, out, func(dir *p9.Fid, gid uint32) error {
		_, err := dir.Mknod(ctx, name, mode, unix.Major(uint64(dev)), unix.Minor(uint64(dev)), gid)
		return err
	})
}

// Symlink makes a symbolic link.
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.make(ctx, opSymlink, name, out, func(dir *p9.Fid, gid uint32) error {
		_, err := dir.Symlink(ctx, name, target, gid)
		return err
	})
}

// Link makes another name of a file.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (inode *fs.Inode,
	errno syscall.Errno) {
	other, ok := target.EmbeddedInode().Operations().(*node)
	if !ok {
		return nil, syscall.EXDEV
	}
	errno = n.m.do(ctx, opLink, func(ctx context.Context, s *session, retry int) error {
		return n.with(ctx, s, func(dir *p9.Fid) error {
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
	return n.m.do(ctx, op, func(ctx context.Context, s *session, retry int) error {
		return n.with(ctx, s, func(fid *p9.Fid) error {
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
	return n.m.do(ctx, opRename, func(ctx context.Context, s *session, retry int) error {
		return n.with(ctx, s, func(from *p9.Fid) error {
			return target.with(ctx, s, func(dir *p9.Fid) error {
				if flags == unix.RENAME_NOREPLACE && retry == 0 {
					if there, err := dir.Walk(ctx, to); err == nil {
						there.ClunkLater()
						return &p9.Error{Op: "rename", Errno: syscall.EEXIST}
					}
				}
				back, err := target.keepOpen(ctx, s, dir, to, n.childNode(name))
				if err != nil {
					return err
				}
				err = from.Rename(ctx, name, dir, to)
				if already(err, retry, syscall.ENOENT) {
					if there, e := dir.Walk(ctx, to); e == nil {
						there.ClunkLater()
						err = nil
					}
				}
				if errors.As(err, new(*p9.Error)) {
					back()
				}
				n.m.names.Add(1)
				return err
			})
		})
	})
}
