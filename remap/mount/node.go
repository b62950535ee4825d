package mount

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"fairway/collector/p9"
)

// node is one file or directory that the kernel knows. Its place in the tree is the Inode's; each user's fid of it at
// the current session is walked to when first needed and kept.
type node struct {
	fs.Inode
	m *Mount

	changes atomic.Uint64 // counts what has changed the file's data through this mount

	mu    sync.Mutex // guards everything below
	refs  []*ref     // one a user, for those who walked here
	opens int        // open handles
	spare *spare     // the name of a file that was removed while open
}

// ref is a counted fid of a node, good for one user, one session and one state of the names.
type ref struct {
	fid     *p9.Fid
	user    *user
	session *session
	names   uint64 // Mount.names when it was walked to
	uses    int    // guarded by node.mu; one of them is the node's own while node.refs holds it
}

// acquire returns a fid of the node at the session for the operation's user, to be given back with release.
func (n *node) acquire(ctx context.Context, s *session) (*ref, error) {
	names, uid := n.m.names.Load(), n.m.userOf(ctx)
	n.mu.Lock()
	for _, r := range n.refs {
		if r.user.uid == uid && r.session == s && r.names == names {
			r.uses++
			n.mu.Unlock()
			r.user.touch()
			return r, nil
		}
	}
	n.mu.Unlock()
	u, err := s.users.enter(ctx, uid) // held until the fid is kept: a user whose attach goes takes the fids along
	if err != nil {
		return nil, err
	}
	defer s.users.leave(u)
	fid, err := n.walkAs(ctx, s, u)
	if err != nil {
		return nil, err
	}
	return n.keep(&ref{fid: fid, user: u, session: s, names: names, uses: 1}), nil
}

// keep makes r the node's own fid of its user and leaves one use with the caller. Fids of sessions that are over go.
func (n *node) keep(r *ref) *ref {
	kept, over := r.user.keeps(n, true)
	if !kept {
		return r
	}
	n.take(func(old *ref) bool { return old.user.uid == r.user.uid || old.session != r.session }, r)
	if over != nil {
		over.forgetOf(r.user)
	}
	return r
}

// take takes the refs that fit out of the node and adds one, if it is given.
func (n *node) take(fits func(*ref) bool, add *ref) (found bool) {
	var gone []*ref
	n.mu.Lock()
	kept := n.refs[:0]
	for _, r := range n.refs {
		if fits(r) {
			gone = append(gone, r)
		} else {
			kept = append(kept, r)
		}
	}
	clear(n.refs[len(kept):])
	n.refs = kept
	if add != nil {
		add.uses++
		n.refs = append(n.refs, add)
	}
	n.mu.Unlock()
	for _, r := range gone {
		n.release(r)
	}
	return len(gone) > 0
}

// forgetOf gives the fids of a user back.
func (n *node) forgetOf(u *user) { n.take(func(r *ref) bool { return r.user == u }, nil) }

// release gives a use back; the last one clunks the fid.
func (n *node) release(r *ref) {
	n.mu.Lock()
	r.uses--
	last := r.uses == 0
	n.mu.Unlock()
	if last {
		r.fid.ClunkLater()
	}
}

// walk goes to the node's present path from the root of the operation's user.
func (n *node) walk(ctx context.Context, s *session) (*p9.Fid, error) {
	u, err := s.users.enter(ctx, n.m.userOf(ctx))
	if err != nil {
		return nil, err
	}
	defer s.users.leave(u)
	return n.walkAs(ctx, s, u)
}

// walkAs is walk for a user who has entered. Where another node has put another file there it is ESTALE.
func (n *node) walkAs(ctx context.Context, s *session, u *user) (*p9.Fid, error) {
	fid, err := u.root.Walk(ctx, n.path()...)
	if err == nil && !n.is(s, fid.QID()) {
		fid.ClunkLater()
		return nil, &p9.Error{Op: "walk", Errno: syscall.ESTALE}
	}
	return fid, err
}

// is says that a server's identity is that of the node's file. Servers that number the same tree otherwise than the
// first one are taken at their word; a node that is not known is every file.
func (n *node) is(s *session, qid p9.QID) bool {
	return n == nil || n.IsRoot() || qid.Path == n.StableAttr().Ino || s.root.QID().Path != n.m.link.number
}

// openAt walks to the node and opens it with flags that are safe to repeat; again says that a program has
// it open already.
func (n *node) openAt(ctx context.Context, s *session, flags uint32, again bool) (*p9.Fid, error) {
	fid, err := n.walk(ctx, s)
	if err != nil {
		return nil, err
	}
	open := func() error { return fid.Open(ctx, flags) }
	if again {
		err = n.asOwner(ctx, fid, open)
	} else {
		err = open()
	}
	if err != nil {
		fid.ClunkLater()
		return nil, err
	}
	return fid, nil
}

