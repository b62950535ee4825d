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

// Get returns the connection, made anew by dial where there is none; after Close it is os.ErrClosed.
func (h *Held[C]) Get(ctx context.Context, dial func(context.Context) (C, error)) (C, error) {
	var none C
	h.mu.Lock()
	conn, done := h.conn, h.done
	h.mu.Unlock()
	switch {
	case done:
		return none, os.ErrClosed
	case conn != none:
		return conn, nil
	}
	conn, err := dial(ctx)
	if err != nil {
		return none, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return none, errors.Join(os.ErrClosed, conn.Close())
	}
	h.conn = conn
	return conn, nil
}

// Drop ends a connection that is of no more use; the next Get makes another.
func (h *Held[C]) Drop(conn C) {
	var none C
	h.mu.Lock()
	if h.conn == conn {
		h.conn = none
	}
	h.mu.Unlock()
	_ = conn.Close() // it is broken
}

// Close ends the connection, and lets none be made.
func (h *Held[C]) Close() error {
	var none C
	h.mu.Lock()
	conn := h.conn
	h.conn, h.done = none, true
	h.mu.Unlock()
	if conn == none {
		return nil
	}
	return conn.Close()
}
