package mount

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"fairway/collector/p9"
	report "fairway/collector/source/mount"
)

// keepFlags are the open flags that a server must see and that are safe to repeat at a reopen.
const keepFlags = syscall.O_ACCMODE | syscall.O_APPEND | syscall.O_SYNC | syscall.O_DSYNC

// openFlags make the kernel pass each read and write on at once, writes to different parts of a file
// side by side.
const openFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES

// handle is one open file or directory. A remap opens it again at the new forwarder.
type handle struct {
	node   *node
	uid    uint32 // who opened it
	flags  uint32
	reader *reader         // nil when the file is not read ahead
	bytes  [2]atomic.Int64 // opRead, opWrite: that went through

	mu      sync.Mutex // guards everything below
	session *session
	fid     *p9.Fid
	err     error // why the file could not be opened at the session
	closed  bool
}

// at returns the handle's fid at a session, opening the file there when it is not open yet.
func (h *handle) at(ctx context.Context, s *session) (*p9.Fid, error) {
	h.mu.Lock()
	have, fid, err := h.session == s, h.fid, h.err
	h.mu.Unlock()
	if have {
		return fid, err
	}
	fid, err = h.open(ctx, s)
	if err != nil && !errors.As(err, new(*p9.Error)) {
		return nil, err // the session died or the caller gave up: not the file's fault
	}
	return h.set(s, fid, err)
}

// set gives the handle its fid at a session and returns the one in use, which is another when somebody
// was faster.
func (h *handle) set(s *session, fid *p9.Fid, err error) (*p9.Fid, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.session == s {
		if fid != nil {
			fid.ClunkLater()
		}
		return h.fid, h.err
	}
	h.session, h.fid, h.err = s, fid, err
	return fid, err
}

// Open opens the file. Every read and write goes to the forwarder at once (direct I/O).
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h := &handle{node: n, uid: n.m.userOf(ctx), flags: flags & keepFlags}
	if n.m.opt.ReadAhead {
		h.reader = newReader(h, flags)
	}
	n.reserve() // who removes the file meanwhile keeps it for this program
	errno := n.m.do(ctx, opOpen, func(ctx context.Context, s *session, _ int) error {
		fid, err := n.openAt(ctx, s, flags&(keepFlags|syscall.O_TRUNC), false)
		if err == nil {
			h.session, h.fid = s, fid
			n.m.link.add(h)
		}
		return err
	})
	if errno != 0 {
		n.released(ctx)
		return nil, 0, errno
	}
	if flags&syscall.O_TRUNC != 0 {
		n.changes.Add(1)
	}
	return h, openFlags, 0
}

// Create creates and opens a file.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (inode *fs.Inode,
	fh fs.FileHandle, fuseFlags uint32, errno syscall.Errno) {
	h := &handle{uid: n.m.userOf(ctx), flags: flags & keepFlags}
	send := flags&(keepFlags|syscall.O_TRUNC|syscall.O_EXCL) | syscall.O_CREAT
	var lost doubt
	errno = n.doWith(ctx, opCreate, func(ctx context.Context, s *session, dir *p9.Fid, _ int) error {
		fid, err := dir.Walk(ctx)
		if err != nil {
			return err
		}
		create := func() error { return fid.Create(ctx, name, send, mode, callersGroup(ctx)) }
		err = lost.run(create)
		if errors.Is(err, syscall.EEXIST) {
			if err = lost.settle(ctx, dir, name, err); err == nil {
				send &^= syscall.O_EXCL
				err = create()
			}
		}
		var a p9.Attr
		if err == nil {
			send &^= syscall.O_EXCL // a further run finds it
			a, err = fid.GetAttr(ctx)
		}
		if err != nil {
			fid.ClunkLater()
			return err
		}
		inode = n.child(ctx, s, name, nil, a, out)
		h.node, h.session, h.fid = inode.Operations().(*node), s, fid
		h.node.reserve()
		n.m.link.add(h)
		return nil
	})
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return inode, h, openFlags, 0
}

// Read begins a read; device.readLate does it, in requests that are in flight together, or takes what was
// read ahead.
func (h *handle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	late := &lateRead{h: h, ctx: ctx, dest: dest, off: off}
	if h.reader != nil {
		late.block = h.reader.take(off, len(dest), time.Now())
	}
	return late, 0
}

// Write writes to the file in requests that are in flight together; an appending file's go one by one,
// because the server puts each at the end. After a lost connection none of those is repeated that is seen to be there.
func (h *handle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	n, asked := 0, 0
	var lost doubt
	errno := h.node.m.transfer(ctx, opWrite, &n, func(ctx context.Context, s *session, _ int) error {
		fid, err := h.at(ctx, s)
		if err != nil {
			return err
		}
		if h.flags&syscall.O_APPEND == 0 {
			n, err = fid.WriteAt(ctx, data, off)
			return err
		}
		if asked > n {
			arrived, err := h.has(ctx, s, lost, data[n:asked], off+int64(n))
			if err != nil {
				return err
			}
			if arrived {
				n = asked
			}
		}
		for n < len(data) && err == nil {
			lost, asked = nil, min(n+int(fid.IOUnit()), len(data))
			err = lost.run(func() error {
				k, err := fid.WriteAt(ctx, data[n:asked], off+int64(n))
				n += k
				return err
			})
		}
		return err
	})
	h.moved(ctx, opWrite, n)
	h.node.changes.Add(1)
	return uint32(n), errno
}

