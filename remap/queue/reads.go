package queue

import (
	"encoding/binary"
	"math"
	"syscall"
	"time"

	"fairway/collector/p9"
	"fairway/collector/source/queue"
	"fairway/remap/queue/aggregate"
)

// reading answers the reads of all clients by as few messages as may be, guarded by Queue.mu: by what is kept of
// others, by one that is under way, or by one that goes through the open file of who asks. Each client has opened the
// file itself: that the server has let it is what entitles it to the data.
type reading struct {
	q      *Queue
	cache  *aggregate.Cache[*joint] // nil: each read goes by itself
	done   queue.Merged
	pieces [][]byte // scratch
}

// change is what a request may change: a file, or where that is not known any.
type change struct {
	is, known bool
	path      uint64
}

// changes says what a request may change until it is answered. What the protocol does not have may change anything, and
// so may what goes through a symbolic link: a server that follows it cuts the file where it leads.
func changes(kind byte, flags uint32, f fid, known bool) change {
	known = known && !f.link
	switch kind {
	case p9.TSetattr:
		return change{!f.link || flags&p9.SetSize != 0, known, f.Path}
	case p9.TWrite, p9.TFsync, p9.TLock, p9.TRename, p9.TRemove:
		return change{true, known, f.Path}
	case p9.TLopen:
		return change{flags&flagTruncate != 0, known, f.Path}
	case p9.TLcreate: // of a file that may be there
		return change{is: flags&flagTruncate != 0 && flags&flagExclusive == 0}
	case p9.TStatfs, p9.TSymlink, p9.TMknod, p9.TReadlink, p9.TGetattr, p9.TXattrwalk, p9.TXattrcreate, p9.TReaddir,
		p9.TGetlock, p9.TLink, p9.TMkdir, p9.TRenameat, p9.TUnlinkat, p9.TVersion, p9.TAuth, p9.TAttach, p9.TFlush,
		p9.TWalk, p9.TRead, p9.TClunk:
		return change{}
	}
	return change{is: true}
}

// begin notes what a request may change, and when it opens a file.
func (r *reading) begin(a *inquiry, f fid, known bool) {
	if r.cache == nil {
		return
	}
	a.path = f.Path
	if a.changes = changes(a.kind, a.is.flags, f, known); a.changes.is {
		r.cache.Change(a.changes.path, a.changes.known)
	}
	if a.kind == p9.TLopen || a.kind == p9.TLcreate {
		a.is.opened = r.cache.Tick()
	}
}

// over notes that a request was answered, or never will be.
func (r *reading) over(a *inquiry, answered bool) {
	if a.changes.is {
		r.cache.Changed(time.Now(), a.changes.path, a.changes.known, answered)
	}
}

// Where an Rgetattr has the size, and where modification and change times begin and end.
const (
	attrSize  = p9.HeaderBytes + 8 + 13 + 4 + 4 + 4 + 8 + 8
	attrTimes = attrSize + 3*8 + 16
	attrEnd   = attrTimes + 32
)

// see takes what an answer says of a file.
func (r *reading) see(a *inquiry, reply []byte) {
	if r.cache != nil && a.kind == p9.TGetattr && reply[4] == p9.TGetattr+1 && len(reply) >= attrEnd {
		r.cache.Seen(a.path, string(reply[attrSize:attrSize+8])+string(reply[attrTimes:attrEnd]))
	}
}

// take takes a read; false where it goes on as it is.
func (r *reading) take(c *conn, a *inquiry, frame []byte, f fid) bool {
	if r.cache == nil || !f.reads() || len(frame) != readCount+4 {
		return false
	}
	offset, count := binary.LittleEndian.Uint64(frame[p9.HeaderBytes+4:]), binary.LittleEndian.Uint32(frame[readCount:])
	if offset > math.MaxInt64-2*maxFrame || count == 0 || int(count) > f.Most {
		return false
	}
	who := aggregate.Reader{Path: f.Path, Place: f.Place, Opened: f.opened}
	if r.cache.Pass(time.Now(), who, int64(offset), int(count), f.Most) {
		return false
	}
	a.part = &part{conn: c, tag: tagOf(frame), frame: frame, to: f.Target, opened: f.opened, offset: int64(offset),
		length: int(count), fid: binary.LittleEndian.Uint32(frame[p9.HeaderBytes:])}
	r.ask(a.part)
	return true
}

