package mount

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/p9"
	"fairway/collector/topology"
)

// Target is a forwarder: its name and where its file service listens.
type Target struct {
	Forwarder topology.ForwarderID
	Addr      string // HOST:PORT
}

const (
	// connectTimeout bounds dialling and attaching at a new forwarder.
	connectTimeout = 5 * time.Second
	// drainTimeout bounds how long a remap waits for requests in flight; past it the old forwarder
	// counts as hung and only a forced remap leaves it.
	drainTimeout = 10 * time.Second
	// The first and longest pauses between attempts to reconnect to a forwarder that was lost.
	reconnectFirst = 100 * time.Millisecond
	reconnectMost  = 2 * time.Second
	// reopenTimeout bounds how long all open files may take to be opened again at a forwarder.
	reopenTimeout = 10 * time.Second
	// reopenTogether bounds the open files that are opened again at once.
	reopenTogether = 16
)

var (
	errClosed = errors.New("the mount is ending")
	errSilent = errors.New("no answer in time")
	errGaveUp = errors.New("a forced remap came in between")
	errSlow   = errors.New("the new forwarder does not open the open files in time")
	errHung   = errors.New(
		"requests in flight at the old forwarder did not end; a forced remap cuts it off (fence it first: requests " +
			"it holds may still land when it wakes)")
)

// session is what a mount has open at one forwarder: a connection for its own user and, where that is root, a second
// one for everybody else. diod takes a connection that root has attached on for one whose client has checked
// permissions already, and checks none on it, whoever asks.
type session struct {
	client *p9.Client
	others *p9.Client // client, where that is not root's
	root   *p9.Fid    // of the mount's own user
	users  *users
	number uint64 // of the mount's connections, from 1
	since  time.Time
}

// link is the mount's connection to its one forwarder. Operations enter and leave it; a remap closes
// the gate, waits until nobody is inside, and swaps the session.
type link struct {
	dialer
	lifetime

	turn chan struct{} // holds a token through a remap or reconnect: one at a time

	mu      sync.Mutex // guards everything below
	cur     *session   // nil while lost
	target  Target
	gen     uint64
	gate    bool // closed: operations wait
	inside  int
	changed chan struct{} // closed and replaced whenever a waiter should look again
	handles map[*handle]struct{}
	closed  bool
	forces  int                     // forced remaps that wait for their turn
	giveUp  context.CancelCauseFunc // ends what has the turn; nil when nobody has
	pause   time.Duration           // before the next attempt to reconnect
}

// dialer is what every session of a link is made with.
type dialer struct {
	tree        string // what is attached at the forwarder
	number      uint64 // of its root at the first one
	uid         uint32
	log         *slog.Logger
	connections atomic.Uint64 // made so far
}

// lifetime ends with the link.
type lifetime struct {
	watchers sync.WaitGroup
	end      context.Context // done when the link is closed
	stop     context.CancelFunc
}

func newLink(ctx context.Context, t Target, tree string, uid uint32, log *slog.Logger) (*link, error) {
	l := &link{dialer: dialer{tree: tree, uid: uid, log: log}, target: t, gen: 1, turn: make(chan struct{}, 1),
		changed: make(chan struct{}), handles: map[*handle]struct{}{}}
	l.end, l.stop = context.WithCancel(context.Background())
	s, err := l.connect(ctx, t)
	if err != nil {
		return nil, err
	}
	l.cur, l.number = s, s.root.QID().Path
	l.watch(s)
	l.watchers.Go(l.sweep)
	return l, nil
}

// connect dials a forwarder and attaches to the tree.
func (l *link) connect(ctx context.Context, t Target) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, errSilent)
	defer cancel()
	explain := func(err error) error {
		if errors.As(err, new(*p9.Error)) {
			return fmt.Errorf("forwarder %s at %s: %w; name a tree that it exports to this node", t.Forwarder, t.Addr,
				err)
		}
		return fmt.Errorf("forwarder %s: %w; start its 9P service, or name another forwarder", t.Forwarder, err)
	}
	c, err := p9.Dial(ctx, t.Addr, 0)
	if err != nil {
		return nil, explain(err)
	}
	others := c
	if l.uid == 0 {
		if others, err = p9.Dial(ctx, t.Addr, 0); err != nil {
			c.Close()
			return nil, explain(err)
		}
	}
	all := newUsers(c, others, l.tree)
	own, err := all.enter(ctx, l.uid) // and never leaves
	if err != nil {
		c.Close()
		others.Close()
		return nil, explain(err)
	}
	return &session{client: c, others: others, root: own.root, users: all, number: l.connections.Add(1),
		since: time.Now()}, nil
}

// close ends the session's connections.
func (s *session) close() {
	s.client.Close()
	s.others.Close()
}

// err says why one of the connections ended; nil while both live.
func (s *session) err() error {
	if err := s.client.Err(); err != nil {
		return err
	}
	return s.others.Err()
}

// path is what the network has done for the session.
func (s *session) path() (sum p9.Path, ok bool) {
	sum, ok = s.client.Path()
	if s.others == s.client || !ok {
		return sum, ok
	}
	more, ok := s.others.Path()
	sum.Sent += more.Sent
	sum.Resent += more.Resent
	sum.Received += more.Received
	sum.Disordered += more.Disordered
	return sum, ok
}

// signal wakes every waiter; the caller holds mu.
func (l *link) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// enter waits until the link is usable and counts the caller in.
func (l *link) enter(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, errClosed
		}
		if l.cur != nil && !l.gate {
			l.inside++
			s := l.cur
			l.mu.Unlock()
			return s, nil
		}
		wait := l.changed
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *link) leave() {
	l.mu.Lock()
	if l.inside--; l.inside == 0 && l.gate {
		l.signal()
	}
	l.mu.Unlock()
}

// do runs f on the current session, again on the next one when the connection is lost under it.
// retry counts the runs whose outcome is not known.
func (l *link) do(ctx context.Context, f func(ctx context.Context, s *session, retry int) error) error {
	for retry := 0; ; retry++ {
		s, err := l.enter(ctx)
		if err != nil {
			return err
		}
		err = f(ctx, s, retry)
		lost := (*p9.TransportError)(nil)
		if errors.As(err, &lost) {
			l.lose(s)
			l.leave()
			continue
		}
		l.leave()
		return err
	}
}

// behind runs f once on the current session behind its caller's back. It reports false when operations
// would have to wait: f is not worth that.
func (l *link) behind(f func(s *session)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.cur == nil || l.gate {
		return false
	}
	l.inside++
	s := l.cur
	l.watchers.Go(func() {
		defer l.leave()
		f(s)
	})
	return true
}

// watch notices when a session's connection ends without anybody using it.
func (l *link) watch(s *session) {
	l.watchers.Go(func() {
		select {
		case <-s.client.Done():
		case <-s.others.Done():
		}
		l.lose(s)
		s.close() // both connections or neither
	})
}

func (l *link) add(h *handle) {
	l.mu.Lock()
	l.handles[h] = struct{}{}
	l.mu.Unlock()
}

func (l *link) drop(h *handle) {
	l.mu.Lock()
	delete(l.handles, h)
	l.mu.Unlock()
}

// close ends the link: waiting operations fail, the connection is cut, goroutines are waited for.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	s := l.cur
	l.signal()
	l.mu.Unlock()
	l.stop()
	if s != nil {
		s.close()
	}
	l.turn <- struct{}{} // a remap or reconnect under way ends first, and may have installed a session
	l.mu.Lock()
	s = l.cur
	l.mu.Unlock()
	<-l.turn
	if s != nil {
		s.close()
	}
	l.watchers.Wait()
}
