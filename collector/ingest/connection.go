package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

const (
	helloWithin  = 10 * time.Second
	silentAfter  = 60 * time.Second // no message, no pong: the agent is gone
	pingEvery    = 20 * time.Second
	writeWithin  = 10 * time.Second
	maxInFlight  = 64       // messages waiting to be durable, per connection
	inFlightSize = 32 << 20 // bytes of them; one message may always wait
	maxAhead     = time.Hour
)

// connection is one agent. Its reader decodes and hands messages to the store, its writer sends
// acknowledgements and orders, and each waits for nobody but the agent.
type connection struct {
	hub    *Hub
	ws     *websocket.Conn
	by     Speaker
	remote string
	hello  wire.Hello // set before the connection is in any table

	sender *sender                      // of its token
	nodes  map[topology.NodeID]struct{} // reader's, then forget's

	out    chan []byte
	ended  chan struct{}
	lives  atomic.Uint64  // messages and pongs
	busy   atomic.Bool    // a message is being taken
	stored chan *inFlight // in the order of arrival
	room   chan struct{}  // a place per message in flight
	orders chan struct{}  // a place per order that the agent has

	mu      sync.Mutex // guards everything that follows
	size    int        // bytes in flight
	free    []*wire.Decoder
	answers map[string]chan wire.OrderResult
}

// inFlight is a message that is on its way to the disk.
type inFlight struct {
	seq  uint64
	done chan error
}

func newConnection(h *Hub, ws *websocket.Conn, by Speaker, remote string) *connection {
	return &connection{
		hub: h, ws: ws, by: by, remote: remote, sender: h.sender(&by), nodes: map[topology.NodeID]struct{}{},
		out: make(chan []byte, 256), ended: make(chan struct{}),
		stored: make(chan *inFlight, maxInFlight), room: make(chan struct{}, maxInFlight),
		orders:  make(chan struct{}, wire.MaxOrders),
		answers: map[string]chan wire.OrderResult{},
	}
}

