// Package mount is a file system mount that can change the forwarding node behind it while files
// are open: FUSE in, 9P2000.L out to one forwarder. A remap drains the requests in flight, opens every
// open file again at the new forwarder and goes on; a forced remap cuts a dead or hung forwarder off
// and repeats the requests it held.
//
// Limits: locks, and files that another node removed or replaced while they were open here, do not move; after a
// forced remap off a forwarder that is hung, not dead, requests it still holds may land when it wakes,
// so it must be fenced first; an append whose answer was lost may be stored twice where other nodes append to the
// file too; shared writable memory maps are refused by the kernel, because all I/O goes to the forwarder at once.
package mount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"fairway/collector/p9"
	report "fairway/collector/source/mount"
	"fairway/collector/topology"
)

// Options say what to mount where.
type Options struct {
	MountPoint string
	Target     Target
	// Tree is what to attach at the forwarder: an export or a folder below one.
	Tree string
	// Control is the path of the control socket; empty means none.
	Control string
	// Allowed are the addresses of forwarders that a remap may name; nil: any.
	Allowed *topology.Allowed
	// CacheFor lets the kernel keep names and attributes that long; 0 (the default) asks the forwarder
	// each time, so that what other nodes do is seen at once.
	CacheFor time.Duration
	// ReadAhead asks for the next block of a file that is read from front to back before the program
	// does; what another node writes meanwhile may then be seen 100 ms late in a file that is open here.
	ReadAhead bool
	Log       *slog.Logger
}

// Mount is one mounted tree.
type Mount struct {
	opt     Options
	link    *link
	root    *node
	names   atomic.Uint64 // counts renames: kept fids from before one may point at old paths
	counts  counts
	blocks  blocks
	pipes   pipes // for answers and for what is read ahead
	device  *device
	control *control
	onDead  bool // it is on top of a mount that was killed
}

const (
	maxIO         = 1 << 20 // bytes the kernel sends at once
	maxBackground = 64      // requests the kernel keeps outstanding
)

// Start connects to the forwarder, mounts and returns when the mount is usable.
func Start(ctx context.Context, opt Options) (*Mount, error) {
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	l, err := newLink(ctx, opt.Target, opt.Tree, uint32(os.Getuid()), opt.Log)
	if err != nil {
		return nil, fmt.Errorf("nothing is mounted on %s: %w", opt.MountPoint, err)
	}
	m := &Mount{opt: opt, link: l}
	m.counts.start()
	m.root = &node{m: m}
	if err := m.mount(); err != nil {
		l.close()
		return nil, fmt.Errorf("mounting on %s: %w", opt.MountPoint, err)
	}
	if opt.Control != "" {
		if m.control, err = listen(opt.Control, m); err != nil {
			m.Unmount(true)
			l.close()
			return nil, err
		}
	}
	return m, nil
}

func (m *Mount) mount() error {
	opt := fs.Options{
		MountOptions: fuse.MountOptions{
			Name: "fairway", MaxWrite: maxIO, MaxReadAhead: maxIO, MaxBackground: maxBackground, DisableXAttrs: true,
			DisableReadDirPlus: true,
			Logger:             slog.NewLogLogger(m.opt.Log.Handler(), slog.LevelWarn),
		},
		EntryTimeout: &m.opt.CacheFor, AttrTimeout: &m.opt.CacheFor, NullPermissions: true,
	}
	fd, onDead, err := attach(m.opt.MountPoint, m.opt.Tree)
	m.onDead = onDead
	if err != nil {
		return err
	}
	m.device, err = serve(fd, fs.NewNodeFS(m.root, &opt), &opt.MountOptions, &m.pipes, m.opt.Log, m.link.close)
	if err != nil {
		return errors.Join(err, detachOnce(m.opt.MountPoint))
	}
	if err := noPoll(m.opt.MountPoint); err != nil {
		return errors.Join(err, m.Unmount(true))
	}
	return nil
}

// Wait returns when the mount has been unmounted, by Unmount or from outside. While another mount name space holds a
// copy of it, only Unmount ends it.
func (m *Mount) Wait() { <-m.device.ended }

