// Package p9 is a client of the 9P2000.L file protocol over one connection, with many requests in
// flight: it reads diod's control tree, sends canary I/O through forwarders, and is the way out of
// the remappable mount. It also speaks to other servers of the dialect, such as nfs-ganesha.
//
// Two kinds of errors are kept apart: Error is the server's answer, the connection is fine;
// TransportError means that the connection is gone and says nothing about the request's outcome.
package p9

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Error is a server's refusal of one request.
type Error struct {
	Op    string
	Errno syscall.Errno
}

// Error says the request and the errno's text.
func (e *Error) Error() string { return e.Op + ": " + e.Errno.Error() }

// Unwrap gives the errno, so that errors.Is(err, syscall.ENOENT) works. A lost connection never
// unwraps to an errno.
func (e *Error) Unwrap() error { return e.Errno }

// TransportError says that the connection to the server failed or was closed.
type TransportError struct {
	Addr string
	// cause is not unwrapped: it may hold an errno, which would look like a server's answer.
	cause error
}

// Error says the address and the cause, without the names that Go gives to the calls that failed.
func (e *TransportError) Error() string {
	cause := e.cause.Error()
	switch call, name := (*os.SyscallError)(nil), (*net.DNSError)(nil); {
	case errors.As(e.cause, &call):
		cause = call.Err.Error()
	case errors.As(e.cause, &name):
		cause = name.Err
	case errors.Is(e.cause, io.EOF), errors.Is(e.cause, io.ErrUnexpectedEOF):
		cause = "the server ended it"
	case errors.Is(e.cause, net.ErrClosed):
		cause = "it was closed here"
	case errors.Is(e.cause, context.DeadlineExceeded):
		cause = "no answer in time"
	}
	return fmt.Sprintf("9P connection to %s: %s", e.Addr, cause)
}

// maxMessage bounds what a server may send at once, whatever it negotiates.
const maxMessage = 4 << 20

// readAhead is how much is read with a header: small, so that the data of large reads goes straight
// into the caller's buffer.
const readAhead = 4 << 10

// maxInFlight bounds the requests of one connection; a further one waits.
const maxInFlight = 512

// Client is one 9P connection. All methods may be called concurrently.
type Client struct {
	addr  string
	conn  net.Conn
	msize uint32 // negotiated: the largest message either side sends
	tags  *tags

	writing chan struct{} // holds a token while a message is being written: whole messages, one by one

	mu      sync.Mutex // guards everything below
	calls   map[uint16]*call
	fids    fids
	err     error // why the connection ended; nil while it lives
	noAt    bool  // the server has no Trenameat and Tunlinkat
	filling *call // whose buffer or pipe the reader is at; nil for none

	pipes

	behind sync.WaitGroup // what goes on behind callers' backs; added to under mu while err is nil

	done chan struct{} // closed when the reader has ended
}

// pipes are what pieces of reads go through in the kernel.
type pipes struct {
	socket  syscall.RawConn // nil when the connection is not a socket of the kernel
	empty   []*Pipe         // guarded by Client.mu
	piping  atomic.Int32    // how many pieces may be on their way into pipes
	noPipes atomic.Bool     // what the network delivers does not fit into pipes
}

// fids are the numbers of the handles of a connection; guarded by Client.mu.
type fids struct {
	free []uint32 // below next
	next uint32
}

// call is one request waiting for its reply.
type call struct {
	tag  uint16
	op   string
	want uint8
	into []byte // where the data of an Rread goes, or
	pipe *Pipe  // where it goes, unless joint knows better
	size int    // of the data asked for or sent
	// joint puts the pieces of a read into pipes together, of which this one begins at at; may be nil.
	joint *joint
	at    int
	// The reader sets these before it closes ready.
	reply []byte
	n     int
	err   error
	ready chan struct{}
	// after runs when the reply of a call that is not waited for has come; may be nil.
	after func()
	// undo gives back what a call has made at the server although its caller gave up; may be nil.
	undo func()
	givingUp
}

// givingUp is how far caller, reader and server are with a call whose caller may give up; guarded by Client.mu.
type givingUp struct {
	gone     bool // the caller gave up; the reader may not touch into then
	flushing bool // the server is being asked to forget the call: its tag is not free then
	claimed  bool // the reader has taken what the caller gave for the data
	// left is made by a caller that wants to have it back, and closed when it has.
	left chan struct{}
}