// run serves the agent until its connection ends and every goroutine of it has ended.
func (c *connection) run() {
	defer c.ws.Close()
	c.ws.SetReadLimit(c.by.Limits.MessageBytes)
	if err := c.greet(); err != nil {
		c.refused(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	written := make(chan struct{})
	go func() { defer close(written); c.write() }()
	wait.Go(c.acknowledge)
	err := c.read(ctx, &wait)
	if refusal := (wire.Reject{}); errors.As(err, &refusal) {
		c.refused(err)
	}
	cancel()
	close(c.stored)
	close(c.ended)
	<-written // the last word is the reason
	c.ws.Close()
	wait.Wait()
}

// greet reads the Hello that every connection begins with.
func (c *connection) greet() error {
	c.ws.SetReadDeadline(time.Now().Add(helloWithin))
	kind, msg, err := c.ws.ReadMessage()
	if err != nil {
		return fmt.Errorf("no hello: %w", err)
	}
	if kind != websocket.BinaryMessage {
		return wire.Reject{Code: wire.RejectMalformed, Text: "text message, want a binary hello"}
	}
	m, err := new(wire.Decoder).Decode(msg)
	if err != nil {
		return wire.Reject{Code: codeOf(err), Text: err.Error()}
	}
	hello, ok := m.(wire.Hello)
	if !ok {
		return wire.Reject{Code: wire.RejectMalformed, Text: fmt.Sprintf("first message is %T, want a hello", m)}
	}
	if !topology.CleanName(string(hello.Node)) || !topology.CleanName(hello.Instance) {
		return wire.Reject{Code: wire.RejectMalformed, Text: fmt.Sprintf("hello of %q: its name has control characters",
			hello.Node)}
	}
	if code, why := c.sender.admits(hello.Node, &c.by, time.Now()); why != "" {
		return wire.Reject{Code: code, Text: why}
	}
	c.hello = hello
	if err := c.hub.claim(c); err != nil {
		c.hello.Node = "" // the writer has not started: the refusal is written at once
		return err
	}
	c.nodes[hello.Node] = struct{}{}
	c.hub.cfg.Log.Info("agent connected", "node", hello.Node, "role", hello.Role, "token", c.by.Name, "remote",
		c.remote, "first_seq", hello.FirstSeq)
	return nil
}

func codeOf(err error) wire.RejectCode {
	if errors.Is(err, wire.ErrLimit) {
		return wire.RejectLimit
	}
	return wire.RejectMalformed
}

// refused sends the agent the reason and keeps it for the log. The writer may still be at work, so the
// close message carries the reason's short form and the Reject goes first where it can.
func (c *connection) refused(err error) {
	c.hub.stats.rejected.Add(1)
	c.hub.cfg.Log.Warn("an agent's connection was refused", "node", c.hello.Node, "token", c.by.Name, "remote",
		c.remote, "err", err)
	if r := (wire.Reject{}); errors.As(err, &r) {
		c.refuse(r.Code, r.Seq, r.Text)
	}
}

// refuse queues a Reject; before the writer runs it is written at once.
func (c *connection) refuse(code wire.RejectCode, seq uint64, text string) {
	msg, err := wire.Append(nil, wire.Reject{Code: code, Seq: seq, Text: text})
	if err != nil {
		return
	}
	if c.hello.Node != "" {
		c.send(msg)
		return
	}
	c.ws.SetWriteDeadline(time.Now().Add(writeWithin))
	_ = c.ws.WriteMessage(websocket.BinaryMessage, msg) // the connection ends either way
}

// send queues a message for the writer; false when the agent does not take what is queued.
func (c *connection) send(msg []byte) bool {
	select {
	case c.out <- msg:
		return true
	default:
		return false
	}
}

// read takes messages until the connection ends; a wire.Reject says why the agent is refused.
func (c *connection) read(ctx context.Context, wait *sync.WaitGroup) error {
	c.ws.SetPongHandler(func(string) error {
		c.lives.Add(1)
		return c.ws.SetReadDeadline(time.Now().Add(silentAfter))
	})
	for {
		c.busy.Store(false)
		c.ws.SetReadDeadline(time.Now().Add(silentAfter))
		_, msg, err := c.ws.ReadMessage()
		if errors.Is(err, websocket.ErrReadLimit) {
			return wire.Reject{Code: wire.RejectLimit, Text: fmt.Sprintf("message of more than %d bytes",
				c.by.Limits.MessageBytes)}
		}
		if err != nil {
			return err
		}
		c.lives.Add(1)
		c.busy.Store(true)
		d := c.decoder()
		before := d.Dropped
		m, err := d.Decode(msg)
		if err != nil {
			return wire.Reject{Code: codeOf(err), Text: err.Error()}
		}
		c.hub.stats.droppedSamples.Add(d.Dropped - before)
		switch m := m.(type) {
		case *wire.Frames:
			err = c.take(ctx, wait, m, d, len(msg))
		case wire.OrderResult:
			c.answered(m)
			c.release(d, 0)
		default:
			err = wire.Reject{Code: wire.RejectVersion, Text: fmt.Sprintf("%T is not for the daemon", m)}
		}
		if err != nil {
			return err
		}
	}
}

// take hands a message to the picture and the store. The decoder's memory belongs to the message
// until the store has answered, so each message in flight has its own decoder.
func (c *connection) take(ctx context.Context, wait *sync.WaitGroup, m *wire.Frames, d *wire.Decoder, size int) error {
	c.hub.stats.messages.Add(1)
	c.hub.stats.frames.Add(uint64(len(m.Frames)))
	c.hub.stats.bytes.Add(uint64(size))
	if err := c.check(m); err != nil {
		if r := (wire.Reject{}); !errors.As(err, &r) || r.Seq == 0 {
			return err
		}
		c.refused(err)
		c.release(d, 0)
		return nil
	}
	if c.hub.cfg.Observe != nil {
		c.hub.cfg.Observe(m.Frames, time.Now())
	}
	if err := c.makeRoom(ctx, size); err != nil {
		return err
	}
	f := &inFlight{seq: m.Seq, done: make(chan error, 1)}
	wait.Go(func() {
		err := c.hub.append(ctx, c.sender, m.Frames)
		c.release(d, size)
		f.done <- err
	})
	c.stored <- f
	return nil
}

// makeRoom waits until the store has answered enough of what came before.
func (c *connection) makeRoom(ctx context.Context, size int) error {
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		c.mu.Lock()
		if c.size == 0 || c.size+size <= inFlightSize {
			c.size += size
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// check takes out of a message the frames that this token may not bring or that no store could
// keep. A Reject with a sequence refuses a message of which nothing is left.
func (c *connection) check(m *wire.Frames) error {
	if err := c.pause(len(m.Frames)); err != nil {
		return err
	}
	now := time.Now()
	had := len(m.Frames)
	first := wire.Reject{Seq: m.Seq}
	newest, foreign := newestOf(m.Frames, now), 0
	kept := m.Frames[:0]
	for i := range m.Frames {
		f := &m.Frames[i]
		c.hub.bind(f)
		code, why := c.refuses(f, newest, now)
		if why == "" {
			foreign += ownRoutes(f)
			kept = append(kept, *f)
		} else if first.Code == 0 {
			first.Code, first.Text = code, why
		}
	}
	m.Frames = kept
	if foreign > 0 {
		c.hub.stats.foreignRoutes.Add(uint64(foreign))
	}
	left := had - len(m.Frames)
	if left == 0 {
		return nil
	}
	c.hub.stats.refusedFrames.Add(uint64(left))
	if len(m.Frames) == 0 {
		return first
	}
	c.hub.cfg.Log.Warn("frames were left out, the rest of the message is kept", "token", c.by.Name, "from",
		c.hello.Node, "left_out", left, "of", had, "first", first.Text)
	return nil
}

// refuses says why a frame cannot be taken; why is empty when it can.
func (c *connection) refuses(f *collector.Frame, newest int64, now time.Time) (code wire.RejectCode, why string) {
	if why := c.hub.wrongTime(f, newest, now); why != "" {
		return wire.RejectMalformed, why
	}
	name := unclean(f)
	switch {
	case f.Node == "":
		return wire.RejectMalformed, "a frame without a node's name"
	case name != "":
		return wire.RejectMalformed, fmt.Sprintf("node %q: the name %q has control characters", f.Node, name)
	case len(f.Samples) > c.by.Limits.SamplesPerFrame:
		return wire.RejectLimit, fmt.Sprintf("node %s: %d samples in one second, at most %d", f.Node, len(f.Samples),
			c.by.Limits.SamplesPerFrame)
	case !c.by.mayTell(f):
		return wire.RejectForbidden, fmt.Sprintf("node %s: token %q may not say which forwarder other nodes use",
			f.Node, c.by.Name)
	}
	if code, why = c.sender.admits(f.Node, &c.by, now); why != "" {
		return code, why
	}
	if code, why = c.sender.admitsClients(f, now); why != "" {
		return code, why
	}
	if owner := c.hub.ownerBeside(c, f.Node); owner != nil {
		c.hub.intruded(&c.by, c.remote, owner.remote, f.Node)
		return wire.RejectForbidden, fmt.Sprintf("node %s: its own agent is connected, from %s", f.Node, owner.remote)
	}
	c.nodes[f.Node] = struct{}{}
	return 0, ""
}

// pause leaves the agent unread until its token may bring n frames more, so that a spool of many agents
// is replayed as fast as it may be. A wait that is too long is a Reject.
func (c *connection) pause(n int) error {
	wait, ok := c.sender.reserve(n, time.Now(), maxPause)
	if !ok {
		return c.sender.busy(wait).Reject
	}
	if wait == 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-c.hub.stopping:
		return ErrClosed
	}
}

func (c *connection) decoder() *wire.Decoder {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		d := c.free[n-1]
		c.free = c.free[:n-1]
		return d
	}
	return new(wire.Decoder)
}

func (c *connection) release(d *wire.Decoder, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size -= size
	if len(c.free) < 4 {
		c.free = append(c.free, d)
	}
}

// acknowledge answers messages in order once they are durable. After the store failed once nothing
// more is acknowledged: the agent reconnects and sends again.
func (c *connection) acknowledge() {
	failed := false
	for f := range c.stored {
		err := <-f.done
		<-c.room
		if failed {
			continue
		}
		if err != nil {
			failed = true
			if !errors.Is(err, context.Canceled) {
				c.hub.cfg.Log.Error("frames were not stored; the agent keeps them", "node", c.hello.Node, "seq", f.seq,
					"err", err)
			}
			c.ws.Close()
			continue
		}
		// Ack covers all before it; one that finds no room is made good by the next.
		if msg, err := wire.Append(nil, wire.Ack{Seq: f.seq}); err == nil {
			c.send(msg)
		}
	}
}

// write sends what is queued, and pings.
func (c *connection) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		var err error
		select {
		case msg := <-c.out:
			c.ws.SetWriteDeadline(time.Now().Add(writeWithin))
			err = c.ws.WriteMessage(websocket.BinaryMessage, msg)
		case <-ping.C:
			if c.by.Valid != nil && !c.by.Valid() {
				err = errNoLongerValid
				break
			}
			err = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin))
		case <-c.ended:
			c.flush()
			return
		}
		if err != nil {
			c.ws.Close() // ends the reader, which ends this connection
			<-c.ended
			return
		}
	}
}

// flush sends the last words, such as the reason for a refusal.
func (c *connection) flush() {
	for {
		select {
		case msg := <-c.out:
			c.ws.SetWriteDeadline(time.Now().Add(time.Second))
			if c.ws.WriteMessage(websocket.BinaryMessage, msg) != nil {
				return
			}
		default:
			return
		}
	}
}