// Unmount ends the mount, in other mount name spaces that hold a copy of it, too. While programs use it, it fails with
// EBUSY unless lazily is true: then the mount leaves the name space at once and operations in flight fail. Of another
// name space's programs only those count that have files open; their operations in flight end first, and longer than a
// drain may take only those at a forwarder that is hung.
func (m *Mount) Unmount(lazily bool) error {
	err := detach(m.opt.MountPoint, m.used, lazily)
	switch {
	case errors.Is(err, syscall.EINVAL) && !m.ended():
		err = nil // somebody has unmounted it here; a copy is left
	case err != nil && lazily:
		m.link.close()
		err = detachNow(m.opt.MountPoint)
	}
	if err == nil {
		hung := time.AfterFunc(drainTimeout, m.link.close)
		err = m.device.stop()
		hung.Stop()
	}
	if err != nil {
		return fmt.Errorf("unmounting %s: %w", m.opt.MountPoint, err)
	}
	if m.onDead {
		dropDead(m.opt.MountPoint)
	}
	m.Close()
	return nil
}

func (m *Mount) ended() bool {
	select {
	case <-m.device.ended:
		return true
	default:
		return false
	}
}

// used reports whether files are open, wherever.
func (m *Mount) used() bool {
	m.link.mu.Lock()
	defer m.link.mu.Unlock()
	return len(m.link.handles) > 0
}

// Close releases what the mount holds after it has been unmounted.
func (m *Mount) Close() {
	if m.control != nil {
		m.control.close()
	}
	m.link.close()
}

// Remap moves the mount to another forwarder with files open; force cuts the old one off.
func (m *Mount) Remap(ctx context.Context, t Target, force bool) (report.Response, error) {
	start := time.Now()
	moved, err := m.link.move(ctx, t, force)
	r := report.Response{Report: m.Report(), Changed: moved.changed, LostFiles: moved.lost, Took: time.Since(start)}
	if err != nil {
		return r, fmt.Errorf("remap to %s at %s: %w", t.Forwarder, t.Addr, err)
	}
	if moved.changed {
		m.opt.Log.Info("remapped", "forwarder", t.Forwarder, "addr", t.Addr, "forced", force, "took", r.Took,
			"lost_files", moved.lost)
	}
	return r, nil
}

// Report says what the mount has done so far.
func (m *Mount) Report() report.Report {
	l := m.link
	l.mu.Lock()
	r := report.Report{
		MountPoint: m.opt.MountPoint, Forwarder: l.target.Forwarder, Addr: l.target.Addr, Generation: l.gen,
		Connected: l.cur != nil, OpenFiles: len(l.handles), Waiting: l.inside,
	}
	cur := l.cur
	l.mu.Unlock()
	if cur != nil {
		if p, ok := cur.path(); ok {
			r.Path = report.Path{Connection: cur.number, Sent: p.Sent, Resent: p.Resent, Received: p.Received,
				Disordered: p.Disordered}
		}
	}
	m.counts.fill(&r)
	return r
}

// do runs an operation on the link, counts it and turns its error into an errno.
func (m *Mount) do(ctx context.Context, op opKind,
	f func(ctx context.Context, s *session, retry int) error) syscall.Errno {
	return m.transfer(ctx, op, nil, f)
}

// transfer is do for operations that move bytes; *n is how many.
func (m *Mount) transfer(ctx context.Context, op opKind, n *int,
	f func(ctx context.Context, s *session, retry int) error) syscall.Errno {
	counted := m.counts.begin(ctx, op)
	waits, done := uninterrupted(ctx)
	errno := errnoOf(m.link.do(waits, f))
	done()
	moved := 0
	if n != nil && errno == 0 {
		moved = *n
	}
	m.counts.end(counted, moved, errno)
	return errno
}

// errnoMost is the largest error number that the kernel takes as an answer.
const errnoMost = 511

// errnoOf is what a program gets: the server's errno, EINTR for an operation whose caller was killed, ENOTCONN
// when the mount is ending, EIO for everything that should not happen.
func errnoOf(err error) syscall.Errno {
	refused := (*p9.Error)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refused):
		if refused.Errno == 0 || refused.Errno > errnoMost {
			return syscall.EIO
		}
		return refused.Errno
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return syscall.EINTR
	case errors.Is(err, errClosed):
		return syscall.ENOTCONN
	case errors.Is(err, io.ErrShortWrite):
		return syscall.ENOSPC
	}
	slog.Error("operation failed", "err", err)
	return syscall.EIO
}
