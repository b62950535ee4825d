package ingest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector"
	"fairway/collector/socket"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

const (
	helloWithin  = 10 * time.Second
	silentAfter  = 60 * time.Second // no message, no pong: the agent is gone
	pingEvery    = 20 * time.Second
	maxInFlight  = 64       // messages waiting to be durable, per connection
	inFlightSize = 32 << 20 // bytes of them; one message may always wait
	maxAhead     = time.Hour
)

// direct is the WebSocket of an agent. What Hold or a lack of room keeps waiting, waits in it.
type direct struct {
	*socket.Conn
	hub   *Hub
	freed chan struct{} // holds a token
	place bool          // of a large message, which is being read or taken
	by    *sender
}

// large waits for the place of a large message that has begun to come.
func (d *direct) large() error {
	select {
	case d.by.large <- struct{}{}:
	case <-d.hub.stopping:
		return ErrClosed
	}
	d.place = true
	return nil
}

// leave gives the place back.
func (d *direct) leave() {
	if d.place {
		d.place = false
		<-d.by.large
	}
}

func (d *direct) Hold(wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-d.hub.stopping:
		return ErrClosed
	}
}

func (d *direct) Freed() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// room waits until a message of a size may be taken.
func (d *direct) room(c *connection, size int) error {
	for !c.hasRoom(size) {
		select {
		case <-d.freed:
		case <-d.hub.stopping:
			return ErrClosed
		}
	}
	if c.sender.held.Acquire(d.hub.ctx, int64(mostHeld(size))) != nil {
		return ErrClosed
	}
	return nil
}

// connection is one agent. Its reader decodes and checks messages and hands them to the hub, which stores and
// acknowledges those of all connections together.
type connection struct {
	hub    *Hub
	link   *direct
	by     Speaker
	remote string
	hello  wire.Hello // set before the connection is in any table
	sender *sender    // of its token

	nodes map[topology.NodeID]struct{} // besides its own; reader's, then forget's
	ended chan struct{}
	busy  atomic.Bool  // a message is being taken
	late  atomic.Int64 // milliseconds from the end of the newest second that came until it came

	mu sync.Mutex // guards everything that follows
	unanswered
	answers map[string]chan wire.OrderResult
	orders  chan struct{} // a place per order that the agent has
}

// inFlight is a message that is on its way to the disk.
type inFlight struct {
	conn   *connection
	seq    uint64
	size   int
	frames []collector.Frame
	memory *wire.Decoder // of the frames
	held   int           // bytes, of the token's
	done   bool
	err    error
}

func newConnection(h *Hub, l *direct, by Speaker, remote string) *connection {
	return &connection{hub: h, link: l, by: by, remote: remote, sender: h.sender(&by), ended: make(chan struct{})}
}

// run serves an agent with a connection of its own until that ends.
func (c *connection) run(d *direct) {
	err := c.greet(d.Conn)
	for err == nil {
		c.busy.Store(false)
		var msg []byte
		if msg, err = d.Read(); err == nil {
			c.busy.Store(true)
			if err = d.room(c, len(msg)); err == nil {
				err = c.message(msg, mostHeld(len(msg)))
			}
		}
		d.Release()
		d.leave()
	}
	c.explain(err)
	close(c.ended)
	d.Finish()
}

// explain sends why the connection ends, where that is the agent's fault.
func (c *connection) explain(err error) {
	switch refusal := (wire.Reject{}); {
	case errors.Is(err, socket.ErrTooLarge):
		c.refused(wire.Reject{Code: wire.RejectLimit, Text: fmt.Sprintf("message of more than %d bytes",
			c.by.Limits.MessageBytes)})
	case errors.Is(err, socket.ErrSlow):
		c.refused(wire.Reject{Code: wire.RejectLimit, Text: err.Error()})
	case errors.Is(err, socket.ErrText):
		c.refused(wire.Reject{Code: wire.RejectMalformed, Text: err.Error()})
	case errors.As(err, &refusal) || c.hello.Node == "":
		c.refused(err)
	}
}

// greet reads the Hello that every connection begins with.
func (c *connection) greet(ws *socket.Conn) error {
	ws.SetSilent(helloWithin)
	ws.SetLimit(maxHello)
	msg, err := ws.Read()
	if err != nil {
		return fmt.Errorf("no hello: %w", err)
	}
	if err := c.welcome(msg); err != nil {
		return err
	}
	ws.SetLimit(c.by.Limits.MessageBytes)
	ws.SetSilent(silentAfter)
	return nil
}

// welcome takes the Hello.
func (c *connection) welcome(msg []byte) error {
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
		return err
	}
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

