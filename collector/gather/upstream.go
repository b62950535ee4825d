package gather

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/stream"
	"fairway/collector/wire"
)

const (
	// bundleFor is how long a bundle waits for what else comes: each costs both ends a wake-up. For answersFor after
	// something larger than an acknowledgement came for a node it is quickFor: that may be an order.
	bundleFor  = 50 * time.Millisecond
	quickFor   = 5 * time.Millisecond
	answersFor = time.Second
	ackSize    = 64

	upPing      = 5 * time.Second
	upSilent    = 15 * time.Second
	writeWithin = 10 * time.Second
	dialWithin  = 10 * time.Second
)

// upstream is the connection to one daemon.
type upstream struct {
	g   *Gatherer
	at  string
	log *slog.Logger
	// ordered is when something larger than an acknowledgement came; Unix nanoseconds.
	ordered atomic.Int64

	mu    sync.Mutex // guards everything that follows
	life  *life      // nil while the daemon is away
	nodes map[uint64]*node
	next  uint64
}

// life is one connection to the daemon; the upstream's mu guards it.
type life struct {
	bundles [][]byte // to be written, each of at most wire.MaxBundle
	spare   [][]byte
	size    int
	wake    chan struct{} // holds a token when there is something to write
	room    *sync.Cond
	ended   bool
}

func (u *upstream) connected() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.life != nil
}

// run keeps the connection up until ctx ends.
func (u *upstream) run(ctx context.Context) {
	for backoff, shown := minBackoff, ""; ctx.Err() == nil; backoff = min(2*backoff, maxBackoff) {
		dialCtx, cancel := context.WithTimeout(ctx, dialWithin)
		conn, err := stream.Dialer{TLS: u.g.conf.TLS, Token: u.g.conf.Token}.Gather(dialCtx, u.at, u.g.conf.Node)
		cancel()
		if err == nil {
			u.log.Info("gathering")
			shown = ""
			begun := time.Now()
			err = u.session(ctx, conn)
			u.g.stats.lost.Add(1)
			if time.Since(begun) > maxBackoff {
				backoff = minBackoff
			}
		}
		if ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != shown { // a lasting absence is logged once
			u.log.Warn("the daemon is away; nodes go other ways", "err", err)
			shown = text
		}
		pause(ctx, backoff)
	}
}

// session is one connection's life.
func (u *upstream) session(ctx context.Context, conn *websocket.Conn) error {
	l := &life{wake: make(chan struct{}, 1), room: sync.NewCond(&u.mu)}
	u.mu.Lock()
	u.life, u.nodes = l, map[uint64]*node{}
	u.mu.Unlock()
	sctx, cancel := context.WithCancelCause(ctx)
	var reader sync.WaitGroup
	reader.Go(func() { cancel(u.read(conn)) })
	err := u.write(sctx, conn, l)
	if cause := context.Cause(sctx); cause != nil {
		err = cause
	}
	cancel(nil)
	conn.Close()
	u.mu.Lock()
	u.life = nil
	l.ended = true
	left := u.nodes
	u.nodes = nil
	for _, n := range left {
		n.gone = true
	}
	l.room.Broadcast()
	u.mu.Unlock()
	reader.Wait()
	for _, n := range left {
		n.end("the gatherer has lost its connection to the daemon")
	}
	return err
}

// write sends bundles and signs of life.
func (u *upstream) write(ctx context.Context, conn *websocket.Conn, l *life) error {
	ping := time.NewTicker(upPing)
	defer ping.Stop()
	var mine [][]byte
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ping.C:
			if err := conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin)); err != nil {
				return err
			}
			continue
		case <-l.wake:
		}
		wait := bundleFor
		if time.Since(time.Unix(0, u.ordered.Load())) < answersFor {
			wait = quickFor
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		u.mu.Lock()
		mine, l.bundles = l.bundles, mine[:0]
		u.mu.Unlock()
		for i, b := range mine {
			if err := conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
				return err
			}
			if err := conn.WriteMessage(websocket.BinaryMessage, b); err != nil {
				return err
			}
			u.mu.Lock()
			l.size -= len(b)
			if len(l.spare) < 4 {
				l.spare = append(l.spare, b[:0])
			}
			mine[i] = nil
			l.room.Broadcast()
			u.mu.Unlock()
		}
	}
}

