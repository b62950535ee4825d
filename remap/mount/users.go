package mount

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"fairway/collector/p9"
)

// Every user of the node attaches at the forwarder as himself and has a tree of fids of his own, so that permissions,
// access lists, quotas, ownership and the squashing of root are the server's to decide. Which groups a user is in is
// the server's knowledge, too: the protocol has no field for them.

const (
	// maxUsers bounds the attaches of a mount: what a server keeps for them. Whoever has been idle longest gives way.
	maxUsers = 1024
	// idleFor is how long a user's attach and fids are kept without use.
	idleFor = 10 * time.Minute
	// sweepEvery is how often idle ones are looked for.
	sweepEvery = time.Minute
	// maxKept bounds the fids that a session keeps of nodes, which a server and a queue remember: any others go.
	maxKept = 1 << 14
)

// users are the attaches of one session.
type users struct {
	root, others *p9.Client // see session
	tree         string

	mu   sync.Mutex // guards everything below, and the users' uses, gone and nodes
	by   map[uint32]*user
	kept int // nodes of all users
	most int // of those
}

// user is one user's attach.
type user struct {
	of    *users
	uid   uint32
	used  atomic.Int64 // Unix nanoseconds
	ready chan struct{}
	// Set before ready is closed.
	root *p9.Fid
	err  error

	uses  int                // walks from the root under way
	gone  bool               // dropped
	nodes map[*node]struct{} // that keep a fid of this user
}

func newUsers(root, others *p9.Client, tree string) *users {
	return &users{root: root, others: others, tree: tree, by: map[uint32]*user{}, most: maxKept}
}

// attach attaches on the connection for a user.
func (p *users) attach(ctx context.Context, uid uint32) (*p9.Fid, error) {
	if uid == 0 {
		return p.root.Attach(ctx, p.tree, uid)
	}
	return p.others.Attach(ctx, p.tree, uid)
}

// enter returns a user's attach, made now if it is missing; leave ends its use.
func (p *users) enter(ctx context.Context, uid uint32) (*user, error) {
	for {
		u, mine, err := p.find(uid)
		if err != nil {
			return nil, err
		}
		if mine {
			u.root, u.err = p.attach(ctx, uid)
			if u.err != nil {
				p.mu.Lock()
				p.takeOut(u)
				p.mu.Unlock()
			}
			close(u.ready)
		}
		select {
		case <-u.ready:
		case <-ctx.Done():
			p.leave(u)
			return nil, context.Cause(ctx)
		}
		if u.err == nil {
			return u, nil
		}
		p.leave(u)
		// Who attached may have given up for a reason of his own.
		if refused := (*p9.Error)(nil); mine || errors.As(u.err, &refused) ||
			errors.As(u.err, new(*p9.TransportError)) {
			return nil, u.err
		}
	}
}

// find counts a use of a user's attach; mine says that the caller is to make it.
func (p *users) find(uid uint32) (u *user, mine bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u = p.by[uid]
	if u == nil {
		if len(p.by) >= maxUsers && !p.giveWay() {
			return nil, false, &p9.Error{Op: "attach", Errno: syscall.EUSERS}
		}
		u = &user{of: p, uid: uid, ready: make(chan struct{}), nodes: map[*node]struct{}{}}
		p.by[uid], mine = u, true
	}
	u.uses++
	u.touch()
	return u, mine, nil
}

func (p *users) leave(u *user) {
	p.mu.Lock()
	u.uses--
	p.mu.Unlock()
}

func (u *user) touch() { u.used.Store(time.Now().UnixNano()) }

// giveWay drops whoever has been idle longest; false when nobody is idle. The caller holds mu.
func (p *users) giveWay() bool {
	var oldest *user
	for _, u := range p.by {
		if u.uses == 0 && (oldest == nil || u.used.Load() < oldest.used.Load()) {
			oldest = u
		}
	}
	if oldest == nil {
		return false
	}
	p.takeOut(oldest)
	go oldest.giveBack() // nodes have locks of their own
	return true
}

// takeOut takes an attach out of use. The caller holds mu.
func (p *users) takeOut(u *user) {
	u.gone = true
	if p.by[u.uid] == u {
		delete(p.by, u.uid)
	}
}

// sweep drops those who have been idle since before.
func (p *users) sweep(before time.Time) {
	var idle []*user
	p.mu.Lock()
	for _, u := range p.by {
		if u.uses == 0 && u.used.Load() < before.UnixNano() {
			p.takeOut(u)
			idle = append(idle, u)
		}
	}
	p.mu.Unlock()
	for _, u := range idle {
		u.giveBack()
	}
}

// giveBack gives the fids of a user who is gone back to the server.
func (u *user) giveBack() {
	u.of.mu.Lock()
	nodes := u.nodes
	u.nodes = nil
	u.of.kept -= len(nodes)
	u.of.mu.Unlock()
	for n := range nodes {
		n.forgetOf(u)
	}
	if u.root != nil {
		u.root.ClunkLater()
	}
}

// keeps notes that a node keeps a fid of the user, or no more; false when the user is gone. Where that makes too many,
// over is one that is to give its fid back.
func (u *user) keeps(n *node, does bool) (kept bool, over *node) {
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	if u.gone {
		return false, nil
	}
	u.of.kept -= len(u.nodes)
	defer func() { u.of.kept += len(u.nodes) }()
	if !does {
		delete(u.nodes, n)
		return true, nil
	}
	u.nodes[n] = struct{}{}
	if u.of.kept+len(u.nodes) <= u.of.most {
		return true, nil
	}
	for over = range u.nodes {
		if over != n {
			delete(u.nodes, over)
			return true, over
		}
	}
	return true, nil
}

