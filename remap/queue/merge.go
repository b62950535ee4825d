package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"sync"
	"time"

	"fairway/collector/p9"
	"fairway/collector/source/queue"
	"fairway/remap/queue/aggregate"
)

// merging is what the queue gathers, guarded by Queue.mu. Small writes that touch go as one, through the open file of
// one of those who wrote. It may do there what the others may: the same user has opened the same file for writing
// through each. Each part is answered when the forwarder has answered the whole; where that failed or stopped short the
// parts go alone, so that each has its own answer.
type merging struct {
	q      *Queue
	table  *aggregate.Table[*part, opened]
	wait   time.Duration // 0: no write is gathered
	places placeSeed
	reading
	timer *time.Timer
	wakes time.Time // when timer looks again; zero: it does not
}

// opened is an open file of a client.
type opened struct {
	conn *conn
	fid  uint32
}

// part is a client's request that goes together with others.
type part struct {
	conn   *conn
	tag    uint16
	frame  []byte // not the part's any more once it was sent by itself
	fid    uint32
	to     aggregate.Target
	opened uint64 // as in fid; of reads
	offset int64
	length int
	in     *joint // nil while it waits in the table
}

// joint is one request for several: a write of all their data, or a read of what all want.
type joint struct {
	parts   []*part
	carrier *part // whose connection it goes through
	writes  aggregate.Message[*part, opened]
	fetch   *aggregate.Fetch[*joint] // nil: it writes
	sent    bool                     // to the forwarder
	flushed bool                     // who asked has given it up, and the forwarder knows
	flushes []request                // that wait for the answer
}

// gathered is what a connection has to do with those of others; guarded by Queue.mu but for sending.
type gathered struct {
	fids
	posts   []byte // answers that did not come through the connection
	awaits  int    // bytes of reads that wait for others': they will be posted
	posted  chan struct{}
	sending sync.Mutex    // guards writing to the client
	spare   []byte        // becomes posts; guarded by sending
	carries int           // writes at the forwarder that are others' too
	settled chan struct{} // closed when there are none, once the client has gone
	gone    bool          // the client ended
}

func newMerging(q *Queue, wait time.Duration, cache int) *merging {
	m := &merging{q: q, wait: wait, places: placeSeed{maphash.MakeSeed()}, table: aggregate.New[*part, opened](wait)}
	if m.reading.q = q; cache > 0 {
		m.cache = aggregate.NewCache[*joint](cache)
	}
	return m
}

// on says that something goes together.
func (r *merging) on() bool { return r.wait > 0 || r.cache != nil }

// merged is what went together so far; nil where nothing does. r.mu is held.
func (r *merging) merged() *queue.Merged {
	if !r.on() {
		return nil
	}
	done := r.done
	if r.cache != nil {
		n := r.cache.Counts()
		done.Hits, done.Misses, done.AheadBytes, done.UnusedBytes = n.Hits, n.Misses, n.AheadBytes, n.UnusedBytes
	}
	return &done
}

var errTag = errors.New("a request has the tag of another that was not answered yet")