// OnForget gives the fids back when the kernel forgets the file.
func (n *node) OnForget() {
	n.take(func(r *ref) bool {
		r.user.keeps(n, false)
		return true
	}, nil)
}

// with runs f with the node's fid; a fid whose path went away under it (renamed by another client) is
// walked to once more.
func (n *node) with(ctx context.Context, s *session, f func(*p9.Fid) error) error {
	for again := range 2 {
		r, err := n.acquire(ctx, s)
		if err != nil {
			return err
		}
		err = f(r.fid)
		n.release(r)
		gone := errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESTALE)
		if again == 1 || !gone || !n.take(func(kept *ref) bool { return kept == r }, nil) {
			return err
		}
	}
	return nil
}

// doWith is Mount.do with the node's fid.
func (n *node) doWith(ctx context.Context, op opKind,
	f func(ctx context.Context, s *session, fid *p9.Fid, retry int) error) syscall.Errno {
	return n.m.do(ctx, op, func(ctx context.Context, s *session, retry int) error {
		return n.with(ctx, s, func(fid *p9.Fid) error { return f(ctx, s, fid, retry) })
	})
}

// child makes the inode of a file that was just walked to by name or created, keeping its fid; without a fid there is
// none to keep. A file that is known by that name keeps its inode: a new one would only be dropped for it, and its fid
// be lost.
func (n *node) child(ctx context.Context, s *session, name string, fid *p9.Fid, a p9.Attr,
	out *fuse.EntryOut) *fs.Inode {
	fill(&out.Attr, a)
	attr := fs.StableAttr{Mode: a.Mode & syscall.S_IFMT, Ino: a.QID.Path}
	c := n.childNode(name)
	if c == nil || c.StableAttr() != attr {
		c = &node{m: n.m}
	}
	inode := n.NewInode(ctx, c, attr)
	if fid != nil {
		c.keepWalked(ctx, s, fid)
	}
	return inode
}

// keepWalked makes a fid that was walked to from another node the node's own.
func (n *node) keepWalked(ctx context.Context, s *session, fid *p9.Fid) {
	names := n.m.names.Load()
	u, err := s.users.enter(ctx, n.m.userOf(ctx))
	if err != nil {
		fid.ClunkLater()
		return
	}
	n.release(n.keep(&ref{fid: fid, user: u, session: s, names: names, uses: 1}))
	s.users.leave(u)
}

// fill turns 9P attributes into the kernel's.
func fill(out *fuse.Attr, a p9.Attr) {
	*out = fuse.Attr{
		Ino: a.QID.Path, Size: a.Size, Blocks: a.Blocks, Mode: a.Mode, Nlink: uint32(a.Nlink),
		Atime: a.AtimeSec, Mtime: a.MtimeSec, Ctime: a.CtimeSec,
		Atimensec: uint32(a.AtimeNsec), Mtimensec: uint32(a.MtimeNsec), Ctimensec: uint32(a.CtimeNsec),
		Owner: fuse.Owner{Uid: a.UID, Gid: a.GID}, Rdev: uint32(a.Rdev), Blksize: blockSize,
	}
}

// blockSize is what programs are advised to read and write at once, bytes.
const blockSize = 128 << 10

// Lookup finds a name in the directory.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (inode *fs.Inode, errno syscall.Errno) {
	errno = n.doWith(ctx, opLookup, func(ctx context.Context, s *session, dir *p9.Fid, _ int) (err error) {
		inode, err = n.find(ctx, s, dir, name, out)
		return err
	})
	return inode, errno
}

// find walks to a name in the directory dir and makes its inode.
func (n *node) find(ctx context.Context, s *session, dir *p9.Fid, name string, out *fuse.EntryOut) (*fs.Inode, error) {
	fid, err := dir.Walk(ctx, name)
	if err != nil {
		return nil, err
	}
	a, err := fid.GetAttr(ctx)
	if err != nil {
		fid.ClunkLater()
		return nil, err
	}
	return n.child(ctx, s, name, fid, a, out), nil
}

// withOpen is with; where the path is gone although the file is open, a server that knows open files
// by more than their path still answers for the handle's fid.
func (n *node) withOpen(ctx context.Context, s *session, fh fs.FileHandle, f func(*p9.Fid) error) error {
	err := n.with(ctx, s, f)
	h, open := fh.(*handle)
	if !open || !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ESTALE) {
		return err
	}
	fid, err := h.at(ctx, s)
	if err != nil {
		return err
	}
	return f(fid)
}

