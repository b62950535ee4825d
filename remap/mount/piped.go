package mount

import (
	"context"
	"io"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"fairway/collector/p9"
)

// The data of a large read goes from the forwarder's connection through a pipe to the kernel, which
// copies it to the program: not once into this process's memory and out again.

const (
	// pipeFrom is the smallest read worth a pipe, bytes: below, the calls cost more than the copy.
	pipeFrom = 256 << 10
	// pipeRoom is the size of a pipe, bytes, one in 4096 of which is how many fragments of the network it
	// holds; rootPipeRoom is what only root may have.
	pipeRoom     = 1 << 20
	rootPipeRoom = 4 << 20
	// maxPipes bounds the pipes of a mount; half of them are kept for answers.
	maxPipes = 16
)

// pipes are the pipes for answers and for what is read ahead.
type pipes struct {
	mu     sync.Mutex
	idle   []*p9.Pipe
	made   int
	closed bool // pipes that come back are not kept
}

// take returns an empty pipe; nil when fewer than keep would be left.
func (p *pipes) take(keep int) *p9.Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle)+maxPipes-p.made <= keep {
		return nil
	}
	if n := len(p.idle); n > 0 {
		q := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return q
	}
	q, err := p9.NewPipe(rootPipeRoom)
	if err != nil {
		q, err = p9.NewPipe(pipeRoom)
	}
	if err != nil {
		return nil
	}
	p.made++
	return q
}

// give takes a pipe back; one that is not empty is given up.
func (p *pipes) give(q *p9.Pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.Held() == 0 && !p.closed {
		p.idle = append(p.idle, q)
		return
	}
	q.Close()
	p.made--
}

func (p *pipes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.idle {
		q.Close()
	}
	p.idle, p.closed = nil, true
}

// lateRead is the result of a read that is still to be done, by device.readLate.
type lateRead struct {
	h     *handle
	ctx   context.Context
	dest  []byte
	off   int64
	block *block // what was read ahead of it, nil for nothing
}

// Bytes reads into memory.
func (r *lateRead) Bytes([]byte) ([]byte, fuse.Status) {
	n, errno := r.do(r.intoMemory)
	return r.dest[:n], fuse.Status(errno)
}
func (r *lateRead) Size() int { return len(r.dest) }
func (r *lateRead) Done()     {}

func (r *lateRead) intoMemory(ctx context.Context, s *session) (int, error) {
	fid, err := r.h.at(ctx, s)
	if err != nil {
		return 0, err
	}
	return readAt(ctx, fid, r.dest, r.off)
}

// do has get bring the data and counts it. The file's next block is asked for before the answer goes out.
func (r *lateRead) do(get func(ctx context.Context, s *session) (int, error)) (n int, errno syscall.Errno) {
	errno = r.h.node.m.transfer(r.ctx, opRead, &n, func(ctx context.Context, s *session, _ int) (err error) {
		n, err = get(ctx, s)
		return err
	})
	r.h.moved(r.ctx, opRead, n)
	if r.h.reader != nil && errno == 0 && n == len(r.dest) {
		r.h.reader.goOn(n)
	}
	return n, errno
}

// readLate reads and answers: from the block read ahead, through a pipe or, small reads and where that
// cannot be, from memory.
func (d *device) readLate(r *lateRead, unique uint64) {
	var pipe *p9.Pipe // holds the answer; when nil, data does
	data := r.dest
	if r.block != nil {
		defer r.block.put()
		defer r.block.cancel() // it is nobody else's, should the caller not have waited for it
	}
	n, errno := r.do(func(ctx context.Context, s *session) (n int, err error) {
		if r.block != nil && r.block.wait(ctx) {
			if pipe, data = d.fromBlock(r.block, r.dest, unique); pipe != nil || data != nil {
				return r.block.n, nil
			}
			data = r.dest
		}
		err = p9.ErrNoPipe
		if len(r.dest) >= pipeFrom {
			pipe, n, err = d.fillPipe(ctx, s, r, unique)
		}
		if err == p9.ErrNoPipe {
			n, err = r.intoMemory(ctx, s)
		}
		return n, err
	})
	if pipe == nil {
		d.answer(unique, errno, data[:n])
		return
	}
	err := pipe.SpliceTo(d.fd)
	d.pipes.give(pipe)
	if err != nil && !nobodyWaits(err) {
		d.log.Warn("answering the kernel through a pipe", "err", err)
		data, status := r.Bytes(nil)
		d.answer(unique, syscall.Errno(status), data)
	}
}

// fromBlock returns the answer from a block: in a pipe behind a header, or in memory, in dest where no
// pipe is left; neither when the data did not fit behind the header, now or at an attempt before.
func (d *device) fromBlock(b *block, dest []byte, unique uint64) (pipe *p9.Pipe, data []byte) {
	if b.pipe == nil {
		return nil, b.buf
	}
	if b.pipe.Held() < b.n {
		return nil, nil
	}
	if pipe = d.pipes.take(0); pipe == nil {
		if _, err := io.ReadFull(b.pipe, dest[:b.n]); err != nil {
			return nil, nil
		}
		return nil, dest
	}
	head := outHeader(unique, 0, b.n)
	_, err := pipe.Write(head[:])
	if err == nil {
		err = pipe.Append(b.pipe)
	}
	if err != nil {
		d.pipes.give(pipe)
		return nil, nil
	}
	return pipe, nil
}

// fillPipe reads into a pipe behind the answer's header. At the end of the file, where that header
// says too much, the data comes to r.dest and the pipe is nil.
func (d *device) fillPipe(ctx context.Context, s *session, r *lateRead, unique uint64) (*p9.Pipe, int, error) {
	fid, err := r.h.at(ctx, s)
	if err != nil {
		return nil, 0, err
	}
	head := outHeader(unique, 0, len(r.dest))
	return d.pipes.fill(ctx, fid, 0, head[:], len(r.dest), r.off, func() []byte { return r.dest })
}

// fill reads size bytes into a pipe behind head, when that leaves keep pipes. At the end of the file the
// data comes to what short returns and the pipe is nil.
func (p *pipes) fill(ctx context.Context, fid *p9.Fid, keep int, head []byte, size int, off int64,
	short func() []byte) (pipe *p9.Pipe, n int, err error) {
	if pipe = p.take(keep); pipe == nil {
		return nil, 0, p9.ErrNoPipe
	}
	if len(head) > 0 {
		_, err = pipe.Write(head)
	}
	if err == nil {
		n, err = fid.ReadPipe(ctx, pipe, size, off)
	}
	if err == nil {
		return pipe, n, nil
	}
	if err == io.EOF {
		if _, err = io.ReadFull(pipe, head); err == nil {
			_, err = io.ReadFull(pipe, short()[:n])
		}
	}
	p.give(pipe)
	return nil, n, err
}
