package mount

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fairway/collector/p9"
)

// While the kernel copies one block of a file to the program that reads it from front to back, the
// forwarder could be working on the next. So that one is asked for ahead of the program, under rules
// that keep what programs may rely on: only for files opened for reading alone and not for direct or
// synchronous I/O; a block that is older than aheadFor, or was asked for before a change to the file
// through this mount ended, is thrown away.

const (
	// aheadFor is how much older than the read it answers a block may be, and how long a program may
	// pause between two reads and still count as reading on.
	aheadFor = 100 * time.Millisecond
	// aheadFrom is the smallest read worth it, bytes: below, a request costs more than is won.
	aheadFrom = 64 << 10
	// aheadStreak is how many reads must follow each other.
	aheadStreak = 2
	// aheadMost bounds the blocks of a mount, each as large as the reads it follows.
	aheadMost = 32
)

// reader follows the reads of one open file and holds at most one block read ahead.
type reader struct {
	h *handle

	mu           sync.Mutex // guards everything below
	next         int64      // where the last read ended
	last         time.Time  // when it began
	streak       int        // reads that followed each other
	block        *block     // nil: no block
	used, wasted int        // blocks
}

// block is a part of a file that is being or has been read ahead.
type block struct {
	m       *Mount
	off     int64
	size    int
	changes uint64 // node.changes when it was asked for
	asked   time.Time
	cancel  context.CancelFunc
	ready   chan struct{}
	holders atomic.Int32 // who may still touch what follows: the fetch, and the reader or the answer
	// The fetch sets these before it closes ready.
	pipe *p9.Pipe // holds the data of a large block, else
	buf  []byte   // does
	n    int
	err  error
}

// newReader returns nil for a file that is not to be read ahead.
func newReader(h *handle, flags uint32) *reader {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&(syscall.O_DIRECT|syscall.O_SYNC|syscall.O_DSYNC) != 0 {
		return nil
	}
	return &reader{h: h}
}

// take notes a read that begins and returns the block that answers it, if there is one.
func (r *reader) take(off int64, size int, now time.Time) *block {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streak++; off != r.next || now.Sub(r.last) > aheadFor {
		r.streak = 1
	}
	r.next, r.last = off+int64(size), now
	b := r.block
	r.block = nil
	if b == nil {
		return nil
	}
	if b.off == off && b.size == size && now.Sub(b.asked) <= aheadFor && b.changes == r.h.node.changes.Load() {
		r.used++
		return b
	}
	r.wasted++
	b.cancel()
	b.put()
	return nil
}

// goOn asks for the next block when the program reads on and has used most of what it was given.
func (r *reader) goOn(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size < aheadFrom || r.streak < aheadStreak || r.block != nil || r.wasted > 1+r.used/8 {
		return
	}
	m := r.h.node.m
	if !m.blocks.enter() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &block{m: m, off: r.next, size: size, changes: r.h.node.changes.Load(), asked: time.Now(), cancel: cancel,
		ready: make(chan struct{})}
	b.holders.Store(2)
	if !m.link.behind(func(s *session) { b.fetch(ctx, r.h, s) }) {
		cancel()
		m.blocks.leave(nil)
		return
	}
	r.block = b
	time.AfterFunc(aheadFor, func() { r.drop(b) })
}

// drop throws a block away if it is still the reader's; nil means whatever it has.
func (r *reader) drop(b *block) {
	r.mu.Lock()
	mine := r.block
	if mine == nil || b != nil && b != mine {
		r.mu.Unlock()
		return
	}
	r.block = nil
	r.wasted++
	r.mu.Unlock()
	mine.cancel()
	<-mine.ready // its request does not outlive the file's fid
	mine.put()
}

// fetch reads the block.
func (b *block) fetch(ctx context.Context, h *handle, s *session) {
	defer b.put()
	defer b.cancel()
	defer close(b.ready)
	fid, err := h.at(ctx, s)
	if err == nil {
		b.n, err = b.read(ctx, fid)
	}
	b.err = err
}

// read gets the data, that of a large block into a pipe where that can be.
func (b *block) read(ctx context.Context, fid *p9.Fid) (n int, err error) {
	memory := func() []byte {
		b.buf = b.m.blocks.get(b.size)
		return b.buf
	}
	if b.size >= pipeFrom {
		if b.pipe, n, err = b.m.pipes.fill(ctx, fid, maxPipes/2, nil, b.size, b.off, memory); err != p9.ErrNoPipe {
			return n, err
		}
	}
	return readAt(ctx, fid, memory(), b.off)
}

// readAt reads; the end of the file is not an error.
func readAt(ctx context.Context, fid *p9.Fid, buf []byte, off int64) (int, error) {
	n, err := fid.ReadAt(ctx, buf, off)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// wait reports whether the block has arrived whole; otherwise it must be asked for again.
func (b *block) wait(ctx context.Context) bool {
	select {
	case <-b.ready:
		return b.err == nil
	case <-ctx.Done():
		return false
	}
}

// put gives one holder's use of the data back.
func (b *block) put() {
	if b.holders.Add(-1) > 0 {
		return
	}
	if b.pipe != nil {
		b.m.pipes.give(b.pipe)
	}
	b.m.blocks.leave(b.buf)
}

// blocks bounds the blocks of a mount and reuses their buffers.
type blocks struct {
	out   atomic.Int32
	spare sync.Pool // of *[]byte
}

// enter counts a block; it reports false when there are enough.
func (p *blocks) enter() bool {
	if p.out.Add(1) <= aheadMost {
		return true
	}
	p.out.Add(-1)
	return false
}

// get returns a buffer for a block.
func (p *blocks) get(size int) []byte {
	if spare, _ := p.spare.Get().(*[]byte); spare != nil && cap(*spare) >= size {
		return (*spare)[:size]
	}
	return make([]byte, size)
}

// leave takes a block's buffer back, if it had one.
func (p *blocks) leave(buf []byte) {
	if p.out.Add(-1); buf != nil {
		p.spare.Put(&buf)
	}
}