// gather takes a request of a client: it waits for others, joins them, or goes on, behind those that it must not
// overtake. r.mu is held.
func (r *merging) gather(c *conn, frame []byte) error {
	tag := tagOf(frame)
	if _, twice := c.asked[tag]; twice {
		return fmt.Errorf("%w: %d", errTag, tag)
	}
	var f fid
	known := false
	if len(frame) >= p9.HeaderBytes+4 {
		f, known = c.known[binary.LittleEndian.Uint32(frame[p9.HeaderBytes:])]
	}
	if frame[4] == p9.TVersion && len(c.asked) > 0 {
		return fmt.Errorf("a Tversion while %d requests have no answer yet", len(c.asked))
	}
	a := c.request(frame, r.places, c.largest.Load())
	c.asked[tag] = a
	r.begin(a, f, known)
	taken := false
	switch frame[4] {
	case p9.TWrite:
		taken = known && r.gatherWrite(c, a, frame, f)
	case p9.TRead:
		r.flushRange(frame, f.Path)
		taken = known && r.take(c, a, frame, f)
	case p9.TFlush:
		taken, known = r.holdFlush(c, a, frame), true
	case p9.TGetattr, p9.TSetattr, p9.TFsync, p9.TClunk, p9.TRemove, p9.TLock,
		p9.TGetlock, p9.TRename, p9.TLopen, p9.TXattrwalk, p9.TXattrcreate:
		r.settle(f.Path)
	case p9.TUnlinkat, p9.TRenameat:
		r.settleNamed(frame, c)
	default:
		known = true // it meets no file's data
	}
	if !known {
		r.send(r.table.FlushWhere(func(aggregate.Target) bool { return true }))
	}
	if !taken {
		r.q.push(request{conn: c, frame: frame, cost: cost(frame)})
	}
	return nil
}

// settle sends what waits for a file. r.mu is held.
func (r *merging) settle(path uint64) { r.send(r.table.Flush(path, 0, math.MaxInt64)) }

// flushRange sends what waits for the range that a read asks for. r.mu is held.
func (r *merging) flushRange(frame []byte, path uint64) {
	if len(frame) < readCount+4 {
		return
	}
	offset, end := binary.LittleEndian.Uint64(frame[p9.HeaderBytes+4:]), int64(math.MaxInt64)
	if offset < math.MaxInt64-maxFrame {
		end = int64(offset) + int64(min(binary.LittleEndian.Uint32(frame[readCount:]), maxFrame))
	}
	r.send(r.table.Flush(path, int64(min(offset, math.MaxInt64)), end))
}

// settleNamed sends what waits for the files whose names a request changes. r.mu is held.
func (r *merging) settleNamed(frame []byte, c *conn) {
	f := p9.Decoder{Rest: frame[p9.HeaderBytes:]}
	for f.Err == nil && len(f.Rest) > 4 {
		dir, found := c.known[f.U32()]
		place := r.places.below(dir.Place, f.Text())
		r.send(r.table.FlushWhere(func(t aggregate.Target) bool { return !found || dir.lost || t.Place == place }))
	}
}

// gatherWrite gives a write to the table; false where it goes on by itself. r.mu is held.
func (r *merging) gatherWrite(c *conn, a *inquiry, frame []byte, f fid) bool {
	if len(frame) < writeData {
		return false
	}
	offset, n := binary.LittleEndian.Uint64(frame[p9.HeaderBytes+4:]), len(frame)-writeData
	if r.wait == 0 || !f.writes() || offset > math.MaxInt64-maxFrame ||
		uint64(binary.LittleEndian.Uint32(frame[writeData-4:])) != uint64(n) {
		r.settle(f.Path)
		return false
	}
	p := &part{conn: c, tag: tagOf(frame), frame: frame, to: f.Target, offset: int64(offset), length: n}
	a.part = p
	r.send(r.table.Add(time.Now(), f.Target, aggregate.Write[*part, opened]{ID: p,
		By: opened{c, binary.LittleEndian.Uint32(frame[p9.HeaderBytes:])}, Offset: p.offset, Length: n}))
	return true
}

// send puts messages of the table into the jobs' queues. r.mu is held.
func (r *merging) send(messages []aggregate.Message[*part, opened]) {
	for _, m := range messages {
		if len(m.Writes) == 1 {
			r.pushAlone(m.Writes[0].ID)
			continue
		}
		j := &joint{writes: m}
		n := writeData
		for i := range m.Writes {
			p := m.Writes[i].ID
			p.in = j
			j.parts = append(j.parts, p)
			n += p.length
			if j.carrier == nil && p.conn.idle() {
				j.carrier = p
			}
		}
		if j.carrier == nil {
			j.carrier = j.parts[0]
		}
		frame := lend(n)
		copy(frame, j.carrier.frame[:writeData])
		binary.LittleEndian.PutUint32(frame, uint32(n))
		binary.LittleEndian.PutUint64(frame[p9.HeaderBytes+4:], uint64(j.parts[0].offset))
		binary.LittleEndian.PutUint32(frame[writeData-4:], uint32(n-writeData))
		at := frame[writeData:]
		for _, p := range j.parts {
			at = at[copy(at, p.frame[writeData:]):]
		}
		r.q.push(request{conn: j.carrier.conn, frame: frame, cost: cost(frame), joint: j})
	}
}

