package mount

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"fairway/collector/p9"
)

// claim waits for the caller's turn to change the session; a forced one makes whoever has it give up.
// The turn's context ends with the caller's, with the link, and when a forced remap comes.
func (l *link) claim(ctx context.Context, force bool) (context.Context, func(), error) {
	l.mu.Lock()
	if force {
		l.forces++
		if l.giveUp != nil {
			l.giveUp(errGaveUp)
		}
	}
	l.mu.Unlock()
	err := error(nil)
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-l.end.Done():
		err = errClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if force {
		l.forces--
	}
	if err != nil {
		return nil, nil, err
	}
	mine, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.end, func() { cancel(errClosed) })
	if l.giveUp = cancel; l.forces > 0 {
		cancel(errGaveUp)
	}
	return mine, func() {
		l.mu.Lock()
		l.giveUp = nil
		l.mu.Unlock()
		stop()
		cancel(nil)
		<-l.turn
	}, nil
}

// lose takes a dead session out of use and begins to reconnect to the same forwarder, behind whatever
// remap is under way.
func (l *link) lose(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != s || l.closed {
		return
	}
	l.cur = nil
	if !l.gate {
		l.log.Warn("forwarder lost; operations wait", "forwarder", l.target.Forwarder, "addr", l.target.Addr,
			"err", s.err())
	}
	// A connection that dies young may die of the request that is repeated on the next one.
	if l.pause = min(2*l.pause, reconnectMost); time.Since(s.since) > reconnectMost || l.pause == 0 {
		l.pause = reconnectFirst
	}
	gen, pause := l.gen, l.pause
	l.watchers.Go(func() { l.reconnect(gen, pause) })
}

// reconnect tries the lost forwarder again until it answers, a remap replaces it or the link ends.
func (l *link) reconnect(gen uint64, pause time.Duration) {
	for ; ; pause = min(2*pause, reconnectMost) {
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
	ctx, done, err := l.claim(l.end, false)
	if err != nil {
		return true
	}
	defer done()
	l.mu.Lock()
	over := l.closed || l.gen != gen || l.cur != nil
	t := l.target
	l.mu.Unlock()
	if over {
		return true
	}
	s, err := l.connect(ctx, t)
	if err != nil {
		return false
	}
	lost, err := l.swap(ctx, s, t, gen, false)
	if err != nil {
		l.log.Warn("reconnecting", "forwarder", t.Forwarder, "err", err)
		return false
	}
	l.log.Info("forwarder is back", "forwarder", t.Forwarder, "lost_files", lost)
	return true
}

// moved is what a remap did.
type moved struct {
	changed bool
	lost    int // open files that could not be opened again
}

// move changes the forwarder with files open: connect to the new one, then swap. Until the swap every
// failure leaves the old mapping in place. Moving to the current forwarder changes nothing, so it may
// be repeated.
func (l *link) move(ctx context.Context, t Target, force bool) (moved, error) {
	ctx, done, err := l.claim(ctx, force)
	if err != nil {
		return moved{}, fmt.Errorf("the mapping stays as it was: %w", err)
	}
	defer done()
	l.mu.Lock()
	same := l.target == t && l.cur != nil
	gen := l.gen
	l.mu.Unlock()
	if same && !force {
		return moved{}, nil
	}
	s, err := l.connect(ctx, t)
	if err != nil {
		return moved{}, fmt.Errorf("the mapping stays as it was: %w", err)
	}
	if !same {
		gen++
	}
	lost, err := l.swap(ctx, s, t, gen, force)
	if err != nil {
		return moved{}, fmt.Errorf("the mapping stays as it was: %w", err)
	}
	return moved{changed: !same, lost: lost}, nil
}

// swap replaces the session by s: it closes the gate, drains (or cuts off, when forced), opens every
// open file again and opens the gate. It owns s; a failure leaves everything as it was, and a session
// that was cut off or lost meanwhile is being reconnected.
func (l *link) swap(ctx context.Context, s *session, t Target, gen uint64, force bool) (lost int, err error) {
	l.mu.Lock()
	old := l.cur
	l.gate = true
	l.mu.Unlock()
	if force && old != nil {
		old.close() // operations in flight fail, come out, and repeat at the new forwarder
	}
	files, err := l.prepare(ctx, s)
	l.mu.Lock()
	l.gate = false
	if err == nil {
		l.cur, l.target, l.gen = s, t, gen
		lost = files.install(s)
	}
	l.signal()
	l.mu.Unlock()
	if err != nil {
		s.close()
		return 0, err
	}
	l.watch(s)
	if old != nil {
		old.close()
	}
	return lost, nil
}

// prepare drains the closed gate and opens the open files at the new session.
func (l *link) prepare(ctx context.Context, s *session) (reopened, error) {
	drain, cancel := context.WithTimeoutCause(ctx, drainTimeout, errHung)
	defer cancel()
	if err := l.awaitEmpty(drain); err != nil {
		return nil, err
	}
	open, cancel := context.WithTimeoutCause(ctx, reopenTimeout, errSlow)
	defer cancel()
	return l.reopen(open, s)
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

// reopened are the open files as a new session has them, not yet in use.
type reopened map[*handle]*opening

// opening is one open file at a session: its fid, or the server's refusal.
type opening struct {
	fid *p9.Fid
	err error
}

// reopen opens every open file at a new session; the gate is closed and nobody is inside. What the
// server refuses is lost; any other error spoils the session, and the files stay where they are.
func (l *link) reopen(ctx context.Context, s *session) (reopened, error) {
	files := reopened{}
	l.mu.Lock()
	for h := range l.handles {
		files[h] = &opening{}
	}
	l.mu.Unlock()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots := make(chan struct{}, reopenTogether)
	var wg sync.WaitGroup
	for h, o := range files {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if o.fid, o.err = h.open(ctx, s); o.err == nil {
				return
			}
			if !errors.As(o.err, new(*p9.Error)) {
				stop(o.err)
				return
			}
			l.log.Warn("open file lost in a remap", "err", o.err)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("opening %d open files: %w", len(files), context.Cause(ctx))
	}
	return files, nil
}

// install makes the files' fids at s the ones in use and counts the files that are lost.
func (files reopened) install(s *session) (lost int) {
	for h, o := range files {
		h.set(s, o.fid, o.err)
		if o.err != nil {
			lost++
		}
	}
	return lost
}

// open opens the handle's file at a session. A file that is not there any more is ESTALE.
func (h *handle) open(ctx context.Context, s *session) (*p9.Fid, error) {
	fid, err := h.node.openAt(asUser(ctx, h.uid), s, h.flags, true)
	if errors.Is(err, syscall.ENOENT) {
		err = &p9.Error{Op: "reopen after remap", Errno: syscall.ESTALE}
	}
	return fid, err
}
