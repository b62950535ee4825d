package queue

import (
	"context"
	"net/netip"
	"time"
)

// leave drops what a client that ended has here and waits until the writes of others that go through its connection
// were answered: with the connection closed nobody would know whether they were done, or still will be.
func (r *merging) leave(ctx context.Context, c *conn) {
	r.q.mu.Lock()
	r.dropOf(c)
	r.q.pump()
	if c.carries == 0 {
		r.q.mu.Unlock()
		return
	}
	settled := make(chan struct{})
	c.settled = settled
	r.q.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// dropOf drops what waits of a client that has gone; what others have in it goes without. r.mu is held.
func (r *merging) dropOf(c *conn) {
	c.gone = true
	for _, a := range c.asked {
		if a.part != nil && a.part.in == nil {
			r.table.Remove(a.part.to, a.part.offset, a.part)
		}
	}
	for _, q := range r.q.queue.drop(func(q request) bool { return q.conn == c }) {
		switch j := q.joint; {
		case j == nil:
		case j.fetch != nil:
			r.loseRead(j)
		default:
			r.table.Answered(time.Now(), j.writes)
			for _, p := range j.parts {
				r.pushAlone(p)
			}
			r.pushFlushes(j)
		}
	}
}

// lose ends a joint request whose connection to the forwarder ended without an answer. A write may have been done, or
// be done later, when its range was written again: those who wrote are cut off, as they would be had their own
// connection ended. r.mu is held.
func (r *merging) lose(j *joint) {
	if j.fetch != nil {
		r.loseRead(j)
		return
	}
	r.table.Answered(time.Now(), j.writes)
	for _, p := range j.parts {
		p.conn.client.Close()
	}
}

// loseRead lets those who wait for a read that will not be answered ask again. r.mu is held.
func (r *merging) loseRead(j *joint) {
	r.reading.lose(j)
	r.pushFlushes(j)
}

// admit counts a connection of an address in; nil where that has as many as it may.
func (r *Queue) admit(from netip.Addr) (peers *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if peers = r.from[from]; peers == nil {
		peers = new(int)
		r.from[from] = peers
	}
	if *peers >= maxEach {
		return nil
	}
	*peers++
	return peers
}

// dismiss counts a connection of an address out.
func (r *Queue) dismiss(from netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	peers := r.from[from]
	if *peers--; *peers == 0 {
		delete(r.from, from)
	}
}

// join takes a connection in whose client is known.
func (r *Queue) join(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.lane = r.sharing.of(c)
	r.conns[c] = true
}

// forget drops what waits of a connection that ended and frees its places at the forwarder.
func (r *Queue) forget(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	r.merge.dropOf(c)
	r.inFlight -= len(c.flights)
	r.queue.flies(c.lane, -len(c.flights))
	for _, f := range c.flights {
		if f.joint != nil {
			r.merge.lose(f.joint)
		}
	}
	for tag := range c.asked {
		c.conclude(tag, false)
	}
	c.flights = nil
	r.pump()
}
