package mount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"fairway/collector/p9"
)

// A forced remap or a lost forwarder leaves open whether a request was carried out. The operations below that are not
// harmless to repeat look, when they run again, whether what they find is their own doing or another node's.

// doubt is when an operation was under way whose answer was lost, each time.
type doubt []struct{ from, to time.Time }

const (
	// soon is how long after it was sent an operation is carried out that is taken for one's own. Nodes that wait for
	// one hung forwarder are moved one after the other, and repeat what may be alike.
	soon = time.Second
	// clockStep is how coarse the times of files may be, where they are not in seconds.
	clockStep = 20 * time.Millisecond
)

// run runs the operation once.
func (d *doubt) run(f func() error) error {
	from := time.Now()
	err := f()
	if errors.As(err, new(*p9.TransportError)) {
		*d = append(*d, struct{ from, to time.Time }{from, time.Now()})
	}
	return err
}

// covers says whether the last change of a file may be the operation's: whether it was made soon after that was sent
// and before the connection was lost, by the server's clock. That is read off the file's time of access, which becomes
// now. Who may not set it has not made the file, nor written to it.
func (d doubt) covers(ctx context.Context, fid *p9.Fid) (bool, error) {
	before, err := fid.GetAttr(ctx)
	asked := time.Now()
	if err == nil {
		err = fid.SetAttr(ctx, p9.SetAttr{Valid: p9.SetAtime})
	}
	answered := time.Now()
	after := before
	if err == nil {
		after, err = fid.GetAttr(ctx)
	}
	if err != nil {
		return false, noAnswer(err)
	}
	age := time.Duration(after.AtimeSec-before.MtimeSec)*time.Second + time.Duration(after.AtimeNsec-before.MtimeNsec)
	step := clockStep
	if before.MtimeNsec == 0 && after.AtimeNsec == 0 {
		step = time.Second
	}
	for _, lost := range d {
		latest := lost.from.Add(soon)
		if lost.to.Before(latest) {
			latest = lost.to
		}
		if !asked.Add(-age-step).After(latest) && !answered.Add(step-age).Before(lost.from) {
			return true, nil
		}
	}
	return false, nil
}

// settle is what has come of making a name in a directory: nil where it is there already because a run before, whose
// answer was lost, has made it.
func (d doubt) settle(ctx context.Context, dir *p9.Fid, name string, err error) error {
	if len(d) == 0 || !errors.Is(err, syscall.EEXIST) {
		return err
	}
	fid, failed := dir.Walk(ctx, name)
	if failed == nil {
		defer fid.ClunkLater()
		var mine bool
		if mine, failed = d.covers(ctx, fid); mine {
			return nil
		}
	}
	return cmp.Or(noAnswer(failed), err)
}

// noAnswer is an error that is not a server's answer; nil for others.
func noAnswer(err error) error {
	if err == io.EOF || errors.As(err, new(*p9.Error)) {
		return nil
	}
	return err
}

// make runs an operation that creates name in the directory, gives the new file to the caller and
// looks it up.
func (n *node) make(ctx context.Context, op opKind, name string, out *fuse.EntryOut,
	create func(dir *p9.Fid, gid uint32) error) (inode *fs.Inode, errno syscall.Errno) {
	var lost doubt
	made := false
	errno = n.doWith(ctx, op, func(ctx context.Context, s *session, dir *p9.Fid, _ int) (err error) {
		if !made {
			err = lost.run(func() error { return create(dir, callersGroup(ctx)) })
			if err = lost.settle(ctx, dir, name, err); err != nil {
				return err
			}
			made = true
		}
		inode, err = n.find(ctx, s, dir, name, out)
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
	inode, errno := n.make(ctx, opMkdir, name, out, func(dir *p9.Fid, gid uint32) error {
		return dir.Mkdir(ctx, name, mode, gid)
	})
	if errno == 0 && out.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return nil, syscall.ESTALE // another file by now; go-fuse would end the process
	}
	return inode, errno
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
			err := dir.Link(ctx, file, name)
			if retry > 0 && errors.Is(err, syscall.EEXIST) {
				if there, e := identify(ctx, dir, name); e == nil && other.is(s, there) {
					err = nil
				}
			}
			var a p9.Attr
			if err == nil {
				a, err = file.GetAttr(ctx)
			}
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
		if retry > 0 {
			there, err := identify(ctx, fid, name)
			if errors.Is(err, syscall.ENOENT) || err == nil && !n.childNode(name).is(s, there) {
				return nil // it was removed, and perhaps made anew by another node
			}
		}
		back, err := n.keepOpen(ctx, s, fid, name, nil)
		if err != nil {
			return err
		}
		if err = fid.Unlink(ctx, name, dir); errors.As(err, new(*p9.Error)) {
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
			c := n.childNode(name)
			if flags == unix.RENAME_NOREPLACE && retry == 0 {
				if _, err := identify(ctx, dir, to); err == nil {
					return &p9.Error{Op: "rename", Errno: syscall.EEXIST}
				}
			}
			back, err := target.keepOpen(ctx, s, dir, to, c)
			if err != nil {
				return err
			}
			err = from.Rename(ctx, name, dir, to)
			if retry > 0 && errors.Is(err, syscall.ENOENT) {
				if there, e := identify(ctx, dir, to); e == nil && c.is(s, there) {
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
}

// identify is the server's identity of what a name leads to.
func identify(ctx context.Context, dir *p9.Fid, name string) (p9.QID, error) {
	there, err := dir.Walk(ctx, name)
	if err != nil {
		return p9.QID{}, err
	}
	there.ClunkLater()
	return there.QID(), nil
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

// reserve keeps the file until it is released.
func (n *node) reserve() {
	n.mu.Lock()
	n.opens++
	n.mu.Unlock()
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

// maxDepth bounds the names of a path: more than the kernel takes.
const maxDepth = 4096

// path is the node's present place below the root. One that has none, or is inside itself, leads nowhere.
func (n *node) path() (names []string) {
	n.mu.Lock()
	gone := n.spare
	n.mu.Unlock()
	if gone != nil {
		return append(gone.dir.path(), gone.name)
	}
	for in := n.EmbeddedInode(); !in.IsRoot(); {
		name, up := in.Parent()
		if names = append(names, name); up == nil || len(names) > maxDepth {
			return []string{searched}
		}
		in = up
	}
	slices.Reverse(names)
	return names
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