// idle says that nothing is being written to the client: what it carries of others is not kept up by its own answers.
func (c *conn) idle() bool {
	if c.gone || len(c.posts) > 0 || !c.sending.TryLock() {
		return false
	}
	c.sending.Unlock()
	return true
}

// pushAlone lets a part go by itself, if its client is still there. r.mu is held.
func (r *merging) pushAlone(p *part) {
	if p.conn.gone {
		return
	}
	if a := p.conn.asked[p.tag]; a != nil {
		a.part = nil
	}
	r.q.push(request{conn: p.conn, frame: p.frame, cost: cost(p.frame)})
}

// holdFlush does what a Tflush asks of a part: one that waits here is dropped, and the forwarder, which does not know
// it, says so. What is under way with others' is answered first, or the forwarder might drop it for all of them. False:
// the flush goes on. r.mu is held.
func (r *merging) holdFlush(c *conn, a *inquiry, frame []byte) bool {
	if len(frame) < p9.HeaderBytes+2 {
		return false
	}
	old := binary.LittleEndian.Uint16(frame[p9.HeaderBytes:])
	o := c.asked[old]
	if o == nil || o.part == nil {
		return false
	}
	p := o.part
	switch j := p.in; {
	case j == nil:
		r.table.Remove(p.to, p.offset, p)
		c.conclude(old, true)
		c.waiting--
		c.free(1, len(p.frame))
		giveBack(p.frame)
		return false
	case j.fetch != nil && len(j.parts) == 1:
		r.cache.Lost(j.fetch)
		j.flushed = true
		return false
	default:
		a.part = p
		j.flushes = append(j.flushes, request{conn: c, frame: frame, cost: cost(frame)})
		return true
	}
}

// costs are what each connection has to pay of a joint request, by its part of the bytes; the carrier pays for those
// that have gone.
func (j *joint) costs(q request) iter.Seq2[*conn, int] {
	return func(yield func(*conn, int) bool) {
		all := 0
		for _, p := range j.parts {
			all += p.length
		}
		for _, p := range j.parts {
			c := p.conn
			if c.gone {
				c = q.conn
			}
			if !yield(c, int(int64(q.cost)*int64(p.length)/int64(all))) {
				return
			}
		}
	}
}

// depart notes that a joint request goes to the forwarder. r.mu is held.
func (r *merging) depart(q request) {
	j := q.joint
	j.sent = true
	for c, cost := range j.costs(q) {
		s := r.q.byLane[c.lane]
		s.Requests++
		s.Cost += int64(cost)
	}
	for _, p := range j.parts {
		c := p.conn
		if c.gone {
			c = q.conn
		} else {
			c.waiting--
		}
		r.q.byLane[c.lane].Bytes += int64(p.length)
	}
	if j.fetch != nil {
		r.cache.Sent(time.Now(), j.fetch)
		return
	}
	q.conn.carries++
	q.conn.held++ // the parts are counted until they are answered
	q.conn.bytes += len(q.frame)
	r.done.WritesIn += int64(len(j.parts))
	r.done.WritesOut++
	r.done.Bytes += int64(len(q.frame) - writeData)
}

// answer gives each part of a joint request its answer; false where the reply is not for the carrier. r.mu is held.
func (r *merging) answer(c *conn, j *joint, reply []byte) (pass bool) {
	if j.fetch != nil {
		pass = r.share(j, reply)
	} else {
		pass = r.shareWrite(c, j, reply)
	}
	r.pushFlushes(j)
	return pass
}