// ask answers a read, lets it wait for one that is under way, or lets it go.
func (r *reading) ask(p *part) {
	now, c := time.Now(), p.conn
	who := aggregate.Reader{Path: p.to.Path, Place: p.to.Place, Opened: p.opened}
	if r.pieces = r.cache.Find(now, who, p.offset, p.length, r.pieces[:0]); len(r.pieces) > 0 {
		r.count(p)
		r.done.ReadsIn++
		r.done.Bytes += int64(p.length)
		c.postData(p.tag, r.pieces...)
		c.finish(p)
		return
	}
	if g := r.cache.Join(now, who, p.offset, p.length); g != nil && g.ID.takes(c, now) {
		r.cache.Joined(now, g, who, p.offset, p.length)
		c.await(p.length)
		p.in = g.ID
		p.in.parts = append(p.in.parts, p)
		if p.in.sent {
			r.count(p)
		}
		return
	}
	g := r.cache.Ask(now, who, p.offset, p.length, p.to.Most)
	g.ID = &joint{fetch: g, parts: []*part{p}, carrier: p}
	p.in = g.ID
	binary.LittleEndian.PutUint32(p.frame[readCount:], uint32(g.End-g.Begin))
	r.q.push(request{conn: c, frame: p.frame, cost: cost(p.frame), joint: g.ID})
}

// takes says that a client's read may wait for a read of others: not for one that waits in another job's queue, nor
// with more than may be answered at once, nor where it comes behind answers that nobody takes.
func (j *joint) takes(c *conn, now time.Time) bool {
	from := j.carrier.conn
	return len(j.parts) < maxWaiting && (j.sent || from.lane == c.lane) && !from.stalls(now)
}

// stallsFrom is how long a client may take to accept an answer before nobody else waits for what comes behind it.
const stallsFrom = 100 * time.Millisecond

// stalls says that a client does not take its answers.
func (c *conn) stalls(now time.Time) bool {
	since := c.writes.Load()
	return since != 0 && now.Sub(time.Unix(0, since)) > stallsFrom
}

// await counts bytes of reads that wait for others'. Queue.mu is held.
func (c *conn) await(bytes int) {
	c.awaits += bytes
	c.makeRoom()
}

// release lets those ask again who wait for what comes behind answers that a client does not take.
func (r *reading) release(now time.Time) {
	for c := range r.q.conns {
		if !c.stalls(now) {
			continue
		}
		for _, f := range c.flights {
			j := f.joint
			if j == nil || j.fetch == nil || len(j.parts) < 2 {
				continue
			}
			r.cache.Lost(j.fetch)
			var again []*part
			for _, p := range j.parts[1:] {
				if p.conn.await(-p.length); !p.conn.gone {
					again = append(again, p)
				}
			}
			j.parts = j.parts[:1]
			r.repeat(again, true)
			r.q.merge.pushFlushes(j)
			j.flushes = nil
		}
	}
}

// count counts a read that the forwarder is not asked for.
func (r *reading) count(p *part) {
	p.conn.waiting--
	s := r.q.byLane[p.conn.lane]
	s.Requests++
	s.Bytes += int64(p.length)
}

