package relay

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"fairway/collector/topology"
)

// The bounds of a connection: the largest message, how many of its requests wait here (more stay with
// the client), and how long a client may take to accept a reply before it is cut off, so that it does
// not hold places at the forwarder for ever.
const (
	maxFrame    = 4 << 20
	maxWaiting  = 128
	replyWithin = 30 * time.Second
	readAhead   = 4 << 10 // small: large messages go straight into their buffers
)

// conn is one client's connection and the one to the forwarder behind it.
type conn struct {
	relay      *Relay
	client, up net.Conn
	from       netip.Addr
	name       topology.NodeID // the address as text where it has none
	places     chan struct{}   // one for each request that waits
	wake       chan struct{}   // something is in out

	// Guarded by Relay.mu.
	lane    int
	waiting int
	out     [][]byte // chosen, to be written in this order
	flights map[uint16]flight
}

// flight is a request at the forwarder; old is the tag that a Tflush flushes.
type flight struct{ old uint16 }

func newConn(r *Relay, client, up net.Conn) *conn {
	from := clientAddr(client)
	return &conn{
		relay: r, client: client, up: up, from: from, name: topology.NodeID(from.String()),
		places: make(chan struct{}, maxWaiting), wake: make(chan struct{}, 1), flights: map[uint16]flight{},
	}
}

// frames lends buffers for messages of the usual size.
var frames = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

func lend(n int) []byte {
	b := *frames.Get().(*[]byte)
	if n > cap(b) {
		return make([]byte, n)
	}
	return b[:n]
}

func giveBack(b []byte) {
	if cap(b) == 64<<10 {
		frames.Put(&b)
	}
}

// readFrame reads one whole message.
func readFrame(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(headerBytes)
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head)
	if n < headerBytes || n > maxFrame {
		return nil, fmt.Errorf("a message of %d bytes is none of 9P (%d to %d)", n, headerBytes, maxFrame)
	}
	b := lend(int(n))
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return b, nil
}

// fromClient queues the client's requests.
func (c *conn) fromClient(ctx context.Context) error {
	in := bufio.NewReaderSize(c.client, readAhead)
	for {
		frame, err := readFrame(in)
		if err != nil {
			return err
		}
		select {
		case c.places <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.relay.enqueue(c, frame)
	}
}

// toForwarder writes what was chosen.
func (c *conn) toForwarder(ctx context.Context) error {
	var list net.Buffers
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.relay.mu.Lock()
		chosen := c.out
		c.out = nil
		c.relay.mu.Unlock()
		list = append(list[:0], chosen...)
		writing := list // WriteTo eats the slice it has
		if _, err := writing.WriteTo(c.up); err != nil {
			return err
		}
		for _, b := range chosen {
			giveBack(b)
			<-c.places
		}
	}
}

// fromForwarder passes replies on.
func (c *conn) fromForwarder(context.Context) error {
	in := bufio.NewReaderSize(c.up, readAhead)
	for {
		frame, err := readFrame(in)
		if err != nil {
			return fmt.Errorf("the forwarder ended it: %w", err)
		}
		c.relay.answered(c, frame)
		if err := c.client.SetWriteDeadline(time.Now().Add(replyWithin)); err != nil {
			return err
		}
		if _, err := c.client.Write(frame); err != nil {
			return err
		}
		giveBack(frame)
	}
}