// has says whether a piece of an append whose answer was lost is where the kernel knew the file's end, nothing behind
// it, and written when this one may have been: others append, too, and lines are often alike. Where it is elsewhere, or
// the file cannot be read, it counts as not arrived: stored twice is better than not at all.
func (h *handle) has(ctx context.Context, s *session, lost doubt, piece []byte, at int64) (bool, error) {
	fid, err := h.node.openAt(asUser(ctx, h.uid), s, syscall.O_RDONLY, false)
	if err != nil {
		return false, noAnswer(err)
	}
	defer fid.ClunkLater()
	got := make([]byte, len(piece)+1)
	n, err := fid.ReadAt(ctx, got, at)
	if !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], piece) {
		return false, noAnswer(err)
	}
	return lost.covers(ctx, fid)
}

// Fsync flushes the file to storage.
func (h *handle) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	return h.node.m.do(ctx, opFsync, func(ctx context.Context, s *session, _ int) error {
		fid, err := h.at(ctx, s)
		if err != nil {
			return err
		}
		return fid.Fsync(ctx, flags&1)
	})
}

// Release closes the file; what it waits for has been written already.
func (h *handle) Release(ctx context.Context) syscall.Errno {
	h.close()
	h.node.released(ctx)
	return 0
}

// close gives the handle's fid back.
func (h *handle) close() {
	if h.reader != nil {
		h.reader.drop(nil)
	}
	h.node.m.link.drop(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.fid != nil {
		h.fid.ClunkLater()
		h.fid = nil
	}
}

// maxFiles bounds the files that are distinguished of a job on this node, in each direction.
const maxFiles = 1024

// fileSet is the files that a job read, or wrote.
type fileSet struct {
	mu    sync.Mutex // guards everything below
	known map[uint64]struct{}
	least uint64
}

// take adds a file by its number on the server, which is the same on every compute node.
func (s *fileSet) take(number uint64) {
	h := report.HashFile(number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.least == 0 || h < s.least {
		s.least = h
	}
	if len(s.known) < maxFiles {
		if s.known == nil {
			s.known = map[uint64]struct{}{}
		}
		s.known[h] = struct{}{}
	}
}

func (s *fileSet) files() report.Files {
	s.mu.Lock()
	defer s.mu.Unlock()
	return report.Files{Count: uint64(len(s.known)), Least: s.least}
}

// moved adds bytes that were read or written through the handle; when they become BigFile, the file
// is one of those of the caller's job.
func (h *handle) moved(ctx context.Context, op opKind, n int) {
	if n <= 0 {
		return
	}
	if now := h.bytes[op].Add(int64(n)); now < report.BigFile || now-int64(n) >= report.BigFile {
		return
	}
	if who, ok := fuse.FromContext(ctx); ok {
		c := &h.node.m.counts
		c.jobOf(who.Pid, c.now()).files[op].take(h.node.StableAttr().Ino)
	}
}

// listing is an open directory. Offsets are the server's own, so a listing goes on where it was after
// a remap to another forwarder of the same file system.
type listing struct {
	h *handle

	mu   sync.Mutex // guards everything below
	list []p9.Dirent
	next uint64 // where the entries behind list begin
	done bool
}

// OpendirHandle opens the directory.
func (n *node) OpendirHandle(ctx context.Context, _ uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h := &handle{node: n, uid: n.m.userOf(ctx), flags: syscall.O_RDONLY | syscall.O_DIRECTORY}
	errno := n.m.do(ctx, opOpen, func(ctx context.Context, s *session, _ int) error {
		_, err := h.at(ctx, s)
		return err
	})
	if errno != 0 {
		return nil, 0, errno
	}
	n.m.link.add(h)
	return &listing{h: h}, 0, 0
}

// Readdirent returns the next entry, nil at the end.
func (l *listing) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.list) == 0 {
		if errno := l.fetch(ctx); errno != 0 || l.done {
			return nil, errno
		}
	}
	e := l.list[0]
	l.list = l.list[1:]
	return &fuse.DirEntry{Name: e.Name, Ino: e.QID.Path, Mode: uint32(e.Type) << 12, Off: e.Offset}, 0
}

// fetch reads the next entries, a reply's worth; the caller holds mu.
func (l *listing) fetch(ctx context.Context) syscall.Errno {
	errno := l.h.node.m.do(ctx, opReaddir, func(ctx context.Context, s *session, _ int) error {
		fid, err := l.h.at(ctx, s)
		if err == nil {
			l.list, err = fid.ReadDir(ctx, l.next)
		}
		if last := len(l.list) - 1; err == nil && last >= 0 && l.list[last].Offset == l.next {
			l.list = nil
			// The entries lead back to where they began: a listing without an end.
			return &p9.Error{Op: "readdir", Errno: syscall.EIO}
		}
		return err
	})
	if errno != 0 {
		return errno
	}
	if l.done = len(l.list) == 0; !l.done {
		l.next = l.list[len(l.list)-1].Offset
	}
	return 0
}

// Seekdir goes on behind an entry's offset; 0 is the beginning.
func (l *listing) Seekdir(_ context.Context, off uint64) syscall.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.next, l.done = nil, off, false
	return 0
}

// Releasedir closes the directory.
func (l *listing) Releasedir(context.Context, uint32) { l.h.close() }