// Dial connects to HOST:PORT (or a unix socket as unix:/path) and negotiates a message size of at
// most msize bytes; 0 asks for 1 MiB.
func Dial(ctx context.Context, addr string, msize uint32) (*Client, error) {
	network, where := "tcp", addr
	if len(addr) > 5 && addr[:5] == "unix:" {
		network, where = "unix", addr[5:]
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, where)
	if err != nil {
		return nil, &TransportError{addr, err}
	}
	c, err := NewClient(ctx, conn, addr, msize)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// NewClient speaks over an existing connection, which it owns from then on unless it fails. addr is
// for messages.
func NewClient(ctx context.Context, conn net.Conn, addr string, msize uint32) (*Client, error) {
	if msize == 0 {
		msize = 1 << 20
	}
	c := &Client{addr: addr, conn: conn, msize: min(msize, maxMessage), tags: newTags(),
		writing: make(chan struct{}, 1), calls: map[uint16]*call{}, done: make(chan struct{})}
	if s, ok := conn.(syscall.Conn); ok {
		c.socket, _ = s.SyscallConn()
	}
	go c.readAll()
	d, err := c.do(ctx, &call{op: "version", want: TVersion + 1, tag: noTag}, newRequest(c.msize, version), nil)
	if err != nil {
		c.Close()
		return nil, err
	}
	got, name := d.U32(), d.Text()
	if d.Err != nil || name != version || got < 4096 || got > c.msize {
		c.Close()
		return nil, fmt.Errorf("%s: the server speaks %q with messages of %d bytes, not %s with 4096 to %d", addr, name,
			got, version, c.msize)
	}
	c.msize = got
	return c, nil
}

// IOUnit is what one read or write can carry, bytes.
func (c *Client) IOUnit() uint32 { return c.msize - IOHeader }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err says why the connection ended; nil while it lives.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection; requests in flight fail with a TransportError.
func (c *Client) Close() error {
	c.fail(net.ErrClosed)
	<-c.done
	c.behind.Wait()
	return nil
}

// background runs f behind its caller's back, for what a hung server must not make the caller wait
// for. The end of the connection ends it; on one that has ended already there is nothing to do.
func (c *Client) background(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.behind.Go(f)
	}
}

// fail ends the connection for a reason; the first one counts.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = &TransportError{c.addr, cause}
	}
	c.mu.Unlock()
	c.conn.Close()
}

// do sends one message (its header still empty, payload behind it) and waits for the reply.
func (c *Client) do(ctx context.Context, w *call, msg, payload []byte) (*Decoder, error) {
	if err := c.begin(ctx, w, msg, payload); err != nil {
		return nil, err
	}
	return c.wait(ctx, w)
}

// begin sends a message without waiting for its reply.
func (c *Client) begin(ctx context.Context, w *call, msg, payload []byte) error {
	if err := c.start(ctx, w); err != nil {
		return err
	}
	return c.send(ctx, w, msg, payload)
}

// wait returns the reply of a call that has begun.
func (c *Client) wait(ctx context.Context, w *call) (*Decoder, error) {
	select {
	case <-w.ready:
	case <-ctx.Done():
		if c.abandon(w) {
			return nil, fmt.Errorf("%s at %s: %w", w.op, c.addr, context.Cause(ctx))
		}
		<-w.ready
	}
	if w.err != nil {
		return nil, w.err
	}
	return &Decoder{Rest: w.reply}, nil
}

