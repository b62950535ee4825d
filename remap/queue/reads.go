package queue

import (
	"encoding/binary"
	"math"
	"time"

	"fairway/collector/p9"
	"fairway/remap/queue/aggregate"
)

// readKey is what two reads must have in common to share an answer.
type readKey struct {
	aggregate.Target
	offset uint64
	count  uint32
}

// joinRead lets a read share the answer of one that was not sent yet. One that was sent may have been done already,
// and what was written since then would be missing; so the next goes when that one is answered, for all who asked
// meanwhile. r.mu is held.
func (r *merging) joinRead(c *conn, a *inquiry, frame []byte, f fid) bool {
	if len(frame) < readCount+4 {
		return false
	}
	offset, count := binary.LittleEndian.Uint64(frame[p9.HeaderBytes+4:]), binary.LittleEndian.Uint32(frame[readCount:])
	end := int64(math.MaxInt64)
	if offset < math.MaxInt64-maxFrame {
		end = int64(offset) + int64(min(count, maxFrame))
	}
	r.send(r.table.Flush(f.Path, int64(min(offset, math.MaxInt64)), end))
	if !f.reads() {
		return false
	}
	p := &part{conn: c, tag: tagOf(frame), frame: frame, length: int(min(count, maxFrame))}
	key := readKey{f.Target, offset, count}
	key.Flags = 0
	j := r.reads[key]
	if j != nil && j.sent {
		if j.next == nil {
			j.next = &joint{read: true, key: key, by: time.Now().Add(r.wait)}
			r.later = append(r.later, j.next)
		}
		j = j.next
	}
	first := j == nil
	if first {
		j = &joint{read: true, key: key}
	}
	if len(j.parts) >= maxWaiting {
		return false
	}
	p.in, a.part = j, p
	j.parts = append(j.parts, p)
	if first {
		r.pushRead(j)
	}
	return true
}

// pushRead lets a read go for all who wait for it. r.mu is held.
func (r *merging) pushRead(j *joint) {
	if j.pushed {
		return
	}
	alive := j.parts[:0]
	for _, p := range j.parts {
		if !p.conn.gone {
			alive = append(alive, p)
		}
	}
	if j.parts = alive; len(alive) == 0 {
		return
	}
	j.pushed, j.carrier = true, alive[0]
	r.reads[j.key] = j
	r.q.push(request{conn: j.carrier.conn, frame: j.carrier.frame, cost: cost(j.carrier.frame), joint: j})
}

// end takes a read out of those that may be joined, and lets the one behind it go. r.mu is held.
func (r *merging) end(j *joint) {
	if r.reads[j.key] == j {
		delete(r.reads, j.key)
	}
	if j.next != nil {
		r.pushRead(j.next)
		j.next = nil
	}
}

// shareRead gives all who wait for a read their bytes. Queue.mu is held.
func (r *merging) shareRead(c *conn, j *joint, reply []byte) bool {
	delete(c.asked, j.carrier.tag)
	for _, p := range j.parts {
		switch {
		case p == j.carrier || p.conn.gone:
		case reply[4] == p9.TRead+1:
			p.conn.post(reply, p.tag)
			p.conn.finish(p)
		default:
			p.conn.waiting++
			r.pushAlone(p)
		}
	}
	r.end(j)
	return true
}
