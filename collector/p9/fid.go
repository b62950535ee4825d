package p9

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Fid is the client's handle of a file on the server. It must be given back with Clunk or Remove.
type Fid struct {
	c   *Client
	id  uint32
	qid QID
	// chunk is the most bytes that one read or write of this open file may carry.
	chunk uint32
}

// QID is the server's identity of the file.
func (f *Fid) QID() QID { return f.qid }

// IOUnit is what one read or write of the open file can carry, bytes.
func (f *Fid) IOUnit() uint32 { return f.chunk }

func (c *Client) newFid() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.fids.free); n > 0 {
		id := c.fids.free[n-1]
		c.fids.free = c.fids.free[:n-1]
		return id
	}
	c.fids.next++
	return c.fids.next
}

func (c *Client) freeFid(id uint32) {
	c.mu.Lock()
	c.fids.free = append(c.fids.free, id)
	c.mu.Unlock()
}

// call sends a request of op and decodes its reply with get, which may be nil.
func (c *Client) call(ctx context.Context, op string, t uint8, get func(*Decoder), fields ...any) error {
	d, err := c.do(ctx, &call{op: op, want: t + 1}, newRequest(fields...), nil)
	if err != nil {
		return err
	}
	if get != nil {
		get(d)
	}
	if d.Err != nil {
		return fmt.Errorf("%s: reply of %s: %w", op, c.addr, d.Err)
	}
	return nil
}

// Attach opens the tree aname ("ctl", or the path of an export or of a folder below one) as a user.
func (c *Client) Attach(ctx context.Context, aname string, uid uint32) (*Fid, error) {
	f := &Fid{c: c, id: c.newFid(), chunk: c.IOUnit()}
	err := c.call(ctx, "attach "+aname, TAttach, func(d *Decoder) { f.qid = d.qid() }, f.id, uint32(noFid), "", aname,
		uid)
	if err != nil {
		c.forget(f, err)
		return nil, err
	}
	return f, nil
}

// forget frees the number of a fid that the server refused; after any other error the server may
// hold it, so it is not used again.
func (c *Client) forget(f *Fid, err error) {
	if e := (*Error)(nil); errors.As(err, &e) {
		c.freeFid(f.id)
	}
}

// Walk opens a new fid for the file below f by its names; no name copies f. A name that does not
// exist is ENOENT.
func (f *Fid) Walk(ctx context.Context, names ...string) (*Fid, error) {
	at, owned := f, false
	for {
		step := names[:min(len(names), maxWalk)]
		next, err := at.walkStep(ctx, step)
		if owned {
			at.ClunkLater()
		}
		if err != nil {
			return nil, err
		}
		if names = names[len(step):]; len(names) == 0 {
			return next, nil
		}
		at, owned = next, true
	}
}

func (f *Fid) walkStep(ctx context.Context, names []string) (*Fid, error) {
	g := &Fid{c: f.c, id: f.c.newFid(), qid: f.qid, chunk: f.c.IOUnit()}
	d, err := f.c.do(ctx, &call{op: "walk", want: TWalk + 1, undo: g.ClunkLater}, newRequest(f.id, g.id, names), nil)
	if err != nil {
		f.c.forget(g, err)
		return nil, err
	}
	for n := int(d.U16()); n > 0 && d.Err == nil; n-- {
		g.qid = d.qid()
		names = names[min(1, len(names)):]
	}
	if d.Err != nil {
		return nil, fmt.Errorf("walk: reply of %s: %w", f.c.addr, d.Err)
	}
	if len(names) > 0 {
		// diod keeps the new fid after a partial walk, against the protocol.
		g.ClunkLater()
		return nil, &Error{"walk " + names[0], syscall.ENOENT}
	}
	return g, nil
}

// Clunk gives the fid back. The fid is gone even when an error is returned.
func (f *Fid) Clunk(ctx context.Context) error { return f.end(ctx, "clunk", TClunk) }

// ClunkLater gives the fid back without waiting, not even for room on the way to a hung server; on a
// connection that ends the server forgets it anyway.
func (f *Fid) ClunkLater() {
	f.c.background(func() {
		w := &call{op: "clunk", want: TClunk + 1, after: func() { f.c.freeFid(f.id) }}
		f.c.begin(context.Background(), w, newRequest(f.id), nil)
	})
}

// Remove removes the file and gives the fid back, also when an error is returned.
func (f *Fid) Remove(ctx context.Context) error { return f.end(ctx, "remove", TRemove) }

