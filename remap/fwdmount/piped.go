package fwdmount

import (
	"context"
	"io"
	"sync"

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
	// maxPipes bounds the pipes for answers.
	maxPipes = 16
)

// pipes are the pipes for answers.
type pipes struct {
	mu   sync.Mutex
	idle []*p9.Pipe
	made int
}

// take returns an empty pipe, nil when there are too many.
func (p *pipes) take() *p9.Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		q := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return q
	}
	if p.made == maxPipes {
		return nil
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
	if q.Held() == 0 {
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
	p.idle = nil
}

// lateRead is the result of a read that is still to be done, by device.readPipe.
type lateRead struct {
	h    *handle
	ctx  context.Context
	dest []byte
	off  int64
}

var _ fuse.ReadResult = (*lateRead)(nil)

// Bytes reads into memory.
func (r *lateRead) Bytes([]byte) ([]byte, fuse.Status) {
	n := 0
	errno := r.h.node.m.transfer(r.ctx, opRead, &n, func(ctx context.Context, s *session, _ int) error {
		fid, err := r.h.at(ctx, s)
		if err == nil {
			n, err = readAt(ctx, fid, r.dest, r.off)
		}
		return err
	})
	r.h.moved(r.ctx, opRead, n)
	return r.dest[:n], fuse.Status(errno)
}
func (r *lateRead) Size() int { return len(r.dest) }
func (r *lateRead) Done()     {}

// readPipe reads through a pipe and answers; where that cannot be, it reads into memory.
func (d *device) readPipe(r *lateRead, unique uint64) {
	var pipe *p9.Pipe // holds the answer; nil when that is in memory
	n := 0
	errno := r.h.node.m.transfer(r.ctx, opRead, &n, func(ctx context.Context, s *session, _ int) error {
		fid, err := r.h.at(ctx, s)
		if err != nil {
			return err
		}
		if pipe, n, err = d.fillPipe(ctx, fid, r, unique); err == p9.ErrNoPipe {
			n, err = readAt(ctx, fid, r.dest, r.off)
		}
		return err
	})
	r.h.moved(r.ctx, opRead, n)
	if pipe == nil {
		d.answer(unique, errno, r.dest[:n])
		return
	}
	err := pipe.SpliceTo(d.fd)
	d.pipes.give(pipe)
	if err != nil && !nobodyWaits(err) {
		d.log.Warn("answering the kernel through a pipe", "err", err)
		d.answerRead(unique, r, fuse.OK, nil)
	}
}

// fillPipe reads into a pipe behind the answer's header. At the end of the file, where that header
// says too much, the data comes to r.dest and there is no pipe.
func (d *device) fillPipe(ctx context.Context, fid *p9.Fid, r *lateRead, unique uint64) (pipe *p9.Pipe, n int, err error) {
	if pipe = d.pipes.take(); pipe == nil {
		return nil, 0, p9.ErrNoPipe
	}
	head := outHeader(unique, 0, len(r.dest))
	if _, err = pipe.Write(head[:]); err == nil {
		n, err = fid.ReadPipe(ctx, pipe, len(r.dest), r.off)
	}
	if err == nil {
		return pipe, n, nil
	}
	if err == io.EOF {
		if _, err = io.ReadFull(pipe, head[:]); err == nil {
			_, err = io.ReadFull(pipe, r.dest[:n])
		}
	}
	d.pipes.give(pipe)
	return nil, n, err
}
