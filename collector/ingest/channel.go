package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/collector/wire/seal"
)

// channel is the link to a node behind a gatherer.
type channel struct {
	g    *gathering
	id   uint64
	conn *connection

	// The gatherer's reader alone has these.
	in    *seal.Half
	parts seal.Whole

	out   *seal.Half // g.mu guards it
	lives atomic.Uint32
	seen  atomic.Int64 // Unix seconds

	mu     sync.Mutex // guards everything that follows
	parked parked
	way    string // the gatherer's address, as the node has it
	used   int    // bytes taken since the last credit
	closed bool
}

// kept is a message that waits, and the bytes that the gatherer gets credit for.
type kept struct {
	msg    []byte
	credit int
}

// parked is what waits to be taken.
type parked struct {
	messages []kept
	size     int       // bytes of them
	until    time.Time // nothing is taken before
	busy     bool      // somebody takes messages
	greeted  bool      // the Hello has been taken, or is being
}

// data takes a sealed message of the node.
func (ch *channel) data(sealed []byte) error {
	size := len(sealed)
	kind, text, err := ch.in.Open(sealed)
	if err != nil {
		return err
	}
	ch.lives.Add(1)
	ch.seen.Store(time.Now().Unix())
	switch kind {
	case seal.Ping:
		ch.send(seal.Pong, nil)
	case seal.Pong:
	case seal.Via:
		if len(text) > 256 || !topology.CleanName(string(text)) {
			return wire.Reject{Code: wire.RejectMalformed, Text: "the gatherer's address has control characters"}
		}
		ch.mu.Lock()
		ch.way = string(text)
		ch.mu.Unlock()
	case seal.Message, seal.Part:
		msg, whole, err := ch.parts.Add(kind, text)
		if err != nil {
			return wire.Reject{Code: wire.RejectLimit, Text: err.Error()}
		}
		if whole {
			return ch.message(msg, size)
		}
	default:
		return wire.Reject{Code: wire.RejectVersion, Text: fmt.Sprintf("sealed message of kind %d", kind)}
	}
	ch.credit(size)
	return nil
}

func (ch *channel) address() string {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.way
}

// message takes a message, or keeps it until it can be taken.
func (ch *channel) message(msg []byte, size int) error {
	ch.mu.Lock()
	p := &ch.parked
	if p.busy || len(p.messages) > 0 || !ch.free(len(msg)) {
		if p.size+len(msg) > 2*wire.Window+ch.parts.Most {
			ch.mu.Unlock()
			return wire.Reject{Code: wire.RejectLimit, Text: "the gatherer sends more than it has credit for"}
		}
		p.messages = append(p.messages, kept{bytes.Clone(msg), size})
		p.size += len(msg)
		ch.mu.Unlock()
		return nil
	}
	p.busy = true
	ch.mu.Unlock()
	ch.work(msg, size)
	return nil
}

// free says whether the next message may be taken; ch.mu is held.
func (ch *channel) free(size int) bool {
	return !time.Now().Before(ch.parked.until) && ch.conn.hasRoom(size)
}

// work takes a message and those that are parked behind it, as far as they may be taken.
func (ch *channel) work(msg []byte, size int) {
	for msg != nil {
		if !ch.parked.greeted { // whether another one speaks for the node may take seconds to find out
			ch.parked.greeted = true
			hello := bytes.Clone(msg)
			go func() {
				if err := ch.conn.welcome(hello); err != nil {
					ch.stop(err)
					return
				}
				ch.credit(size)
				ch.work(ch.next())
			}()
			return
		}
		ch.conn.busy.Store(true)
		err := ch.conn.message(msg, 0) // one connection of its token, with hasRoom for it
		ch.conn.busy.Store(false)
		if err != nil {
			ch.stop(err)
			return
		}
		ch.credit(size)
		msg, size = ch.next()
	}
}

// stop is fail, called by the goroutine that takes messages.
func (ch *channel) stop(err error) {
	ch.fail(err)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.rest()
}

// next returns the next parked message; nil when none may be taken, and then nobody takes any.
func (ch *channel) next() ([]byte, int) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	p := &ch.parked
	if ch.closed || len(p.messages) == 0 || !ch.free(len(p.messages[0].msg)) {
		ch.rest()
		return nil, 0
	}
	first := p.messages[0]
	p.messages[0] = kept{}
	if p.messages = p.messages[1:]; len(p.messages) == 0 {
		p.messages = nil
	}
	p.size -= len(first.msg)
	return first.msg, first.credit
}

