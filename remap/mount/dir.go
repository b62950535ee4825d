package mount

import (
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"fairway/collector/p9"
)

// listing is an open directory. Offsets are the server's own, so a listing goes on where it was after
// a remap to another forwarder of the same file system.
type listing struct {
	h *handle

	mu   sync.Mutex // guards everything below
	list []p9.Dirent
	next uint64 // where the entries behind list begin
	done bool
}

var (
	_ fs.FileReaddirenter = (*listing)(nil)
	_ fs.FileSeekdirer    = (*listing)(nil)
	_ fs.FileReleasedirer = (*listing)(nil)
)

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
