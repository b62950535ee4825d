// Package socket is the server's end of very many WebSockets: of each it keeps one goroutine, which reads, and little
// memory. Buffers are taken from a pool while a message is read or written, a goroutine writes while something waits to
// be written, and one clock looks after all of them instead of timers for each.
package socket

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// tick is the clock's: deadlines are that coarse.
	tick = time.Second
	// writeWithin is how long a write may take before its connection is given up.
	writeWithin = 10 * time.Second
	// readBuffer takes the header and the body of a usual message in one read; larger bodies pass it by.
	readBuffer  = 512
	writeBuffer = 1 << 10
	// keepBuffer is the largest buffer that goes back to the pool; what is longer is a large message.
	keepBuffer = 64 << 10
	// largeBegins and largeRate are how a large message has to come, since others wait for its place: what is there at
	// any time allows the time that it takes at that rate (bytes a second), and the former.
	largeBegins = 5 * time.Second
	largeRate   = 256 << 10
	// maxQueue is how many messages may wait to be written.
	maxQueue = 256
)

// ErrTooLarge says that a message has more bytes than SetLimit allows.
var ErrTooLarge = websocket.ErrReadLimit

// ErrText says that a peer has sent a text message.
var ErrText = errors.New("text message, want a binary one")

// ErrSlow says that a large message came too slowly.
var ErrSlow = fmt.Errorf("a message of more than %d bytes came more slowly than %d bytes a second", keepBuffer/2,
	largeRate)

// Settings are those of a set's connections.
type Settings struct {
	// SilentAfter is after how long without a message or pong a peer is gone, PingEvery after how long it is asked.
	SilentAfter, PingEvery time.Duration
}

// Set is connections with one clock.
type Set struct {
	settings Settings
	upgrader websocket.Upgrader
	now      atomic.Int64 // the clock's, seconds
	stop     chan struct{}

	mu      sync.Mutex // guards everything that follows
	all     map[*Conn]struct{}
	ticking bool
	closed  bool
	running sync.WaitGroup
}

// NewSet returns a set without connections, which needs no end while it has none.
func NewSet(s Settings) *Set {
	return &Set{settings: s, stop: make(chan struct{}), all: map[*Conn]struct{}{}, upgrader: websocket.Upgrader{
		HandshakeTimeout: writeWithin, ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer,
		WriteBufferPool: &sync.Pool{},
		// A peer proves itself by a token, which no browser sends by itself; a page never speaks here.
		CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "" },
	}}
}

// buffers hold messages while they are read.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// Conn is one connection. Read and Release are for one goroutine, everything else for any.
type Conn struct {
	set *Set
	ws  *websocket.Conn
	// Large is asked when a message turns out to have more bytes than a usual one, before these are read; nil: it may.
	Large func() error
	lives atomic.Uint32 // messages and pongs

	seen   atomic.Int64 // seconds of the set's clock
	silent atomic.Int64 // seconds without a word after which it is closed
	buffer *[]byte      // of the message being read
	pinged int64        // the clock's

	mu      sync.Mutex // guards everything that follows
	valid   func() bool
	queue   [][]byte // to be written; nil is a ping
	writing bool     // flush runs
	ending  bool     // when the queue is empty
	closed  bool
}

// Upgrade makes a connection of a request; the caller returns from its handler, and reads.
func (s *Set) Upgrade(w http.ResponseWriter, r *http.Request) (*Conn, error) {
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
	}
	// net/http's own deadlines would go on.
	if err := ws.NetConn().SetDeadline(time.Time{}); err != nil {
		ws.Close()
		return nil, err
	}
	c := &Conn{set: s, ws: ws}
	ws.SetPongHandler(func(string) error { c.live(); return nil })
	ws.SetPingHandler(func(data string) error { c.live(); c.write(websocket.PongMessage, []byte(data)); return nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ws.Close()
		return nil, http.ErrServerClosed
	}
	if !s.ticking {
		s.ticking = true
		s.now.Store(time.Now().Unix())
		s.running.Go(s.clock)
	}
	c.seen.Store(s.now.Load())
	c.pinged = s.now.Load()
	c.silent.Store(int64(s.settings.SilentAfter / time.Second))
	s.all[c] = struct{}{}
	return c, nil
}

func (c *Conn) live() {
	c.lives.Add(1)
	c.seen.Store(c.set.now.Load())
}

// SetLimit bounds a message's bytes.
func (c *Conn) SetLimit(bytes int64) { c.ws.SetReadLimit(bytes) }

// SetValid has valid say, as often as the peer is asked for a sign of life, whether the connection may go on.
func (c *Conn) SetValid(valid func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid = valid
}

func (c *Conn) isValid() bool {
	c.mu.Lock()
	valid := c.valid
	c.mu.Unlock()
	return valid == nil || valid()
}