// Freed implements link.
func (ch *channel) Freed() { ch.resume() }

// resume goes on with what is parked, if somebody does not do so already.
func (ch *channel) resume() {
	ch.mu.Lock()
	p := &ch.parked
	if p.busy || len(p.messages) == 0 || ch.closed {
		ch.mu.Unlock()
		return
	}
	p.busy = true
	ch.mu.Unlock()
	go ch.work(ch.next())
}

// Hold implements link: it does not wait, but what comes next is parked.
func (ch *channel) Hold(d time.Duration) error {
	ch.mu.Lock()
	ch.parked.until = time.Now().Add(d)
	ch.mu.Unlock()
	time.AfterFunc(d, ch.resume)
	return nil
}

// credit lets the gatherer send as many bytes more.
func (ch *channel) credit(n int) {
	ch.mu.Lock()
	ch.used += n
	n = ch.used
	if n < wire.Window/2 {
		ch.mu.Unlock()
		return
	}
	ch.used = 0
	ch.mu.Unlock()
	ch.g.mu.Lock()
	defer ch.g.mu.Unlock()
	ch.g.put(ch.id, wire.OpCredit, binary.AppendUvarint(nil, uint64(n)))
}

// Send implements link.
func (ch *channel) Send(msg []byte) bool {
	g := ch.g
	g.mu.Lock()
	defer g.mu.Unlock()
	// Nothing may be left out after it was sealed: what would not fit is not begun.
	if g.channels[ch.id] != ch || len(g.out)+len(msg)+len(msg)/8+64 > maxOut {
		return false
	}
	var room [512]byte
	_, err := ch.out.Parts(room[:0], msg, func(sealed []byte) error {
		if !g.put(ch.id, wire.OpData, sealed) {
			return errors.New("the gatherer is gone")
		}
		return nil
	})
	return err == nil
}

// send sends a sealed message without a text.
func (ch *channel) send(kind seal.Kind, text []byte) bool {
	g := ch.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.channels[ch.id] != ch || len(g.out)+len(text)+64 > maxOut {
		return false
	}
	var room [64]byte
	return g.put(ch.id, wire.OpData, ch.out.Seal(room[:0], kind, text))
}

// Alive implements link.
func (ch *channel) Alive() bool { return ch.send(seal.Ping, nil) }

// Lives implements link.
func (ch *channel) Lives() uint32 { return ch.lives.Load() }

// fail ends the channel by the agent's fault.
func (ch *channel) fail(err error) {
	h := ch.g.hub
	if !errors.Is(err, ErrClosed) {
		h.stats.rejected.Add(1)
		h.cfg.Log.Warn("a node's stream through a gatherer ends", "by", ch.conn.by.Name, "gatherer", ch.g.node,
			"err", err)
	}
	if r := (wire.Reject{}); errors.As(err, &r) {
		if msg, err := wire.Append(nil, r); err == nil {
			ch.Send(msg)
		}
	}
	ch.Close()
}

// Finish implements link.
func (ch *channel) Finish() { ch.Close() }

// Close implements link. It may be called with the hub's mu held.
func (ch *channel) Close() {
	ch.mu.Lock()
	was, idle := ch.closed, !ch.parked.busy
	ch.closed, ch.parked.messages, ch.parked.size = true, nil, 0
	ch.mu.Unlock()
	if was {
		return
	}
	close(ch.conn.ended)
	g := ch.g
	g.mu.Lock()
	g.put(ch.id, wire.OpClose, nil)
	delete(g.channels, ch.id)
	g.mu.Unlock()
	if idle {
		go ch.leave()
	}
}

// rest notes that nobody takes messages any more; ch.mu is held.
func (ch *channel) rest() {
	ch.parked.busy = false
	if ch.closed {
		go ch.leave()
	}
}

// leave is the connection's end, when it is closed and nobody takes messages.
func (ch *channel) leave() {
	ch.g.hub.leave(ch.conn)
	ch.g.hub.gathers.nodes.Add(-1)
	ch.g.hub.wait.Done()
}
