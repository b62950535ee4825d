package swarm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/collector/wire/seal"
	"fairway/webui/access"
)

// rack is a gatherer and its nodes in one: the daemon has the same connection, channels and seals as from a gatherer of
// its own, and the machine is spared the nodes' sockets and the gatherers' processes. It sends nothing a second time:
// what the daemon does not take is lost.
type rack struct {
	conn *websocket.Conn

	mu     sync.Mutex // guards everything that follows, and the nodes
	nodes  map[uint64]*racked
	bundle []byte
	why    error
}

// racked is a node of a rack; the rack's mu guards it.
type racked struct {
	*agent
	rack  *rack
	id    uint64
	offer *seal.Offer
	token string
	in    *seal.Half // nil until the daemon has answered
	up    *seal.Half
	buf   []byte
}

const rackFlush = 50 * time.Millisecond // as a gatherer does

// newRack connects a gatherer of a number with its nodes.
func newRack(ctx context.Context, p *Part, number int, agents []*agent) (*rack, error) {
	e := access.Enrolment{Secrets: func() ([]string, error) { return []string{p.Secret}, nil }}
	since := time.Now().Add(-time.Minute)
	name := topology.NodeID(fmt.Sprintf("gather%03d", number))
	token, err := e.NodeToken(name, since)
	if err != nil {
		return nil, err
	}
	r := &rack{nodes: map[uint64]*racked{}}
	if r.conn, err = (stream.Dialer{Token: token}).Gather(ctx, p.URL, name); err != nil {
		return nil, err
	}
	for i, a := range agents {
		n := &racked{agent: a, id: uint64(i + 1)}
		if n.token, err = e.NodeToken(a.frame.Node, since); err == nil {
			n.offer, err = seal.NewOffer(n.token)
		}
		if err != nil {
			return nil, errors.Join(err, r.conn.Close())
		}
		r.nodes[n.id], a.racked, n.rack = n, n, r
		r.put(n.id, wire.OpOpen, n.offer.Bytes())
	}
	return r, nil
}

// put adds a record to what is sent next; r.mu is held, or nobody else has r yet.
func (r *rack) put(id uint64, op wire.Op, body []byte) {
	if len(r.bundle)+len(body)+32 > wire.MaxBundle {
		r.flush()
	}
	r.bundle = wire.AppendRecord(r.bundle, id, op, body)
}

// flush sends the bundle; r.mu is held. The daemon reads what a second brings at once.
func (r *rack) flush() {
	if len(r.bundle) == 0 || r.why != nil {
		return
	}
	err := r.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	if err == nil {
		err = r.conn.WriteMessage(websocket.BinaryMessage, r.bundle)
	}
	r.bundle, r.why = r.bundle[:0], err
}

// run takes what the daemon sends until ctx ends.
func (r *rack) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { r.conn.Close() })
	defer stop()
	go func() {
		for beat := time.NewTicker(rackFlush); ctx.Err() == nil; <-beat.C {
			r.mu.Lock()
			r.flush()
			r.mu.Unlock()
		}
	}()
	r.conn.SetReadLimit(wire.MaxBundle + wire.MaxRecord)
	for {
		_, b, err := r.conn.ReadMessage()
		r.mu.Lock()
		if err == nil {
			err = wire.Records(b, r.record)
		}
		if err != nil {
			r.why = err
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// record takes one record of the daemon's; r.mu is held.
func (r *rack) record(id uint64, op wire.Op, body []byte) (err error) {
	n := r.nodes[id]
	switch {
	case n == nil || op == wire.OpCredit: // a node's seconds are far from filling its window
		return nil
	case op == wire.OpClose:
		return fmt.Errorf("%s: the daemon ends the stream: %s", n.frame.Node, body)
	case n.in == nil:
		if n.in, n.up, err = n.offer.Take(n.token, body); err != nil {
			return err
		}
		n.seal(r, seal.Via, []byte("memory"))
		hello, err := wire.Append(nil, wire.Hello{Node: n.frame.Node, Role: n.frame.Role, FirstSeq: 1,
			Instance: n.queue.Instance()})
		n.seal(r, seal.Message, hello)
		return err
	}
	kind, text, err := n.in.Open(body)
	if err != nil {
		return err
	}
	switch kind {
	case seal.Ping:
		n.seal(r, seal.Pong, nil)
	case seal.Message:
		m, err := new(wire.Decoder).Decode(text)
		if err != nil {
			return err
		}
		if ack, ok := m.(wire.Ack); ok {
			n.queue.Ack(ack.Seq)
		} else {
			return fmt.Errorf("%s: the daemon sends %v", n.frame.Node, m)
		}
	}
	return nil
}

func (n *racked) seal(r *rack, kind seal.Kind, text []byte) {
	n.buf = n.up.Seal(n.buf[:0], kind, text)
	r.put(n.id, wire.OpData, n.buf)
}

var errNoAnswer = errors.New("the daemon has not answered a node's offer")

// state is why the node does not stream; nil: it does.
func (n *racked) state() error {
	n.rack.mu.Lock()
	defer n.rack.mu.Unlock()
	if n.rack.why == nil && n.up == nil {
		return errNoAnswer
	}
	return n.rack.why
}

// send sends the node's newest second, if the daemon has answered.
func (n *racked) send(now time.Time) {
	r := n.rack
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.up == nil {
		return
	}
	msg, err := n.queue.put(now, &n.frame)
	if err == nil {
		n.seal(r, seal.Message, msg)
	}
}
