package ingest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"fairway/collector/socket"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/collector/wire/seal"
)

// A gatherer brings the streams of many nodes over one connection, as channels. Each channel is an agent's connection
// like any other: the node proves who it is to the daemon, and what the two send to each other the gatherer can
// neither read nor change. Nothing of one channel waits for another: what cannot be taken yet is kept, and the gatherer
// sends no more of a channel than it has credit for.

const (
	// MaxChannels is how many nodes one gatherer may bring.
	MaxChannels = 4096
	// maxOpens is how many channels a gatherer may open between two looks at it (pingEvery), maxBroken how many of its
	// messages in that time may be such that their nodes have not sealed them.
	maxOpens, maxBroken = 4 * MaxChannels, 256
	// maxLogged is how many refusals of a gatherer's nodes the log has in that time; all are counted.
	maxLogged = 16
	// maxOut bounds what waits to be sent to a gatherer, bytes.
	maxOut = 8 << 20
	// bundleFor is how long a bundle waits for what else there is.
	bundleFor = 20 * time.Millisecond
	// ackSize is larger than a sealed acknowledgement; what is larger than it does not wait.
	ackSize = 64
)

// Prove returns whose offer it is: the node's token and what it may bring.
type Prove func(o *seal.Offer) (token string, by Speaker, err error)

// gathering is a gatherer's connection.
type gathering struct {
	hub    *Hub
	ws     *socket.Conn
	node   topology.NodeID // the gatherer
	remote string
	prove  Prove
	valid  func() bool

	mu       sync.Mutex // guards everything that follows
	channels map[uint64]*channel
	out      []byte // bundles of at most wire.MaxBundle each
	cuts     []int  // where each begins in out
	kicked   bool   // the next bundle is about to be written
	opens    int    // since the last look, like the next two
	broken   int
	refused  int
	closed   bool
}

// Gather takes over the request of a gatherer that was let in; node is what it is called. It returns when the
// connection is up or refused.
func (h *Hub) Gather(w http.ResponseWriter, r *http.Request, by Speaker, node topology.NodeID, prove Prove) error {
	if !by.mayBe(node) || node == "" || !topology.CleanName(string(node)) {
		return fmt.Errorf("token %q may not gather as node %q", by.Name, node)
	}
	ws, err := h.sockets.Upgrade(w, r)
	if err != nil {
		h.cfg.Log.Warn("a gatherer's connection was not a WebSocket", "token", by.Name, "remote", r.RemoteAddr, "err",
			err)
		return nil
	}
	g := &gathering{hub: h, ws: ws, node: node, remote: r.RemoteAddr, prove: prove, valid: by.Valid,
		channels: map[uint64]*channel{}}
	ws.SetLimits(wire.MaxBundle+wire.MaxRecord, socket.DefaultQueue)
	ws.More = g.more
	ws.SetValid(g.look)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		ws.Close()
		return nil
	}
	h.wait.Add(1)
	h.gathers.connections.Add(1)
	go func() {
		defer h.wait.Done()
		g.run()
		h.gathers.connections.Add(-1)
	}()
	return nil
}

// run takes bundles until the connection ends, and with it every channel.
func (g *gathering) run() {
	log := g.hub.cfg.Log.With("gatherer", g.node, "remote", g.remote)
	log.Info("a gatherer connected")
	var err error
	for err == nil {
		var msg []byte
		if msg, err = g.ws.Read(); err == nil {
			g.hub.gathers.bytes.Add(uint64(len(msg)))
			err = wire.Records(msg, g.record)
		}
	}
	g.ws.Release()
	g.ws.Close()
	g.mu.Lock()
	g.closed = true
	left := make([]*channel, 0, len(g.channels))
	for _, ch := range g.channels {
		left = append(left, ch)
	}
	g.mu.Unlock()
	log.Warn("a gatherer's connection ended", "nodes", len(left), "err", err)
	for _, ch := range left {
		ch.Close()
	}
}

// record takes one record; an error ends the gatherer's connection.
func (g *gathering) record(id uint64, op wire.Op, body []byte) error {
	switch op {
	case wire.OpOpen:
		return g.open(id, body)
	case wire.OpData, wire.OpClose:
	default:
		return fmt.Errorf("operation %d is not for the daemon", op)
	}
	g.mu.Lock()
	ch := g.channels[id]
	g.mu.Unlock()
	switch {
	case ch == nil: // it was closed here meanwhile
		return nil
	case op == wire.OpClose:
		ch.Close()
		return nil
	}
	err := ch.data(body)
	if errors.Is(err, seal.ErrBroken) {
		g.hub.gathers.broken.Add(1)
		if g.misbehaves(&g.broken, maxBroken) {
			return fmt.Errorf("%d messages within %s that their nodes have not sealed", maxBroken, pingEvery)
		}
	}
	if err != nil {
		ch.fail(err)
	}
	return nil
}

// misbehaves counts a fault that a sound gatherer makes rarely, and is true once there are too many.
func (g *gathering) misbehaves(count *int, most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	*count++
	return *count > most
}

