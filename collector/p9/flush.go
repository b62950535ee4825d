package p9

import "context"

// abandon gives a call up because its caller's context ended and asks the server to forget it, unless it has
// answered. It reports false when the reply has been delivered.
func (c *Client) abandon(w *call) bool {
	c.mu.Lock()
	if c.calls[w.tag] != w {
		c.mu.Unlock()
		return false
	}
	if w.claimed {
		c.takeBack(w)
		return true
	}
	w.gone = true
	c.mu.Unlock()
	c.background(func() {
		if c.flush(w) && w.undo != nil {
			w.undo()
		}
	})
	return true
}

// flush asks the server to forget a call that was given up, and reports whether the call is over. The call's tag stays
// taken until the answer to that, although its own reply may come before: used again at once it would name another
// request, which the server would forget instead.
func (c *Client) flush(w *call) bool {
	f := &call{op: "flush", want: TFlush + 1}
	if c.start(context.Background(), f) != nil {
		return false
	}
	c.mu.Lock()
	if c.calls[w.tag] != w { // its reply came while there was no tag for the flush
		c.mu.Unlock()
		c.finish(f.tag)
		return true
	}
	w.flushing = true
	c.mu.Unlock()
	err := c.send(context.Background(), f, newRequest(w.tag), nil)
	if err == nil {
		_, err = c.wait(context.Background(), f)
	}
	c.mu.Lock()
	w.flushing = false
	unanswered := c.calls[w.tag] == w
	over := err == nil || !unanswered
	if over {
		delete(c.calls, w.tag)
	}
	c.mu.Unlock()
	switch {
	case over && unanswered:
		c.tags.retire(w.tag)
	case over:
		c.finish(w.tag)
	}
	return over
}

// answered frees the tag of a call whose reply has come, unless the server is asked to forget that tag. A flush that
// begins meanwhile finds the call gone: two would free the tag, and two requests then have it.
func (c *Client) answered(w *call) {
	c.mu.Lock()
	kept := w.flushing
	delete(c.calls, w.tag)
	c.mu.Unlock()
	if !kept {
		c.tags.release(w.tag)
	}
}