// refused sends the agent the reason and keeps it for the log.
func (c *connection) refused(err error) {
	c.hub.stats.rejected.Add(1)
	c.hub.cfg.Log.Warn("an agent's connection was refused", "node", c.hello.Node, "token", c.by.Name, "remote",
		c.remote, "err", err)
	if r := (wire.Reject{}); errors.As(err, &r) {
		if msg, err := wire.Append(nil, r); err == nil {
			c.link.Send(msg)
		}
	}
}

// message takes one message; a wire.Reject says why the agent is refused. It waits for nobody but the agent's own
// limits. held is what it has taken of what its token may hold.
func (c *connection) message(msg []byte, held int) error {
	d := c.hub.decoder()
	m, err := c.decode(d, msg)
	if err != nil {
		c.sender.held.Release(int64(held))
		return err
	}
	switch m := m.(type) {
	case *wire.Frames:
		now := min(d.Held(), held)
		c.sender.held.Release(int64(held - now))
		return c.take(m, d, len(msg), now)
	case wire.OrderResult:
		c.answered(m)
	default:
		err = wire.Reject{Code: wire.RejectVersion, Text: fmt.Sprintf("%T is not for the daemon", m)}
	}
	c.sender.held.Release(int64(held))
	c.hub.release(d)
	return err
}

func (c *connection) decode(d *wire.Decoder, msg []byte) (wire.Message, error) {
	before := d.Dropped
	d.Own = c.hello.Node
	m, err := d.Decode(msg)
	if err != nil {
		return nil, wire.Reject{Code: codeOf(err), Text: err.Error()}
	}
	c.hub.stats.droppedSamples.Add(d.Dropped - before)
	return m, nil
}

// take hands a message to the hub. The decoder's memory belongs to the message until the store has it.
func (c *connection) take(m *wire.Frames, d *wire.Decoder, size, held int) error {
	c.hub.stats.messages.Add(1)
	c.hub.stats.frames.Add(uint64(len(m.Frames)))
	c.hub.stats.bytes.Add(uint64(size))
	if err := c.check(m); err != nil {
		c.sender.held.Release(int64(held))
		if r := (wire.Reject{}); !errors.As(err, &r) || r.Seq == 0 {
			return err
		}
		c.refused(err)
		c.hub.release(d)
		return nil
	}
	f := &inFlight{conn: c, seq: m.Seq, size: size, frames: m.Frames, memory: d, held: held}
	c.mu.Lock()
	c.flight = append(c.flight, f)
	c.size += f.size
	c.mu.Unlock()
	c.late.Store(lateOf(m.Frames, time.Now()))
	c.hub.hand(f)
	return nil
}

// lateOf is how many milliseconds after its end the newest second of frames came.
func lateOf(frames []collector.Frame, now time.Time) int64 {
	newest := int64(0)
	for i := range frames {
		newest = max(newest, frames[i].TimeMillis)
	}
	return max(now.UnixMilli()-newest-collector.DefaultInterval.Milliseconds(), 0)
}

// hasRoom says whether a message of a size may be taken before more of what came is durable.
func (c *connection) hasRoom(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.flight) == 0 || len(c.flight) < maxInFlight && c.size+size <= inFlightSize
}

// stored notes what became of a message; acknowledge answers it.
func (c *connection) stored(f *inFlight, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.done, f.err = true, err
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
			if n := c.hub.clients.drop(c.sender, f, now); n > 0 {
				c.hub.stats.routes.dropped.Add(uint64(n))
				c.hub.intruded(&c.by, c.remote, "", f.Node)
			}
			kept = append(kept, *f)
		} else if first.Code == 0 {
			first.Code, first.Text = code, why
		}
	}
	m.Frames = kept
	if foreign > 0 {
		c.hub.stats.routes.foreign.Add(uint64(foreign))
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
	case !c.by.mayReport(f):
		return wire.RejectForbidden, fmt.Sprintf("node %s: token %q may not say which forwarder other nodes use",
			f.Node, c.by.Name)
	}
	if code, why = c.sender.admits(f.Node, &c.by, now); why != "" {
		return code, why
	}
	if code, why = c.sender.admitsLists(f); why != "" {
		return code, why
	}
	if owner := c.hub.ownerBeside(c, f.Node); owner != nil {
		c.hub.intruded(&c.by, c.remote, owner.remote, f.Node)
		return wire.RejectForbidden, fmt.Sprintf("node %s: its own agent is connected, from %s", f.Node, owner.remote)
	}
	if f.Node != c.hello.Node {
		if c.nodes == nil {
			c.nodes = map[topology.NodeID]struct{}{}
		}
		c.nodes[f.Node] = struct{}{}
	}
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
	return c.link.Hold(wait)
}