// sweep drops idle users until the link ends.
func (l *link) sweep() {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-l.end.Done():
			return
		case now := <-t.C:
			l.mu.Lock()
			s := l.cur
			l.mu.Unlock()
			if s != nil {
				s.users.sweep(now.Add(-idleFor))
			}
		}
	}
}

type uidKey struct{}

// asUser makes an operation another user's than the caller's.
func asUser(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, uidKey{}, uid)
}

// userOf is whose operation it is: the caller's, and the mount's own without one.
func (m *Mount) userOf(ctx context.Context) uint32 {
	if uid, ok := ctx.Value(uidKey{}).(uint32); ok {
		return uid
	}
	if c, ok := fuse.FromContext(ctx); ok {
		return c.Uid
	}
	return m.link.uid
}

// ownersBits are the owner's permissions to read and write.
const ownersBits = 0o600

// asOwner runs f. A program may go on with an open file whose mode denies its owner what it was opened for (a new file
// of mode 0444 that is being written), but a server that opens or truncates it anew asks the mode: for the time of f
// the owner gives himself the permission. f's error stays when he is not the owner.
func (n *node) asOwner(ctx context.Context, fid *p9.Fid, f func() error) error {
	err := f()
	if !errors.Is(err, syscall.EACCES) {
		return err
	}
	a, e := fid.GetAttr(ctx)
	if e != nil || a.UID != n.m.userOf(ctx) || a.Mode&ownersBits == ownersBits {
		return err
	}
	mode := a.Mode & 0o7777
	if fid.SetAttr(ctx, p9.SetAttr{Valid: p9.SetMode, Mode: mode | ownersBits}) != nil {
		return err
	}
	err = f()
	if e := fid.SetAttr(ctx, p9.SetAttr{Valid: p9.SetMode, Mode: mode}); e != nil {
		n.m.opt.Log.Warn("the mode of a file could not be set back", "mode", mode, "err", e)
	}
	return err
}

// searched is a name that no directory has: walking to it shows whether the directory may be searched.
const searched = ".fairway-no-such-name"

// Access answers access(2) and chdir(2), which alone ask in advance; every operation is decided by the server. What can
// be tried there without an effect is tried, the rest is read off the mode.
func (n *node) Access(ctx context.Context, mask uint32) syscall.Errno {
	if mask &= unix.R_OK | unix.W_OK | unix.X_OK; mask == 0 {
		return 0
	}
	return n.doWith(ctx, opGetattr, func(ctx context.Context, _ *session, fid *p9.Fid, _ int) error {
		a, err := fid.GetAttr(ctx)
		if err != nil {
			return err
		}
		return permits(ctx, fid, a, mask)
	})
}

func permits(ctx context.Context, fid *p9.Fid, a p9.Attr, mask uint32) error {
	dir, regular := a.Mode&syscall.S_IFMT == syscall.S_IFDIR, a.Mode&syscall.S_IFMT == syscall.S_IFREG
	if mask&unix.R_OK != 0 && (dir || regular) {
		flags := uint32(syscall.O_RDONLY)
		if dir {
			flags |= syscall.O_DIRECTORY
		}
		if err := opens(ctx, fid, flags); err != nil {
			return err
		}
		mask &^= unix.R_OK
	}
	if mask&unix.W_OK != 0 && regular {
		if err := opens(ctx, fid, syscall.O_WRONLY); err != nil {
			return err
		}
		mask &^= unix.W_OK
	}
	if mask&unix.X_OK != 0 && dir {
		there, err := fid.Walk(ctx, searched)
		if err == nil {
			there.ClunkLater()
		} else if !errors.Is(err, syscall.ENOENT) {
			return err
		}
		mask &^= unix.X_OK
	}
	if mask&^modeFor(ctx, a) != 0 {
		return &p9.Error{Op: "access", Errno: syscall.EACCES}
	}
	return nil
}

// opens tries to open a file and closes it again.
func opens(ctx context.Context, fid *p9.Fid, flags uint32) error {
	try, err := fid.Walk(ctx)
	if err != nil {
		return err
	}
	defer try.ClunkLater()
	return try.Open(ctx, flags)
}

// modeFor is what the mode lets the caller do.
func modeFor(ctx context.Context, a p9.Attr) uint32 {
	c, ok := fuse.FromContext(ctx)
	switch {
	case !ok || c.Uid == 0:
		if a.Mode&syscall.S_IFMT == syscall.S_IFREG && a.Mode&0o111 == 0 {
			return unix.R_OK | unix.W_OK
		}
		return unix.R_OK | unix.W_OK | unix.X_OK
	case c.Uid == a.UID:
		return a.Mode >> 6 & 7
	case c.Gid == a.GID || slices.Contains(groupsOf(c.Pid), a.GID):
		return a.Mode >> 3 & 7
	}
	return a.Mode & 7
}

// groupsOf are a process's supplementary groups; none when it is gone.
func groupsOf(pid uint32) (groups []uint32) {
	status, _ := statusOf(pid)
	for f := range strings.FieldsSeq(status["Groups"]) {
		if g, err := strconv.ParseUint(f, 10, 32); err == nil {
			groups = append(groups, uint32(g))
		}
	}
	return groups
}