// share gives all who wait for a read their bytes; false where the reply is not for the client that it came to. Who
// wanted more than came asks again: where the file ends is not known.
func (r *reading) share(j *joint, reply []byte) (pass bool) {
	g, data, whole := j.fetch, reply[p9.HeaderBytes:], false
	if reply[4] == p9.TRead+1 && len(data) >= 4 {
		n := binary.LittleEndian.Uint32(data)
		data, whole = data[4:], int(n) == len(data)-4
	}
	if j.carrier.conn.known[j.carrier.fid].opened != j.carrier.opened {
		whole = false // its handle was given up meanwhile: of which file the data is nobody knows
	}
	several := len(j.parts) > 1 || g.Ahead()
	if several {
		r.done.ReadsOut++
	}
	var again []*part
	for i, p := range j.parts {
		from, first := int(p.offset-g.Begin), i == 0
		if !first {
			p.conn.await(-p.length)
		}
		switch {
		case p.conn.gone:
			continue
		case first && !g.Ahead():
			pass = true
		case !whole || from > 0 && from+p.length > len(data):
			if first && j.flushed { // behind its flush it must not go again
				p.conn.postError(p.tag, syscall.EINTR)
				p.conn.conclude(p.tag, true)
				continue
			}
			if first {
				p.renew()
			}
			again = append(again, p)
			continue
		default:
			p.conn.postData(p.tag, data[from:min(from+p.length, len(data))])
		}
		if several {
			r.done.ReadsIn++
			r.done.Bytes += int64(p.length)
		}
		if first { // its message was sent
			p.conn.conclude(p.tag, true)
		} else {
			p.conn.finish(p)
		}
	}
	if whole {
		r.cache.Done(time.Now(), g, data)
	} else {
		r.cache.Lost(g)
	}
	r.repeat(again, whole)
	return pass
}

// renew makes the message of a read anew that was sent.
func (p *part) renew() {
	p.frame = lend(readCount + 4)
	binary.LittleEndian.PutUint32(p.frame, readCount+4)
	p.frame[4] = p9.TRead
	binary.LittleEndian.PutUint16(p.frame[5:], p.tag)
	binary.LittleEndian.PutUint32(p.frame[p9.HeaderBytes:], p.fid)
	binary.LittleEndian.PutUint64(p.frame[p9.HeaderBytes+4:], uint64(p.offset))
	binary.LittleEndian.PutUint32(p.frame[readCount:], uint32(p.length))
	p.conn.held++
	p.conn.bytes += len(p.frame)
}

// repeat lets reads go again that were sent: with others, or each by itself.
func (r *reading) repeat(parts []*part, together bool) {
	for _, p := range parts {
		p.conn.waiting++
		p.in = nil
		f := p.conn.known[p.fid]
		switch {
		case f.opened != p.opened || f.Target != p.to: // closed before it was answered
			p.conn.waiting--
			p.conn.postError(p.tag, syscall.EBADF)
			p.conn.finish(p)
		case together:
			r.ask(p)
		default:
			r.q.merge.pushAlone(p)
		}
	}
}

// lose lets those who wait for a read ask again that was not answered, and never will be.
func (r *reading) lose(j *joint) {
	r.cache.Lost(j.fetch)
	var again []*part
	for i, p := range j.parts {
		if i > 0 {
			p.conn.await(-p.length)
		}
		if p.conn.gone {
			continue
		}
		if !j.sent {
			p.conn.waiting--
		}
		again = append(again, p)
	}
	r.repeat(again, true)
}

// postError sends a client an error. Queue.mu is held.
func (c *conn) postError(tag uint16, err syscall.Errno) {
	c.post([]byte{p9.HeaderBytes + 4, 0, 0, 0, p9.RLerror, 0, 0, byte(err), 0, 0, 0}, tag)
}

// postData sends a client the data of a read. Queue.mu is held.
func (c *conn) postData(tag uint16, pieces ...[]byte) {
	n := 0
	for _, b := range pieces {
		n += len(b)
	}
	head := [p9.HeaderBytes + 4]byte{4: p9.TRead + 1}
	binary.LittleEndian.PutUint32(head[:], uint32(len(head)+n))
	binary.LittleEndian.PutUint32(head[p9.HeaderBytes:], uint32(n))
	c.post(head[:], tag)
	for _, b := range pieces {
		c.posts = append(c.posts, b...)
	}
}
