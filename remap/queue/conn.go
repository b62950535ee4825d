package queue

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/p9"
	"fairway/collector/topology"
)

// The bounds of a connection: the largest message, how many of its requests and bytes of them wait here (more stay
// with the client), how many of them are taken at once, and how long a client may take to accept a reply
// before it is cut off, so that it does not hold places at the forwarder for ever.
const (
	maxFrame    = 4 << 20
	maxWaiting  = 128
	maxBytes    = 16 << 20
	maxTogether = 32
	replyWithin = 30 * time.Second
	readAhead   = 4 << 10 // small: large messages go straight into their buffers
)

// maxEach is how many connections an address may have: a node's mounts need a few. Together they may have as many bytes
// here as four.
const (
	maxEach      = 256
	maxEachBytes = 4 * maxBytes
)

// conn is one client's connection and the one to the forwarder behind it.
type conn struct {
	queue      *Queue
	client, up net.Conn
	from       netip.Addr
	name       topology.NodeID // the address as text where it has none
	wake       chan struct{}   // something is in out
	room       chan struct{}   // held is below maxWaiting again

	replyBy time.Time    // the deadline that client has; guarded by sending
	writes  atomic.Int64 // since when something is being written to client, Unix ns; 0: nothing is
	// largest is how long a message of the client may be: what it and the forwarder have agreed on (Rversion). Before
	// that it has nothing large to say.
	largest atomic.Uint32

	// Guarded by Queue.mu.
	lane    int
	flights map[uint16]flight
	load
	gathered
}

// load is what a client has here; guarded by Queue.mu.
type load struct {
	peers   *int     // connections of its address
	waiting int      // in the queue
	held    int      // waiting, and chosen but not written yet
	bytes   int      // of those
	out     [][]byte // chosen, to be written in this order
}

// flight is a request at the forwarder; old is the tag that a Tflush flushes, joint what the request carries of others.
type flight struct {
	old     uint16
	flushes bool
	joint   *joint
}

func newConn(r *Queue, client, up net.Conn, from netip.Addr, peers *int) *conn {
	c := &conn{
		queue: r, client: client, up: up, from: from, name: topology.NodeID(from.String()),
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1), flights: map[uint16]flight{},
		load:     load{peers: peers},
		gathered: gathered{fids: fids{map[uint32]fid{}, map[uint16]*inquiry{}}, posted: make(chan struct{}, 1)},
	}
	c.largest.Store(usualFrame)
	return c
}

// agreed notes what a reply of the forwarder says of messages' length.
func (c *conn) agreed(reply []byte) {
	if reply[4] == p9.TVersion+1 && binary.LittleEndian.Uint32(reply) >= p9.HeaderBytes+4 {
		c.largest.Store(min(max(binary.LittleEndian.Uint32(reply[p9.HeaderBytes:]), p9.HeaderBytes), maxFrame))
	}
}

// notify wakes who waits for c, or who will.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// frames lends buffers for messages of the usual size.
var frames = sync.Pool{New: func() any { return new([usualFrame]byte) }}

const usualFrame = 64 << 10

func lend(n int) []byte {
	if n > usualFrame {
		return make([]byte, n)
	}
	return frames.Get().(*[usualFrame]byte)[:n]
}

func giveBack(b []byte) {
	if cap(b) == usualFrame {
		frames.Put((*[usualFrame]byte)(b[:usualFrame]))
	}
}

// next is the length of the message that r is at, once its head has been read.
func next(r *bufio.Reader, largest uint32) (int, error) {
	head, err := r.Peek(p9.HeaderBytes)
	if err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint32(head)
	if n < p9.HeaderBytes || n > largest {
		return 0, fmt.Errorf("a message of %d bytes is not 9P (want %d to %d)", n, p9.HeaderBytes, largest)
	}
	return int(n), nil
}