// put adds a record to the bundles; u.mu is held.
func (l *life) put(id uint64, op wire.Op, body []byte) {
	last := len(l.bundles) - 1
	if last < 0 || len(l.bundles[last])+len(body)+2*binary.MaxVarintLen64 > wire.MaxBundle {
		var b []byte
		if n := len(l.spare); n > 0 {
			b, l.spare = l.spare[n-1], l.spare[:n-1]
		}
		l.bundles = append(l.bundles, b)
		last++
	}
	was := len(l.bundles[last])
	l.bundles[last] = wire.AppendRecord(l.bundles[last], id, op, body)
	l.size += len(l.bundles[last]) - was
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// open begins a node's channel; false while the daemon is away.
func (u *upstream) open(n *node, offer []byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.life == nil {
		return false
	}
	u.next++
	n.id = u.next
	u.nodes[n.id] = n
	u.life.put(n.id, wire.OpOpen, offer)
	return true
}

// data passes a node's message on. It waits while too much of the node's, or of all, is on its way: the node waits as
// well then, and its spool holds what it cannot send. False when the channel has ended.
func (u *upstream) data(n *node, msg []byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.life
	for l != nil && !l.ended && !n.gone && (n.owed >= wire.Window || l.size >= maxUp) {
		l.room.Wait()
	}
	if l == nil || l.ended || n.gone {
		return false
	}
	n.owed += len(msg)
	u.g.stats.bytes.Add(uint64(len(msg)))
	l.put(n.id, wire.OpData, msg)
	return true
}

// close ends a node's channel.
func (u *upstream) close(n *node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n.gone || u.life == nil {
		return
	}
	n.gone = true
	delete(u.nodes, n.id)
	u.life.put(n.id, wire.OpClose, nil)
}

// read takes the daemon's bundles until the connection ends.
func (u *upstream) read(conn *websocket.Conn) error {
	conn.SetReadLimit(wire.MaxBundle + wire.MaxRecord)
	alive := func(string) error { return conn.SetReadDeadline(time.Now().Add(upSilent)) }
	conn.SetPongHandler(alive)
	ping := conn.PingHandler()
	conn.SetPingHandler(func(data string) error { return errors.Join(alive(""), ping(data)) })
	for {
		if err := alive(""); err != nil {
			return err
		}
		kind, b, err := conn.ReadMessage()
		if err == nil && kind != websocket.BinaryMessage {
			err = errors.New("text message: not a fairway daemon")
		}
		if err == nil {
			err = wire.Records(b, u.record)
		}
		if err != nil {
			return fmt.Errorf("daemon %s: %w", u.at, err)
		}
	}
}

// record takes one record of the daemon's.
func (u *upstream) record(id uint64, op wire.Op, body []byte) error {
	u.mu.Lock()
	n := u.nodes[id]
	switch {
	case n == nil: // it went meanwhile
	case op == wire.OpCredit:
		taken, size := binary.Uvarint(body)
		if size <= 0 {
			u.mu.Unlock()
			return errors.New("credit without a number")
		}
		n.owed -= min(n.owed, int(min(taken, wire.Window)))
		u.life.room.Broadcast()
	case op == wire.OpClose:
		n.gone = true
		delete(u.nodes, id)
		u.life.room.Broadcast()
	}
	u.mu.Unlock()
	switch {
	case n == nil || op == wire.OpCredit:
	case op == wire.OpData:
		if len(body) > ackSize {
			u.ordered.Store(time.Now().UnixNano())
		}
		n.deliver(body)
	case op == wire.OpClose:
		why := string(body)
		if why == "" {
			why = "the daemon has ended the stream"
		}
		n.end(why)
	default:
		return fmt.Errorf("operation %d is not for a gatherer", op)
	}
	return nil
}
