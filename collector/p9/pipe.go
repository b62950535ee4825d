package p9

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Pipe carries data that was read in the kernel to another file, without a copy through this process.
// It is not for concurrent use.
type Pipe struct {
	r, w int
	held int // bytes
}

// ErrNoPipe says that data cannot be read into a pipe here and now: the connection is not a socket of
// the kernel, the pipe has no room for as many fragments as the network delivers, or too many pipes
// are in use. The same read with ReadAt works.
var ErrNoPipe = errors.New("the data cannot be read into a pipe")

const (
	// pieceRoom is the size asked for of the pipe of one piece, bytes. A pipe holds a fragment of the
	// network for each 4 KiB of it, however small: this is 65 KB in packets of 1024 bytes.
	pieceRoom = 256 << 10
	// maxPiping bounds the pieces that may be read into pipes at one time.
	maxPiping = 256
)

// NewPipe makes a pipe of room bytes. Without root a pipe may have up to 1 MiB, and a user's pipes
// together 64 MiB, where the system's settings are the usual ones.
func NewPipe(room int) (*Pipe, error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("a pipe: %w", err)
	}
	p := &Pipe{r: fd[0], w: fd[1]}
	if _, err := unix.FcntlInt(uintptr(p.r), unix.F_SETPIPE_SZ, room); err != nil {
		p.Close()
		return nil, fmt.Errorf("a pipe of %d bytes: %w", room, err)
	}
	return p, nil
}

// Close gives the pipe back with what is in it.
func (p *Pipe) Close() {
	unix.Close(p.r)
	unix.Close(p.w)
}

// Held is how many bytes are in the pipe.
func (p *Pipe) Held() int { return p.held }

// Write puts b into the pipe; without room for all of it the error is ErrNoPipe.
func (p *Pipe) Write(b []byte) (int, error) {
	n, err := unix.Write(p.w, b)
	p.held += max(n, 0)
	if err == unix.EAGAIN || err == nil && n < len(b) {
		err = ErrNoPipe
	}
	return max(n, 0), err
}

// Read takes what is in the pipe; io.EOF when there is nothing.
func (p *Pipe) Read(b []byte) (int, error) {
	if p.held == 0 {
		return 0, io.EOF
	}
	n, err := unix.Read(p.r, b)
	p.held -= max(n, 0)
	return max(n, 0), err
}

// SpliceTo moves all that is in the pipe to the file fd with one call, as a device wants a message.
func (p *Pipe) SpliceTo(fd int) error {
	want := p.held
	n, err := unix.Splice(p.r, nil, fd, nil, want, 0)
	p.held -= int(max(n, 0))
	if err == nil && int(n) < want {
		err = io.ErrShortWrite
	}
	return err
}

// Append moves all that is in q behind what is in p; a rest that has no room is ErrNoPipe.
func (p *Pipe) Append(q *Pipe) error {
	for q.held > 0 {
		n, err := unix.Splice(q.r, nil, p.w, nil, q.held, unix.SPLICE_F_NONBLOCK)
		if err == unix.EAGAIN {
			return ErrNoPipe
		}
		if err != nil {
			return fmt.Errorf("%d bytes from pipe to pipe: %w", q.held, err)
		}
		q.held -= int(n)
		p.held += int(n)
	}
	return nil
}

// ReadPipe is ReadAt with a pipe in place of a buffer: it appends up to size bytes to p. After an error
// other than io.EOF what it has appended is not whole.
func (f *Fid) ReadPipe(ctx context.Context, p *Pipe, size int, off int64) (int, error) {
	c := f.c
	need := min(pipeline, size/int(f.chunk)+1)
	defer c.piping.Add(-int32(need))
	if c.piping.Add(int32(need)) > maxPiping || c.socket == nil || c.noPipes.Load() {
		return 0, ErrNoPipe
	}
	pipes := c.takePipes(need)
	defer func() { c.givePipes(pipes) }()
	if len(pipes) < need {
		return 0, ErrNoPipe
	}
	j := &joint{into: p, early: map[int]*call{}}
	return f.transfer(ctx, size, func(w *call, done, size int) error {
		w.pipe, w.joint, w.at = pipes[len(pipes)-1], j, done
		err := f.beginRead(ctx, w, off+int64(done), size)
		if err == nil {
			pipes = pipes[:len(pipes)-1]
		}
		return err
	}, func(w *call, ended error) error {
		pipes = append(pipes, w.pipe)
		return ended
	})
}

// joint puts the pieces of one ReadPipe together. While the read is under way it is the receiver's.
type joint struct {
	into  *Pipe
	next  int           // where the next piece for into begins
	early map[int]*call // pieces in their own pipes that come behind next, by where they begin
}

// target is the pipe that a piece goes to: right behind those before it, if they are there.
func (j *joint) target(w *call) *Pipe {
	if w.at == j.next {
		return j.into
	}
	return w.pipe
}

