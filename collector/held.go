package collector

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// Held is what a source is connected by: made when it reads, and kept until it is dropped.
type Held[C interface {
	comparable
	io.Closer
}] struct {
	mu   sync.Mutex // guards what follows
	conn C          // the zero value: none
	done bool
}

// Get returns the connection held, or one that dial makes; after Close it fails with os.ErrClosed. One reader calls it.
func (h *Held[C]) Get(ctx context.Context, dial func(context.Context) (C, error)) (C, error) {
	var zero C
	h.mu.Lock()
	conn, done := h.conn, h.done
	h.mu.Unlock()
	switch {
	case done:
		return zero, os.ErrClosed
	case conn != zero:
		return conn, nil
	}
	conn, err := dial(ctx)
	if err != nil {
		return zero, err
	}
	h.mu.Lock()
	if done = h.done; !done {
		h.conn = conn
	}
	h.mu.Unlock()
	if done {
		return zero, errors.Join(os.ErrClosed, conn.Close())
	}
	return conn, nil
}

// Drop ends a connection that is of no more use; the next Get makes another.
func (h *Held[C]) Drop(conn C) {
	var zero C
	h.mu.Lock()
	if h.conn == conn {
		h.conn = zero
	}
	h.mu.Unlock()
	_ = conn.Close() // it is broken
}

// Close ends the connection, and lets no other be made.
func (h *Held[C]) Close() error {
	var zero C
	h.mu.Lock()
	conn := h.conn
	h.conn, h.done = zero, true
	h.mu.Unlock()
	if conn == zero {
		return nil
	}
	return conn.Close()
}
