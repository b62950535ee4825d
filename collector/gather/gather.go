// Package gather takes the streams of neighbouring nodes and carries them to the daemon over one connection. What a
// node and the daemon send each other is sealed by them; here it is bytes of a channel, which are passed on as they
// come, bounded, and forgotten.
package gather

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/collector/socket"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/collector/wire/seal"
)

const (
	offerWithin = 10 * time.Second
	silentAfter = 60 * time.Second // a node's WebSocket
	pingEvery   = 20 * time.Second
	minBackoff  = 500 * time.Millisecond
	maxBackoff  = 15 * time.Second
	// maxUp bounds what waits for the daemon, of all nodes; maxDown what waits for one node, maxDowns for all. Each may
	// be passed by one record.
	maxUp    = 4 << 20
	maxDown  = 2 << 20
	maxDowns = 16 << 20
	// DefaultNodes is how many nodes a gatherer takes by default.
	DefaultNodes = 1024
)

// Config is what a gatherer works with.
type Config struct {
	Node    topology.NodeID // its own name
	Daemons []string        // addresses as in stream.Client.URL
	Token   string          // its own
	TLS     *tls.Config     // for wss daemons; nil is the system's
	Nodes   int             // at most; 0 is DefaultNodes
	Log     *slog.Logger
}

// Gatherer takes nodes' streams; it is an http.Handler. Run keeps its connections to the daemons up.
type Gatherer struct {
	conf    Config
	sockets *socket.Set
	ups     []*upstream
	nodes   atomic.Int64
	down    atomic.Int64 // bytes that wait for nodes
	stats   stats
}

// stats count since the start.
type stats struct{ bytes, refused, lost atomic.Uint64 }

// New returns a gatherer without connections.
func New(c Config) *Gatherer {
	if c.Nodes <= 0 {
		c.Nodes = DefaultNodes
	}
	g := &Gatherer{conf: c, sockets: socket.NewSet(socket.Settings{SilentAfter: silentAfter, PingEvery: pingEvery})}
	for _, at := range c.Daemons {
		g.ups = append(g.ups, &upstream{g: g, at: at, log: c.Log.With("daemon", at)})
	}
	return g
}

// Run keeps the connections to the daemons up until ctx ends, then ends the nodes'.
func (g *Gatherer) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, up := range g.ups {
		all.Go(func() { up.run(ctx) })
	}
	all.Wait()
	g.sockets.Close()
}

// upstreamOf finds the connection to a daemon by its name among this gatherer's.
func (g *Gatherer) upstreamOf(name string) (*upstream, error) {
	if name == "" && len(g.ups) == 1 {
		return g.ups[0], nil
	}
	for _, up := range g.ups {
		if up.at == name {
			return up, nil
		}
	}
	return nil, fmt.Errorf("this gatherer carries to %s, not to daemon %q; list the same addresses in daemon.urls",
		strings.Join(g.conf.Daemons, ", "), topology.Clean(name))
}

// ServeHTTP takes a node's stream.
func (g *Gatherer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	up, err := g.upstreamOf(r.URL.Query().Get("daemon"))
	switch {
	case r.URL.Path != stream.GatherPath:
		http.NotFound(w, r)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case !up.connected():
		g.stats.refused.Add(1)
		http.Error(w, "the gatherer has no connection to the daemon", http.StatusServiceUnavailable)
		return
	case g.nodes.Add(1) > int64(g.conf.Nodes):
		g.nodes.Add(-1)
		g.stats.refused.Add(1)
		http.Error(w, fmt.Sprintf("the gatherer has %d nodes already (gather.max_nodes)", g.conf.Nodes),
			http.StatusServiceUnavailable)
		return
	}
	ws, err := g.sockets.Upgrade(w, r)
	if err != nil {
		g.nodes.Add(-1)
		return
	}
	n := &node{up: up, ws: ws}
	ws.More = n.more
	go func() { // net/http's own goroutine, and what it holds, ends with the request
		defer g.nodes.Add(-1)
		n.run()
	}()
}

// node is one node's connection.
type node struct {
	up *upstream
	ws *socket.Conn

	// up's mu guards these.
	id   uint64
	owed int  // bytes that the daemon has not taken yet
	gone bool // by the daemon's word, or with the connection to it

	mu      sync.Mutex // guards everything that follows
	waiting [][]byte
	size    int
	why     string // it ends when everything is written
}

func (n *node) run() {
	n.ws.SetLimits(seal.MaxOffer, socket.DefaultQueue)
	n.ws.SetSilent(offerWithin)
	msg, err := n.ws.Read()
	if err == nil && n.up.open(n, msg) {
		n.ws.SetLimits(wire.MaxRecord, socket.DefaultQueue)
		n.ws.SetSilent(silentAfter)
		for {
			if msg, err = n.ws.Read(); err != nil || !n.up.data(n, msg) {
				break
			}
		}
		n.up.close(n)
	}
	n.ws.Release()
	n.ws.Finish()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up.g.down.Add(-int64(n.size))
	n.waiting, n.size = nil, 0
}

// deliver passes a message on to the node. One that does not take what it gets is let go.
func (n *node) deliver(msg []byte) {
	g := n.up.g
	n.mu.Lock()
	full := n.size > maxDown || g.down.Load() > maxDowns
	if !full {
		n.waiting = append(n.waiting, append([]byte(nil), msg...))
		n.size += len(msg)
		g.down.Add(int64(len(msg)))
	}
	n.mu.Unlock()
	if full {
		n.ws.Close()
		return
	}
	n.ws.Kick()
}

// more returns what the node gets next.
func (n *node) more() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) == 0 {
		if n.why != "" {
			n.ws.FinishWith(n.why)
			n.why = ""
		}
		return nil
	}
	msg := n.waiting[0]
	n.waiting[0] = nil
	if n.waiting = n.waiting[1:]; len(n.waiting) == 0 {
		n.waiting = nil
	}
	n.size -= len(msg)
	n.up.g.down.Add(-int64(len(msg)))
	return msg
}

// end lets the node go when it has everything, with a reason.
func (n *node) end(why string) {
	n.mu.Lock()
	n.why = why
	n.mu.Unlock()
	n.ws.Kick()
}

func pause(ctx context.Context, backoff time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(backoff/2 + rand.N(backoff)):
	}
}

// State is how a gatherer is doing.
type State struct {
	Connected bool  // with every daemon
	Nodes     int   // that are connected
	Waiting   int64 // bytes that wait, both ways
	Bytes     uint64
	Refused   uint64 // nodes that were refused, since the start
	Lost      uint64 // connections to daemons
}

// State returns how the gatherer is doing now.
func (g *Gatherer) State() State {
	s := State{Connected: true, Nodes: int(g.nodes.Load()), Waiting: g.down.Load(), Bytes: g.stats.bytes.Load(),
		Refused: g.stats.refused.Load(), Lost: g.stats.lost.Load()}
	for _, up := range g.ups {
		up.mu.Lock()
		if up.life == nil {
			s.Connected = false
		} else {
			s.Waiting += int64(up.life.size)
		}
		up.mu.Unlock()
	}
	return s
}
