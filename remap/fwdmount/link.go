package fwdmount

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
	// reopenTogether bounds the open files that are opened again at once.
	reopenTogether = 16
)

var (
	errClosed = errors.New("the mount is ending")
	errHung   = errors.New("requests in flight at the old forwarder did not end; a forced remap cuts it off (fence it first: requests it holds may still land when it wakes)")
)

// session is one connection to a forwarder with the tree's root.
type session struct {
	client *p9.Client
	root   *p9.Fid
}

// link is the mount's connection to its one forwarder. Operations enter and leave it; a remap closes
// the gate, waits until nobody is inside, and swaps the session.
type link struct {
	tree string // what is attached at the forwarder
	uid  uint32
	log  *slog.Logger

	moving sync.Mutex // held through a remap or reconnect: one at a time

	mu       sync.Mutex // guards everything below
	cur      *session   // nil while lost
	target   Target
	gen      uint64
	gate     bool // closed: operations wait
	inside   int
	changed  chan struct{} // closed and replaced whenever a waiter should look again
	handles  map[*handle]struct{}
	closed   bool
	watchers sync.WaitGroup
	end      context.Context // done when the link is closed
	stop     context.CancelFunc
}

func newLink(ctx context.Context, t Target, tree string, uid uint32, log *slog.Logger) (*link, error) {
	l := &link{tree: tree, uid: uid, log: log, target: t, gen: 1, changed: make(chan struct{}), handles: map[*handle]struct{}{}}
	l.end, l.stop = context.WithCancel(context.Background())
	s, err := l.connect(ctx, t)
	if err != nil {
		return nil, err
	}
	l.cur = s
	l.watch(s)
	return l, nil
}

// connect dials a forwarder and attaches to the tree.
func (l *link) connect(ctx context.Context, t Target) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := p9.Dial(ctx, t.Addr, 0)
	if err != nil {
		return nil, fmt.Errorf("forwarder %s: %w", t.Forwarder, err)
	}
	root, err := c.Attach(ctx, l.tree, l.uid)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("forwarder %s at %s: %w", t.Forwarder, t.Addr, err)
	}
	return &session{c, root}, nil
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
func (l *link) do(ctx context.Context, f func(s *session, retry int) error) error {
	for retry := 0; ; retry++ {
		s, err := l.enter(ctx)
		if err != nil {
			return err
		}
		err = f(s, retry)
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

// watch notices when a session's connection ends without anybody using it.
func (l *link) watch(s *session) {
	l.watchers.Go(func() {
		<-s.client.Done()
		l.lose(s)
	})
}

// lose takes a dead session out of use and begins to reconnect to the same forwarder.
func (l *link) lose(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != s || l.closed {
		return
	}
	l.cur = nil
	if l.gate { // a remap is replacing it
		return
	}
	l.log.Warn("forwarder lost; operations wait", "forwarder", l.target.Forwarder, "addr", l.target.Addr)
	gen := l.gen
	l.watchers.Go(func() { l.reconnect(gen) })
}

// reconnect tries the lost forwarder again until it answers, a remap replaces it or the link ends.
func (l *link) reconnect(gen uint64) {
	for pause := reconnectFirst; ; pause = min(2*pause, reconnectMost) {
		select {
		case <-l.end.Done():
			return
		case <-time.After(pause):
		}
		if l.retry(gen) {
			return
		}
	}
}

// retry makes one attempt to reconnect; true ends the attempts.
func (l *link) retry(gen uint64) bool {
	l.moving.Lock()
	defer l.moving.Unlock()
	l.mu.Lock()
	over := l.closed || l.gen != gen || l.cur != nil
	t := l.target
	l.mu.Unlock()
	if over {
		return true
	}
	s, err := l.connect(l.end, t)
	if err != nil {
		return false
	}
	l.mu.Lock()
	l.gate = true
	l.mu.Unlock()
	l.awaitEmpty(l.end)
	lost := l.reopen(l.end, s)
	l.install(s, t, gen)
	l.log.Info("forwarder is back", "forwarder", t.Forwarder, "lost_files", lost)
	return true
}

// install makes s the session in use and opens the gate.
func (l *link) install(s *session, t Target, gen uint64) {
	l.mu.Lock()
	l.cur, l.target, l.gen, l.gate = s, t, gen, false
	l.signal()
	l.mu.Unlock()
	l.watch(s)
}

// awaitEmpty waits until no operation is inside the closed gate.
func (l *link) awaitEmpty(ctx context.Context) error {
	for {
		l.mu.Lock()
		n, wait := l.inside, l.changed
		l.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// moved is what a remap did.
type moved struct {
	changed bool
	lost    int // open files that could not be opened again
}

// move changes the forwarder with files open: connect to the new one, close the gate, drain (or cut
// off, when forced), open every open file again, swap. Until the swap every failure leaves the old
// mapping in place. Moving to the current forwarder changes nothing, so it may be repeated.
func (l *link) move(ctx context.Context, t Target, force bool) (moved, error) {
	l.moving.Lock()
	defer l.moving.Unlock()
	l.mu.Lock()
	same := l.target == t && l.cur != nil
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return moved{}, errClosed
	}
	if same && !force {
		return moved{}, nil
	}
	s, err := l.connect(ctx, t)
	if err != nil {
		return moved{}, fmt.Errorf("the mapping stays as it was: %w", err)
	}
	l.mu.Lock()
	old, gen := l.cur, l.gen
	l.gate = true
	l.mu.Unlock()
	if force && old != nil {
		old.client.Close() // operations in flight fail, come out, and repeat at the new forwarder
	}
	drain, cancel := context.WithTimeoutCause(ctx, drainTimeout, errHung)
	defer cancel()
	if err := l.awaitEmpty(drain); err != nil {
		l.mu.Lock()
		l.gate = false
		l.signal()
		l.mu.Unlock()
		s.client.Close()
		return moved{}, fmt.Errorf("the mapping stays as it was: %w", err)
	}
	lost := l.reopen(ctx, s)
	if !same {
		gen++
	}
	l.install(s, t, gen)
	if old != nil && !force {
		old.client.Close()
	}
	return moved{changed: !same, lost: lost}, nil
}

// reopen opens every open file at a new session; the gate is closed and nobody is inside.
func (l *link) reopen(ctx context.Context, s *session) (lost int) {
	l.mu.Lock()
	open := make([]*handle, 0, len(l.handles))
	for h := range l.handles {
		open = append(open, h)
	}
	l.mu.Unlock()
	slots := make(chan struct{}, reopenTogether)
	var wg sync.WaitGroup
	var failed atomic.Int64
	for _, h := range open {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if _, err := h.at(ctx, s); err != nil {
				l.log.Warn("open file lost in a remap", "err", err)
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	return int(failed.Load())
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
		s.client.Close()
	}
	l.moving.Lock() // a remap or reconnect under way ends first, and may have installed a session
	l.mu.Lock()
	s = l.cur
	l.mu.Unlock()
	l.moving.Unlock()
	if s != nil {
		s.client.Close()
	}
	l.watchers.Wait()
}
