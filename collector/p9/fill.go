package p9

import (
	"bufio"
	"errors"
	"io"
	"time"
)

// The data of a read goes straight into the caller's buffer or pipe. A server, or a network, that stops in the middle
// of it must not hold a caller whose context has ended: the caller takes it back, and the reader throws the rest away
// when that comes.

// errLeft says that the caller wants back what the reader is filling.
var errLeft = errors.New("the caller has left")

// fill moves the w.n bytes of a reply to where its caller wants them.
func (c *Client) fill(w *call, r *bufio.Reader) error {
	c.mu.Lock()
	gone := w.gone
	if !gone {
		w.claimed, c.filling = true, w
	}
	c.mu.Unlock()
	if gone {
		return discard(r, w.n)
	}
	defer c.filled(w)
	if w.pipe != nil {
		return c.receivePipe(w, r, w.n)
	}
	n, err := io.ReadFull(r, w.into[:w.n])
	if err == errLeft {
		return c.leave(w, r, w.n-n)
	}
	return err
}

// leave gives the caller what was filled, and throws the rest of the data away.
func (c *Client) leave(w *call, r *bufio.Reader, rest int) error {
	c.filled(w)
	return discard(r, rest)
}

func discard(r *bufio.Reader, n int) error {
	_, err := io.CopyN(io.Discard, r, int64(n))
	return err
}

// filled says that the reader will not touch what the caller gave any more.
func (c *Client) filled(w *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filling != w {
		return
	}
	c.filling = nil
	if w.left != nil {
		close(w.left)
	}
}

// takeBack waits until the reader leaves alone what the caller gave, which is soon. c.mu is held, and given back.
func (c *Client) takeBack(w *call) {
	if c.filling != w { // it does already
		c.mu.Unlock()
		return
	}
	w.left = make(chan struct{})
	c.conn.SetReadDeadline(time.Unix(1, 0)) // wakes it
	c.mu.Unlock()
	<-w.left
}

// wantedBack is asked when the reader was woken, and reports whether the caller wants back what it is filling. It may
// have been filled meanwhile: then the reader goes on.
func (c *Client) wantedBack() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.SetReadDeadline(time.Time{})
	return c.filling != nil && c.filling.left != nil
}