// SetSilent bounds how long the peer may say nothing.
func (c *Conn) SetSilent(d time.Duration) { c.silent.Store(int64(max(d/time.Second, 1))) }

// Read returns the next message, which is valid until Release or the next Read.
func (c *Conn) Read() ([]byte, error) {
	c.Release()
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, err
	}
	if kind != websocket.BinaryMessage {
		return nil, ErrText
	}
	c.buffer = buffers.Get().(*[]byte)
	b, large := (*c.buffer)[:0], time.Time{}
	for {
		if len(b) == cap(b) {
			if large.IsZero() && len(b) >= keepBuffer/2 && c.Large != nil {
				if err := c.Large(); err != nil {
					return nil, err
				}
				large = time.Now()
			}
			b = append(b, 0)[:len(b)]
		}
		if !large.IsZero() {
			due := large.Add(largeBegins + time.Duration(len(b))*time.Second/largeRate)
			if err := c.ws.SetReadDeadline(due); err != nil {
				return nil, err
			}
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		*c.buffer = b
		if errors.Is(err, io.EOF) {
			c.live()
			return b, c.ws.SetReadDeadline(time.Time{})
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, ErrSlow
		}
		if err != nil {
			return nil, err
		}
	}
}

// Release gives the memory of the message back.
func (c *Conn) Release() {
	if c.buffer != nil && cap(*c.buffer) <= keepBuffer {
		buffers.Put(c.buffer)
	}
	c.buffer = nil
}

// Alive asks the peer for a sign of life, which Lives counts; false when nothing can be sent to it.
func (c *Conn) Alive() bool { return c.Send(nil) }

// Lives counts the peer's messages and pongs.
func (c *Conn) Lives() uint32 { return c.lives.Load() }

// Send queues a message; false when the peer does not take what is queued, or has gone.
func (c *Conn) Send(msg []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ending || len(c.queue) >= maxQueue {
		return false
	}
	c.queue = append(c.queue, msg)
	if !c.writing {
		c.writing = true
		c.set.running.Go(c.flush)
	}
	return true
}

// Finish closes the connection when what is queued has been written.
func (c *Conn) Finish() {
	c.mu.Lock()
	c.ending = true
	idle := !c.writing
	c.mu.Unlock()
	if idle {
		c.Close()
	}
}

// Close ends the connection, and so its Read.
func (c *Conn) Close() {
	c.mu.Lock()
	was := c.closed
	c.closed, c.queue = true, nil
	c.mu.Unlock()
	if was {
		return
	}
	c.ws.Close()
	c.set.mu.Lock()
	delete(c.set.all, c)
	c.set.mu.Unlock()
}

// flush writes everything that waits.
func (c *Conn) flush() {
	for {
		c.mu.Lock()
		mine := c.queue
		c.queue = nil
		c.writing = len(mine) > 0
		ending := c.ending
		c.mu.Unlock()
		if len(mine) == 0 {
			if ending {
				c.Close()
			}
			return
		}
		for _, msg := range mine {
			kind := websocket.BinaryMessage
			if msg == nil {
				kind = websocket.PingMessage
			}
			c.write(kind, msg)
		}
	}
}

func (c *Conn) write(kind int, msg []byte) {
	var err error
	if until := time.Now().Add(writeWithin); kind != websocket.BinaryMessage {
		err = c.ws.WriteControl(kind, msg, until)
	} else if err = c.ws.SetWriteDeadline(until); err == nil {
		err = c.ws.WriteMessage(kind, msg)
	}
	if err != nil {
		c.Close()
	}
}

// clock looks after every connection until the set is closed, or has none.
func (s *Set) clock() {
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for {
		var now int64
		select {
		case at := <-beat.C:
			now = at.Unix()
		case <-s.stop:
			return
		}
		s.now.Store(now)
		var due, gone []*Conn
		s.mu.Lock()
		if len(s.all) == 0 {
			s.ticking = false
			s.mu.Unlock()
			return
		}
		for c := range s.all {
			switch {
			case now-c.seen.Load() > c.silent.Load():
				gone = append(gone, c)
			case now-c.pinged >= int64(s.settings.PingEvery/time.Second):
				c.pinged = now
				due = append(due, c)
			}
		}
		s.mu.Unlock()
		for _, c := range due {
			quiet := now-c.seen.Load() >= int64(s.settings.PingEvery/time.Second)
			if !c.isValid() || quiet && !c.Alive() {
				gone = append(gone, c)
			}
		}
		for _, c := range gone {
			c.Close()
		}
	}
}

// Close ends every connection and waits for the set's goroutines; the readers end by themselves.
func (s *Set) Close() {
	s.mu.Lock()
	if !s.closed {
		close(s.stop)
	}
	s.closed = true
	all := make([]*Conn, 0, len(s.all))
	for c := range s.all {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
	s.running.Wait()
}