// pushFlushes lets each Tflush go whose request was answered, or goes alone; one that goes with others holds it again.
// r.mu is held.
func (r *merging) pushFlushes(j *joint) {
	for _, q := range j.flushes {
		if a := q.conn.asked[tagOf(q.frame)]; a != nil && !q.conn.gone {
			if a.part = nil; !r.holdFlush(q.conn, a, q.frame) {
				r.q.push(q)
			}
		}
	}
}

// shareWrite gives each part of a write its answer. Queue.mu is held.
func (r *merging) shareWrite(c *conn, j *joint, reply []byte) (pass bool) {
	r.unload(c, j)
	done, at := 0, 0
	if reply[4] == p9.TWrite+1 && len(reply) >= p9.HeaderBytes+4 {
		done = int(min(binary.LittleEndian.Uint32(reply[p9.HeaderBytes:]), maxFrame))
	}
	for _, p := range j.parts {
		at += p.length
		switch {
		case p.conn.gone && p.conn != c:
		case at > done:
			p.conn.waiting++
			r.pushAlone(p)
		case p == j.carrier:
			binary.LittleEndian.PutUint32(reply[p9.HeaderBytes:], uint32(p.length))
			p.conn.finish(p)
			pass = true
		default:
			answer := [p9.HeaderBytes + 4]byte{p9.HeaderBytes + 4, 0, 0, 0, p9.TWrite + 1}
			binary.LittleEndian.PutUint32(answer[p9.HeaderBytes:], uint32(p.length))
			p.conn.post(answer[:], p.tag)
			p.conn.finish(p)
		}
	}
	return pass
}

// unload notes that a write for several was answered, or will not be. r.mu is held.
func (r *merging) unload(c *conn, j *joint) {
	r.table.Answered(time.Now(), j.writes)
	if c.carries--; c.carries == 0 && c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
}

// finish forgets a part that was answered, whose own message was not sent. Queue.mu is held.
func (c *conn) finish(p *part) {
	c.conclude(p.tag, true)
	c.free(1, len(p.frame))
	giveBack(p.frame)
}

// conclude forgets a request that was answered, or never will be. Queue.mu is held.
func (c *conn) conclude(tag uint16, answered bool) {
	if a := c.asked[tag]; a != nil {
		delete(c.asked, tag)
		c.queue.merge.over(a, answered)
	}
}

// note keeps what a reply says of the client's handles. Queue.mu is held.
func (c *conn) note(tag uint16, reply []byte) {
	a := c.asked[tag]
	if a == nil {
		return
	}
	c.conclude(tag, true)
	c.fids.reply(a, reply)
	c.queue.merge.see(a, reply)
}

// rearm looks again when something will have waited long enough. r.mu is held.
func (r *merging) rearm() {
	// What came meanwhile waits at least as long as it may from now on.
	if !r.on() || !r.wakes.IsZero() && time.Until(r.wakes) <= r.wait {
		return
	}
	next := r.table.Next()
	if r.cache != nil {
		if sweep := r.cache.Next(); next.IsZero() || !sweep.IsZero() && sweep.Before(next) {
			next = sweep
		}
	}
	if next.IsZero() || !r.wakes.IsZero() && !next.Before(r.wakes) {
		return
	}
	r.wakes = next
	if r.timer == nil {
		r.timer = time.AfterFunc(time.Until(next), r.due)
		return
	}
	r.timer.Reset(time.Until(next))
}

// due sends what has waited long enough.
func (r *merging) due() {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	now := time.Now()
	r.wakes = time.Time{}
	r.send(r.table.Due(now))
	if r.cache != nil && !r.cache.Next().After(now) {
		r.release(now)
		r.cache.Sweep(now)
	}
	r.q.pump()
	r.rearm()
}