// readFrame reads one whole message.
func readFrame(r *bufio.Reader, largest uint32) ([]byte, error) {
	n, err := next(r, largest)
	if err != nil {
		return nil, err
	}
	b := lend(n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return b, nil
}

// atHand says that a whole message has been read ahead.
func atHand(r *bufio.Reader, largest uint32) bool {
	if r.Buffered() < p9.HeaderBytes {
		return false
	}
	n, err := next(r, largest)
	return err != nil || n <= r.Buffered() // reading it returns what is wrong with it
}

// fromClient queues the client's requests until it ends, and then waits for what it carries of others.
func (c *conn) fromClient(ctx context.Context) error {
	err := c.takeRequests(ctx)
	c.queue.merge.leave(ctx, c)
	return err
}

// takeRequests queues the client's requests, those that came together at once.
func (c *conn) takeRequests(ctx context.Context) error {
	in := bufio.NewReaderSize(c.client, readAhead)
	var together [][]byte
	for {
		together = together[:0]
		largest := c.largest.Load()
		for len(together) == 0 || len(together) < maxTogether && atHand(in, largest) {
			if len(together) == 0 { // it may have been waited for, and agreed on meanwhile
				if _, err := in.Peek(p9.HeaderBytes); err != nil {
					return err
				}
				largest = c.largest.Load()
			}
			frame, err := readFrame(in, largest)
			if err != nil {
				return err
			}
			together = append(together, frame)
		}
		full, err := c.queue.enqueue(c, together)
		if err != nil {
			return err
		}
		for ; full; full = c.queue.full(c) {
			select {
			case <-c.room:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// toForwarder writes what was chosen.
func (c *conn) toForwarder(ctx context.Context) error {
	var chosen, writing net.Buffers
	for {
		if chosen = c.queue.chosen(c, chosen); len(chosen) == 0 {
			select {
			case <-c.wake:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		writing = append(writing[:0], chosen...)
		rest := writing // WriteTo eats the slice it has
		if _, err := rest.WriteTo(c.up); err != nil {
			return err
		}
		for _, b := range chosen {
			giveBack(b)
		}
	}
}

// fromForwarder passes replies on, those that came together at once.
func (c *conn) fromForwarder(context.Context) error {
	in := bufio.NewReaderSize(c.up, readAhead)
	for {
		if _, err := next(in, maxFrame); err != nil {
			return fmt.Errorf("the forwarder ended it: %w", err)
		}
		var replies, frame []byte
		if atHand(in, maxFrame) {
			replies = wholeMessages(in)
		} else {
			var err error
			if frame, err = readFrame(in, maxFrame); err != nil {
				return fmt.Errorf("the forwarder ended it: %w", err)
			}
			replies = frame
		}
		if err := c.deliver(c.queue.answered(c, replies)); err != nil {
			return err
		}
		if frame != nil {
			giveBack(frame)
		} else if _, err := in.Discard(len(replies)); err != nil {
			return err
		}
	}
}

// wholeMessages are those that r has read ahead, in one piece that is r's.
func wholeMessages(r *bufio.Reader) []byte {
	b, _ := r.Peek(r.Buffered()) // cannot fail: it is there
	end := 0
	for len(b)-end >= p9.HeaderBytes {
		n := binary.LittleEndian.Uint32(b[end:])
		if n < p9.HeaderBytes || uint64(n) > uint64(len(b)-end) {
			break
		}
		end += int(n)
	}
	return b[:end]
}

// reply writes to the client, within replyWithin or a second less; sending is held.
func (c *conn) reply(b []byte) error {
	now := time.Now()
	c.writes.Store(now.UnixNano())
	defer c.writes.Store(0)
	if c.replyBy.Sub(now) < replyWithin-time.Second {
		c.replyBy = now.Add(replyWithin)
		if err := c.client.SetWriteDeadline(c.replyBy); err != nil {
			return err
		}
	}
	_, err := c.client.Write(b)
	return err
}

// post sends a client an answer that did not come through its connection. Queue.mu is held.
func (c *conn) post(reply []byte, tag uint16) {
	at := len(c.posts)
	c.posts = append(c.posts, reply...)
	binary.LittleEndian.PutUint16(c.posts[at+5:], tag)
	if at == 0 {
		notify(c.posted)
	}
}

// toClient writes the answers that did not come through the connection.
func (c *conn) toClient(ctx context.Context) error {
	for {
		select {
		case <-c.posted:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := c.deliver(nil); err != nil {
			return err
		}
	}
}

// deliver writes answers to the client, first those that were posted before: the answer to a flush comes behind that of
// what it flushed. Where the client takes none although writes of others go through its connection, it is cut off, and
// its forwarder's end stays.
func (c *conn) deliver(replies []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	for _, b := range [][]byte{c.takePosts(), replies} {
		if len(b) == 0 {
			continue
		}
		if err := c.reply(b); err != nil {
			c.queue.mu.Lock()
			defer c.queue.mu.Unlock()
			if c.carries == 0 {
				return err
			}
			c.client.Close()
			return nil
		}
	}
	return nil
}

// takePosts takes what is posted, in the room of what was before. Its sending is held.
func (c *conn) takePosts() []byte {
	if !c.queue.merge.on() {
		return nil
	}
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	posts := c.posts
	if cap(c.spare) > maxFrame {
		c.spare = nil
	}
	c.posts, c.spare = c.spare[:0], posts
	c.makeRoom()
	return posts
}