func (f *Fid) end(ctx context.Context, op string, t uint8) error {
	err := f.c.call(ctx, op, t, nil, f.id)
	if e := (*Error)(nil); err == nil || errors.As(err, &e) {
		f.c.freeFid(f.id)
	}
	return err
}

// Open opens the file with Linux open(2) flags.
func (f *Fid) Open(ctx context.Context, flags uint32) error {
	return f.c.call(ctx, "open", TLopen, f.opened, f.id, flags)
}

// Create creates and opens a file in the directory f, which becomes the file.
func (f *Fid) Create(ctx context.Context, name string, flags, mode, gid uint32) error {
	return f.c.call(ctx, "create "+name, TLcreate, f.opened, f.id, name, flags, mode, gid)
}

func (f *Fid) opened(d *Decoder) {
	f.qid = d.qid()
	if unit := d.U32(); unit > 0 && unit < f.chunk {
		f.chunk = unit
	}
}

// pipeline is how many pieces of one large read or write are in flight together: a MiB as a whole where
// the server takes 64 KiB at once, because each further round costs a wake-up.
const pipeline = 20

// ReadAt reads into p from an offset, in as many requests in flight as it takes. Like io.ReaderAt it
// returns io.EOF with fewer bytes at the end of the file.
func (f *Fid) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	return f.transfer(ctx, len(p), func(w *call, done, size int) error {
		w.into = p[done : done+size]
		return f.beginRead(ctx, w, off+int64(done), size)
	}, nil)
}

func (f *Fid) beginRead(ctx context.Context, w *call, off int64, size int) error {
	w.op, w.want, w.size = "read", TRead+1, size
	return f.c.begin(ctx, w, newRequest(f.id, uint64(off), uint32(size)), nil)
}

// WriteAt writes p at an offset, in as many requests in flight as it takes. With an error the number
// of bytes is how much is surely written from the beginning. What the server wrote in part is asked for
// again from there: only then does it say why, such as that a quota is used up.
func (f *Fid) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	for total := 0; ; {
		n, err := f.writeAt(ctx, p[total:], off+int64(total))
		total += n
		switch {
		case err != io.EOF:
			return total, err
		case n == 0:
			return total, io.ErrShortWrite
		}
	}
}

// writeAt is WriteAt up to the first piece that is written in part, which is io.EOF.
func (f *Fid) writeAt(ctx context.Context, p []byte, off int64) (int, error) {
	return f.transfer(ctx, len(p), func(w *call, done, size int) error {
		w.op, w.want, w.size = "write", TWrite+1, size
		return f.c.begin(ctx, w, newRequest(f.id, uint64(off)+uint64(done), uint32(size)), p[done:done+size])
	}, nil)
}

// transfer cuts size bytes into pieces, keeps a window of them in flight and adds up what was moved until the first
// short piece or error. took, when there is one, gets each piece in order with the error so far and returns the new
// one. Every begun piece is waited for: none may touch its data afterwards.
func (f *Fid) transfer(ctx context.Context, size int, begin func(w *call, done, size int) error,
	took func(w *call, ended error) error) (int, error) {
	var flight []*call
	total, sent, ended := 0, 0, error(nil)
	for sent < size || len(flight) > 0 {
		if ended == nil && sent < size && len(flight) < pipeline {
			w := &call{}
			if ended = begin(w, sent, min(size-sent, int(f.chunk))); ended == nil {
				flight = append(flight, w)
				sent += w.size
				continue
			}
		}
		if len(flight) == 0 {
			break
		}
		if sent == size || ended != nil {
			select { // woken once, not by every piece
			case <-flight[len(flight)-1].ready:
			case <-ctx.Done():
			}
		}
		w := flight[0]
		flight = flight[1:]
		d, err := f.c.wait(ctx, w)
		if ended == nil {
			ended = w.moved(d, err)
		}
		if took != nil {
			ended = took(w, ended)
		}
		if ended == nil {
			total += w.n
			if w.n < w.size {
				ended = io.EOF
			}
		}
	}
	return total, ended
}

// moved checks the answer to a read or write of which w.n bytes went through.
func (w *call) moved(d *Decoder, err error) error {
	if err != nil {
		return err
	}
	if w.want == TWrite+1 {
		w.n = int(d.U32())
	}
	if d.Err != nil || w.n > w.size {
		return fmt.Errorf("%s: the server says %d of %d bytes: %w", w.op, w.n, w.size, errShort)
	}
	return nil
}