// took notes a piece that has arrived and appends those that waited for it. A short piece is the last.
func (j *joint) took(w *call) error {
	if w.at != j.next {
		j.early[w.at] = w
		return nil
	}
	for w != nil && w.n == w.size {
		j.next += w.n
		if w = j.early[j.next]; w != nil {
			if err := j.into.Append(w.pipe); err != nil {
				return err
			}
		}
	}
	return nil
}

// takePipes returns n empty pipes, or fewer where no more can be had.
func (c *Client) takePipes(n int) []*Pipe {
	c.mu.Lock()
	kept := max(0, len(c.empty)-n)
	pipes := slices.Clone(c.empty[kept:])
	c.empty = c.empty[:kept]
	c.mu.Unlock()
	for len(pipes) < n {
		p, err := NewPipe(pieceRoom)
		if err != nil {
			break
		}
		pipes = append(pipes, p)
	}
	return pipes
}

// givePipes keeps empty pipes for the next pieces.
func (c *Client) givePipes(pipes []*Pipe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range pipes {
		if c.err == nil && p.held == 0 {
			c.empty = append(c.empty, p)
			continue
		}
		p.Close()
	}
}

// closePipes gives the pipes of a connection that has ended back; those in use follow with givePipes.
func (c *Client) closePipes() {
	for _, p := range c.empty {
		p.Close()
	}
	c.empty = nil
}

// receivePipe moves n bytes of a message from the socket into the call's pipe. What has no room there
// is thrown away, so that the stream can go on.
func (c *Client) receivePipe(w *call, r *bufio.Reader, n int) error {
	p := w.joint.target(w)
	ahead, _ := r.Peek(min(n, r.Buffered())) // the next message may be there, too
	n += p.held                              // what it holds in the end
	if len(ahead) > 0 {
		k, err := p.Write(ahead)
		r.Discard(k)
		if err != nil {
			return c.noRoom(w, r, n-p.held)
		}
	}
	for p.held < n {
		var full bool
		var err error
		perr := c.socket.Read(func(fd uintptr) bool {
			full, err = p.fill(int(fd), n-p.held)
			return full || err != unix.EAGAIN
		})
		switch {
		case errors.Is(perr, os.ErrDeadlineExceeded) && c.wantedBack():
			return c.leave(w, r, n-p.held)
		case errors.Is(perr, os.ErrDeadlineExceeded): // somebody wanted what is filled by now
		case perr != nil:
			return perr
		case full:
			return c.noRoom(w, r, n-p.held)
		case err != nil:
			return err
		}
	}
	if w.joint.took(w) != nil {
		return c.noRoom(w, r, 0)
	}
	return nil
}

// fill moves up to n bytes from a socket that does not block. The error is EAGAIN while the socket is
// empty; full says that it is not and the pipe takes no more.
func (p *Pipe) fill(socket, n int) (full bool, err error) {
	for again := false; ; again = true {
		k, err := unix.Splice(socket, nil, p.w, nil, n, unix.SPLICE_F_NONBLOCK)
		switch {
		case err == nil && k == 0:
			return false, io.ErrUnexpectedEOF
		case err == nil:
			p.held += int(k)
			return false, nil
		case err != unix.EAGAIN || again:
			return err == unix.EAGAIN, err
		}
		// Either end may be why. Where it was the socket, what has come just now goes in when tried again.
		var b [1]byte
		if _, _, err := unix.Recvfrom(socket, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); err != nil {
			return false, err
		}
	}
}

// noRoom ends a piece that does not fit into its pipe and throws the rest of it away.
func (c *Client) noRoom(w *call, r *bufio.Reader, rest int) error {
	c.noPipes.Store(true)
	w.err = ErrNoPipe
	return c.leave(w, r, rest)
}

// tags are the numbers of one connection's requests. A server must not answer a request after it has confirmed that it
// forgot it; nfs-ganesha does. The tag of such a request is not used again while others are left, so that a late answer
// is never taken for another request's.
type tags struct {
	free chan uint16

	mu    sync.Mutex      // guards everything that follows
	next  uint16          // the least that was never used
	late  map[uint16]bool // forgotten, and not answered
	order []uint16        // of those that were forgotten, the oldest first
}

func newTags() *tags {
	t := &tags{free: make(chan uint16, maxInFlight), next: maxInFlight, late: map[uint16]bool{}}
	for n := range uint16(maxInFlight) {
		t.free <- n
	}
	return t
}

// release frees a tag.
func (t *tags) release(tag uint16) {
	if tag != noTag {
		t.free <- tag
	}
}

// retire gives a tag up that the server has forgotten without an answer, and frees another one.
func (t *tags) retire(tag uint16) {
	t.mu.Lock()
	t.late[tag] = true
	t.order = append(t.order, tag)
	next := t.next
	if next != noTag {
		t.next++
	} else {
		next = t.order[0]
		t.order = t.order[1:]
		delete(t.late, next)
	}
	t.mu.Unlock()
	t.free <- next
}

// came reports whether an answer to a tag that is not in use is a late one.
func (t *tags) came(tag uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.late[tag]
	delete(t.late, tag)
	return late
}