// start registers a call under a free tag.
func (c *Client) start(ctx context.Context, w *call) error {
	w.ready = make(chan struct{})
	if w.tag != noTag {
		select {
		case w.tag = <-c.tags.free:
		case <-ctx.Done():
			return fmt.Errorf("%s at %s: %w", w.op, c.addr, context.Cause(ctx))
		case <-c.done:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.calls[w.tag] = w
	return nil
}

// writePatience is how long one attempt to write waits for room before the caller's context is looked
// at again.
const writePatience = 100 * time.Millisecond

// send writes one message. A failure ends the connection, so the reader fails the call. When the
// context ends in the middle, because a hung server takes no more, the rest is copied and still sent
// behind the caller's back: half a message would spoil the connection for everybody.
func (c *Client) send(ctx context.Context, w *call, msg, payload []byte) error {
	size := len(msg) + len(payload)
	if size > int(c.msize) {
		c.finish(w.tag)
		return fmt.Errorf("%s at %s: the request has %d bytes, the server takes %d: %w", w.op, c.addr, size, c.msize,
			&Error{w.op, syscall.ENAMETOOLONG})
	}
	binary.LittleEndian.PutUint32(msg, uint32(size))
	msg[4] = w.want - 1
	binary.LittleEndian.PutUint16(msg[5:], w.tag)
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		c.mu.Lock()
		mine := c.calls[w.tag] == w // a server that answers what it was not asked has freed the tag
		if mine {
			delete(c.calls, w.tag)
		}
		c.mu.Unlock()
		if mine {
			c.tags.release(w.tag)
		}
		return fmt.Errorf("%s at %s: %w", w.op, c.addr, context.Cause(ctx))
	case <-c.done:
		<-w.ready
		return w.err
	}
	left := net.Buffers{msg}
	if len(payload) > 0 {
		left = net.Buffers{msg, payload}
	}
	for {
		c.conn.SetWriteDeadline(time.Now().Add(writePatience))
		_, err := left.WriteTo(c.conn) // takes what was written off left
		switch {
		case err == nil:
			<-c.writing
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			c.fail(err)
			<-c.writing
			<-w.ready
			return w.err
		case ctx.Err() != nil:
			rest := slices.Concat(left...)
			c.background(func() { c.sendRest(rest) })
			return nil // wait sees the context and gives the call up
		}
	}
}

// sendRest finishes a message whose caller has left; it holds the writing token.
func (c *Client) sendRest(rest []byte) {
	defer func() { <-c.writing }()
	c.conn.SetWriteDeadline(time.Time{})
	if _, err := c.conn.Write(rest); err != nil {
		c.fail(err)
	}
}

// finish frees a tag.
func (c *Client) finish(tag uint16) {
	c.mu.Lock()
	delete(c.calls, tag)
	c.mu.Unlock()
	c.tags.release(tag)
}

// readAll delivers replies until the connection ends, then fails what is left.
func (c *Client) readAll() {
	defer close(c.done)
	in := &inbox{client: c}
	r := bufio.NewReaderSize(in, readAhead)
	for {
		// What is read with a header does not come into a pipe without a copy.
		if in.limit = readAhead; c.piping.Load() > 0 {
			in.limit = HeaderBytes + countBytes
		}
		if err := c.readOne(in, r); err != nil {
			c.fail(err)
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for tag, w := range c.calls {
		delete(c.calls, tag)
		w.err = c.err
		close(w.ready)
	}
	c.closePipes()
}

// inbox reads from a connection as much at once as its limit allows.
type inbox struct {
	client *Client
	limit  int // bytes; 0 for none
}

func (in *inbox) Read(b []byte) (int, error) {
	if in.limit > 0 {
		b = b[:min(len(b), in.limit)]
	}
	for {
		n, err := in.client.conn.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if in.client.wantedBack() {
			return n, errLeft
		}
	}
}

// readOne reads one message and completes its call.
func (c *Client) readOne(in *inbox, r *bufio.Reader) error {
	var h [HeaderBytes]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return err
	}
	in.limit = 0
	size, kind, tag := binary.LittleEndian.Uint32(h[:]), h[4], binary.LittleEndian.Uint16(h[5:])
	if size < HeaderBytes || size > maxMessage {
		return fmt.Errorf("the server sent a message of %d bytes (limit %d)", size, maxMessage)
	}
	body := int(size) - HeaderBytes
	c.mu.Lock()
	w := c.calls[tag]
	if w == nil {
		c.mu.Unlock()
		if c.tags.came(tag) {
			_, err := r.Discard(body)
			return err
		}
		return fmt.Errorf("the server answered tag %d, which was not asked", tag)
	}
	direct := !w.gone && (w.into != nil || w.pipe != nil) && kind == TRead+1
	c.mu.Unlock()
	err := c.receive(w, r, kind, body, direct)
	if err != nil {
		w.err = &TransportError{c.addr, err}
	}
	c.answered(w)
	if err == nil && w.after != nil {
		w.after()
	}
	close(w.ready)
	return err
}

// receive reads a message's body into the call. An error means that the stream cannot go on; what
// the server refused is left in w.err.
func (c *Client) receive(w *call, r *bufio.Reader, kind uint8, body int, direct bool) error {
	if direct {
		return c.receiveData(w, r, body)
	}
	w.reply = make([]byte, body)
	if _, err := io.ReadFull(r, w.reply); err != nil {
		return err
	}
	_, err := answer(w.op, kind, w.want-1, w.reply)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		w.err = refused
		return nil
	}
	return err
}

// receiveData reads an Rread's data straight into the caller's buffer or pipe.
func (c *Client) receiveData(w *call, r *bufio.Reader, body int) error {
	var n [countBytes]byte
	if body < len(n) {
		return fmt.Errorf("%s: %w", w.op, errShort)
	}
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return err
	}
	w.n = int(binary.LittleEndian.Uint32(n[:]))
	if w.n > w.size || w.n != body-len(n) {
		return fmt.Errorf("%s: the server sent %d bytes in a body of %d where %d were asked for", w.op, w.n, body,
			w.size)
	}
	return c.fill(w, r)
}