// open begins a channel, if its node is one.
func (g *gathering) open(id uint64, body []byte) error {
	g.mu.Lock()
	g.opens++
	many, used := len(g.channels), g.channels[id] != nil
	opens := g.opens
	g.mu.Unlock()
	switch {
	case used:
		return fmt.Errorf("channel %d is opened twice", id)
	case opens > maxOpens:
		return fmt.Errorf("%d channels opened within %s", maxOpens, pingEvery)
	case many >= MaxChannels:
		g.refuse(id, fmt.Sprintf("the gatherer brings %d nodes already", many))
		return nil
	}
	ch, answer, err := g.accept(id, body)
	if err != nil {
		g.refuse(id, err.Error())
		return nil
	}
	if !g.hub.enter(ch.conn) {
		return ErrClosed
	}
	g.hub.gathers.nodes.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.channels[id] = ch
	g.put(id, wire.OpData, answer)
	return nil
}

func (g *gathering) accept(id uint64, body []byte) (*channel, []byte, error) {
	o, err := seal.ParseOffer(body)
	if err != nil {
		return nil, nil, err
	}
	token, by, err := g.prove(o)
	if err != nil {
		return nil, nil, err
	}
	answer, in, out, err := o.Accept(token)
	if err != nil {
		return nil, nil, err
	}
	ch := &channel{g: g, id: id, in: in, out: out, parts: seal.Whole{Most: int(by.Limits.MessageBytes)}}
	ch.seen.Store(time.Now().Unix())
	ch.conn = newConnection(g.hub, ch, by, "gatherer "+string(g.node))
	return ch, answer, nil
}

// refuse answers a channel that does not begin.
func (g *gathering) refuse(id uint64, why string) {
	g.hub.gathers.refused.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused++; g.refused <= maxLogged {
		g.hub.cfg.Log.Warn("a node's stream through a gatherer was refused", "gatherer", g.node, "err", why)
	}
	g.put(id, wire.OpClose, []byte(why))
}

// put adds a record to what is sent; g.mu is held. False when too much waits already.
func (g *gathering) put(id uint64, op wire.Op, body []byte) bool {
	if g.closed || len(g.out)+len(body) > maxOut {
		return false
	}
	if n := len(g.cuts); n == 0 || len(g.out)-g.cuts[n-1]+len(body)+2*binary.MaxVarintLen64 > wire.MaxBundle {
		g.cuts = append(g.cuts, len(g.out))
	}
	g.out = wire.AppendRecord(g.out, id, op, body)
	switch {
	case len(body) > ackSize:
		g.ws.Kick()
	case !g.kicked: // acknowledgements of one commit go together
		g.kicked = true
		time.AfterFunc(bundleFor, g.ws.Kick)
	}
	return true
}

// more returns the next bundle; nil without one.
func (g *gathering) more() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.cuts) == 0 {
		g.kicked = false
		return nil
	}
	end := len(g.out)
	if len(g.cuts) > 1 {
		end = g.cuts[1]
	}
	bundle := slices.Clone(g.out[g.cuts[0]:end])
	if g.cuts = g.cuts[1:]; len(g.cuts) == 0 {
		g.out, g.cuts = g.out[:0], nil
		if cap(g.out) > 2*wire.MaxBundle {
			g.out = nil
		}
	}
	return bundle
}

// look says whether the gatherer may go on, and ends those of its channels whose nodes are silent or have lost their
// right. It is asked as often as peers are asked for a sign of life.
func (g *gathering) look() bool {
	if g.valid != nil && !g.valid() {
		return false
	}
	g.mu.Lock()
	g.opens, g.broken, g.refused = 0, 0, 0
	all := make([]*channel, 0, len(g.channels))
	for _, ch := range g.channels {
		all = append(all, ch)
	}
	g.mu.Unlock()
	now := time.Now()
	for _, ch := range all {
		if now.Unix()-ch.seen.Load() > int64(silentAfter/time.Second) ||
			ch.conn.by.Valid != nil && !ch.conn.by.Valid() {
			ch.Close()
		}
	}
	return true
}

// Way is how a node's frames come.
type Way struct {
	// Gatherer is through whom; empty: the node has a connection of its own. Address is the gatherer's as the node has
	// it: the node's own word.
	Gatherer topology.NodeID
	Address  string
	// Late is how long after its end the newest second came.
	Late time.Duration
}

// Way returns how a node's frames come; false when its own agent is not connected.
func (h *Hub) Way(n topology.NodeID) (w Way, ok bool) {
	h.mu.Lock()
	c := h.routes[n]
	h.mu.Unlock()
	if c == nil || c.hello.Node != n {
		return w, false
	}
	w.Late = time.Duration(c.late.Load()) * time.Millisecond
	if ch, through := c.link.(*channel); through {
		w.Gatherer, w.Address = ch.g.node, ch.address()
	}
	return w, true
}

// Gatherer is a gatherer that is connected.
type Gatherer struct {
	Node   topology.NodeID
	Remote string
	Nodes  int
	// Late is that of the node whose newest second came the latest.
	Late time.Duration
}

// Gatherers lists those that are connected, by name.
func (h *Hub) Gatherers() (out []Gatherer) {
	by := map[*gathering]*Gatherer{}
	h.mu.Lock()
	for c := range h.open {
		ch, through := c.link.(*channel)
		if !through {
			continue
		}
		g := by[ch.g]
		if g == nil {
			g = &Gatherer{Node: ch.g.node, Remote: ch.g.remote}
			by[ch.g] = g
		}
		g.Nodes++
		g.Late = max(g.Late, time.Duration(c.late.Load())*time.Millisecond)
	}
	h.mu.Unlock()
	for _, g := range by {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Gatherer) int { return cmp.Compare(a.Node, b.Node) })
	return out
}