// attributes reads the node's attributes; a spare name is nobody's link.
func (n *node) attributes(ctx context.Context, s *session, fid *p9.Fid, out *fuse.Attr) error {
	a, err := fid.GetAttr(ctx)
	if err != nil {
		return err
	}
	if a.Mode&syscall.S_IFMT != n.StableAttr().Mode || !n.is(s, a.QID) {
		// Another file by now; of a changed kind the kernel would give the inode up for good.
		return &p9.Error{Op: "getattr", Errno: syscall.ESTALE}
	}
	n.mu.Lock()
	if n.spare != nil && a.Nlink > 0 {
		a.Nlink--
	}
	n.mu.Unlock()
	fill(out, a)
	return nil
}

// Getattr reads the attributes.
func (n *node) Getattr(ctx context.Context, fh fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.m.do(ctx, opGetattr, func(ctx context.Context, s *session, _ int) error {
		if h, open := fh.(*handle); open {
			ctx = asUser(ctx, h.uid)
		}
		return n.withOpen(ctx, s, fh, func(fid *p9.Fid) error { return n.attributes(ctx, s, fid, &out.Attr) })
	})
}

// Setattr changes mode, owner, size and times.
func (n *node) Setattr(ctx context.Context, fh fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	set := setAttr(in)
	defer n.changes.Add(1)
	return n.m.do(ctx, opSetattr, func(ctx context.Context, s *session, _ int) error {
		h, open := fh.(*handle)
		writes := open && set.Valid&p9.SetSize != 0 && h.flags&syscall.O_ACCMODE != syscall.O_RDONLY
		if writes {
			ctx = asUser(ctx, h.uid) // who opened the file may have given it to another
		}
		return n.withOpen(ctx, s, fh, func(fid *p9.Fid) error {
			change := func() error { return fid.SetAttr(ctx, set) }
			var err error
			if writes {
				// What is cut must be the file that was opened.
				if err = n.attributes(ctx, s, fid, &out.Attr); err == nil {
					err = n.asOwner(ctx, fid, change)
				}
			} else {
				err = change()
			}
			if err != nil {
				return err
			}
			return n.attributes(ctx, s, fid, &out.Attr)
		})
	})
}

func setAttr(in *fuse.SetAttrIn) p9.SetAttr {
	set := p9.SetAttr{Mode: in.Mode, UID: in.Uid, GID: in.Gid, Size: in.Size,
		AtimeSec: in.Atime, AtimeNsec: uint64(in.Atimensec), MtimeSec: in.Mtime, MtimeNsec: uint64(in.Mtimensec)}
	for _, bit := range []struct{ fuse, p9 uint32 }{
		{fuse.FATTR_MODE, p9.SetMode}, {fuse.FATTR_UID, p9.SetUID}, {fuse.FATTR_GID, p9.SetGID},
		{fuse.FATTR_SIZE, p9.SetSize},
		{fuse.FATTR_ATIME_NOW, p9.SetAtime}, {fuse.FATTR_ATIME, p9.SetAtime | p9.SetAtimeVal},
		{fuse.FATTR_MTIME_NOW, p9.SetMtime}, {fuse.FATTR_MTIME, p9.SetMtime | p9.SetMtimeVal},
	} {
		if in.Valid&bit.fuse != 0 {
			set.Valid |= bit.p9
		}
	}
	if in.Valid&fuse.FATTR_ATIME_NOW != 0 {
		set.Valid &^= p9.SetAtimeVal
	}
	if in.Valid&fuse.FATTR_MTIME_NOW != 0 {
		set.Valid &^= p9.SetMtimeVal
	}
	return set
}

// Statfs reads the file system's size.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	return n.m.do(ctx, opStatfs, func(ctx context.Context, s *session, _ int) error {
		st, err := s.root.StatFS(ctx)
		if err == nil {
			*out = fuse.StatfsOut{Blocks: st.Blocks, Bfree: st.BlocksFree, Bavail: st.BlocksAvail, Files: st.Files,
				Ffree: st.FilesFree,
				Bsize: st.BlockSize, Frsize: st.BlockSize, NameLen: st.NameLen}
		}
		return err
	})
}

// Readlink reads a symbolic link.
func (n *node) Readlink(ctx context.Context) (target []byte, errno syscall.Errno) {
	errno = n.doWith(ctx, opReadlink, func(ctx context.Context, _ *session, fid *p9.Fid, _ int) error {
		t, err := fid.Readlink(ctx)
		target = []byte(t)
		return err
	})
	return target, errno
}
