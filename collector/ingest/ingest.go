// Package ingest is the listener at which agents bring their frames and take their orders: one
// WebSocket an agent, binary messages of collector/wire.
//
// A message is acknowledged when the store has made it durable, so what was acknowledged survives
// a crash and what was not is sent again. A bad message ends its own connection and no other.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"fairway/collector"
	"fairway/collector/socket"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

// Limits bound what one agent's token may bring, over all connections and requests that use it.
type Limits struct {
	Nodes           int `toml:"nodes"`             // different nodes
	SamplesPerFrame int `toml:"samples_per_frame"` // of a node and second
	// mean; a replayed spool may burst for BurstSeconds, then it waits
	FramesPerSec float64 `toml:"frames_per_sec"`
	BurstSeconds float64 `toml:"burst_seconds"`
	MessageBytes int64   `toml:"message_bytes"`
}

// DefaultLimits lets an agent that speaks for the largest machine through, and an hour of one node's spool.
func DefaultLimits() Limits {
	return Limits{Nodes: 65536, SamplesPerFrame: 256, FramesPerSec: 131072, BurstSeconds: 60,
		MessageBytes: wire.MaxMessageBytes}
}

// Speaker is who brings frames: the name of the token, the nodes it may speak for (patterns of
// path.Match; none means every node) and its limits.
type Speaker struct {
	Name   string
	Nodes  []string
	Limits Limits
	// Valid says whether the proof still holds; nil: always. A connection ends soon after it does not.
	Valid func() bool
}

func (s *Speaker) mayBe(n topology.NodeID) bool {
	return len(s.Nodes) == 0 || slices.ContainsFunc(s.Nodes, func(p string) bool {
		ok, err := path.Match(p, string(n))
		return ok && err == nil
	})
}

// mayReport says whether the routes of a frame are of nodes that the token may speak for: of a forwarder
// its own clients, of any other node its own route.
func (s *Speaker) mayReport(f *collector.Frame) bool {
	return len(s.Nodes) == 0 || !slices.ContainsFunc(f.Routes, func(r collector.Route) bool {
		subject := r.Client
		if f.Role == topology.Forwarder {
			subject = r.Forwarder.Node()
		}
		return subject != f.Node && !s.mayBe(subject)
	})
}

// Appender is the part of a store that ingest needs (tsdb.Store).
type Appender interface {
	Append(ctx context.Context, frames []collector.Frame) error
}

// Config is what a hub works with.
type Config struct {
	Store Appender
	// Observe gets every good message before it is stored; it must not keep the frames.
	Observe func(frames []collector.Frame, now time.Time)
	// Role knows the role of a node whose line does not say it; nil: not known.
	Role func(topology.NodeID) topology.Role
	// Roles are those of the configured nodes; what a frame says of its node's role counts only for others.
	Roles map[topology.NodeID]topology.Role
	// Oldest is the age from which frames are refused; 0: none is too old.
	Oldest time.Duration
	// Term is Order.Term of what is sent now; nil: 0.
	Term func() uint64
	Log  *slog.Logger // nil: discard
}

// Hub holds the agents' connections. All methods may be called concurrently.
type Hub struct {
	intake
	cfg        Config
	stats      Stats
	sockets    *socket.Set
	forwarders bool // some are configured, so that no other node is one
	clients    *clientLists

	mu        sync.RWMutex                    // guards everything that follows
	routes    map[topology.NodeID]*connection // who reaches a node: its agent, or the agent that brought its last frame
	open      map[*connection]struct{}
	senders   map[string]*sender // by the token's name
	intruders map[topology.NodeID]*Intruder
	writers   map[topology.NodeID]lineWriter // of nodes that lines were brought of
	closed    bool
}

// ErrNoAgent says that no agent of the node is connected.
var ErrNoAgent = errors.New("no agent connected")

// ErrClosed says that the hub was closed.
var ErrClosed = errors.New("ingest is closed")

// New returns a hub without connections.
func New(cfg Config) *Hub {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Hub{cfg: cfg, routes: map[topology.NodeID]*connection{}, open: map[*connection]struct{}{},
		senders: map[string]*sender{}, intruders: map[topology.NodeID]*Intruder{},
		writers: map[topology.NodeID]lineWriter{}, clients: newClientLists(cfg.Roles)}
	h.intake.open(&h.cfg, &h.stats)
	h.sockets = socket.NewSet(socket.Settings{SilentAfter: silentAfter, PingEvery: pingEvery})
	for _, r := range cfg.Roles {
		h.forwarders = h.forwarders || r == topology.Forwarder
	}
	return h
}

// Serve takes over the request of an agent that was let in. It returns when the connection is up or refused.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, by Speaker) {
	ws, err := h.sockets.Upgrade(w, r)
	if err != nil {
		h.cfg.Log.Warn("an agent's connection was not a WebSocket", "token", by.Name, "remote", r.RemoteAddr, "err",
			err)
		return
	}
	link := &direct{Conn: ws, hub: h, freed: make(chan struct{}, 1)}
	c := newConnection(h, link, by, r.RemoteAddr)
	link.by, ws.Large = c.sender, link.large
	ws.SetValid(by.Valid)
	if !h.enter(c) {
		c.refused(wire.Reject{Code: wire.RejectBusy, Text: "the daemon is stopping"})
		ws.Finish()
		return
	}
	go func() { // net/http's own goroutine, and what it holds, ends with the request
		defer h.wait.Done()
		c.run(link)
		h.leave(c)
	}()
}

// enter lists a connection, which leave takes out again; false when the hub is closed.
func (h *Hub) enter(c *connection) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.open[c] = struct{}{}
	h.wait.Add(1)
	h.stats.connections.Add(1)
	return true
}

func (h *Hub) leave(c *connection) {
	h.stats.connections.Add(-1)
	h.forget(c)
}

func (h *Hub) forget(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c)
	if h.routes[c.hello.Node] == c {
		delete(h.routes, c.hello.Node)
	}
	for n := range c.nodes {
		if h.routes[n] == c {
			delete(h.routes, n)
		}
	}
}

// Order sends an order to the agent of a node and waits for its answer, ctx or the connection's
// end. An agent that refuses answers OK false, which is not an error here. Errors wrap ErrNoAgent,
// ctx's error, or say that the connection was lost before the answer: then it is not known whether
// the order was carried out, and it may be repeated under the same ID.
func (h *Hub) Order(ctx context.Context, node topology.NodeID, o wire.Order) (wire.OrderResult, error) {
	h.mu.Lock()
	c := h.routes[node]
	h.mu.Unlock()
	if c == nil {
		return wire.OrderResult{}, fmt.Errorf("order %s to %s: %w", o.ID, node, ErrNoAgent)
	}
	h.stats.orders.Add(1)
	if h.cfg.Term != nil {
		o.Term = h.cfg.Term()
	}
	res, err := c.order(ctx, o)
	if err != nil {
		h.stats.ordersFailed.Add(1)
		return res, fmt.Errorf("order %s to %s: %w", o.ID, node, err)
	}
	return res, nil
}

// Connected says whether an order to the node could be sent.
func (h *Hub) Connected(node topology.NodeID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.routes[node] != nil
}

// HasAgent says whether a node's own agent is connected.
func (h *Hub) HasAgent(node topology.NodeID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.routes[node]
	return c != nil && c.hello.Node == node
}

// Close ends every connection and waits for them.
func (h *Hub) Close() {
	h.mu.Lock()
	if !h.closed {
		close(h.stopping)
	}
	h.closed = true
	for c := range h.open {
		c.link.Close()
	}
	h.mu.Unlock()
	h.stop()
	h.sockets.Close()
	h.wait.Wait()
}

// Stats counts what went through the hub since it was made.
type Stats struct {
	connections           atomic.Int64
	messages, frames      atomic.Uint64
	bytes, droppedSamples atomic.Uint64
	rejected, storeErrors atomic.Uint64
	refusedFrames         atomic.Uint64
	secondSpeakers        atomic.Uint64
	routes                routeStats
	orders, ordersFailed  atomic.Uint64
	lines, badLines       atomic.Uint64
	unknownFields         atomic.Uint64
}

// routeStats count what was left out of lists: routes that a node cannot know, and clients beyond those there can be.
type routeStats struct{ foreign, dropped atomic.Uint64 }

// WriteMetrics writes the hub's counters in Prometheus text format.
func (h *Hub) WriteMetrics(w io.Writer) {
	s := &h.stats
	metrics.WriteGaugeUint64(w, "fairway_ingest_connections", uint64(max(s.connections.Load(), 0)))
	metrics.WriteCounterUint64(w, "fairway_ingest_messages_total", s.messages.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_frames_total", s.frames.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_bytes_total", s.bytes.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_dropped_samples_total", s.droppedSamples.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_refused_frames_total", s.refusedFrames.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_second_speakers_total", s.secondSpeakers.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_foreign_routes_total", s.routes.foreign.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_dropped_clients_total", s.routes.dropped.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_slow_appends_total", h.appends.slow.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_rejected_total", s.rejected.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_store_errors_total", s.storeErrors.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_lines_total", s.lines.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_bad_lines_total", s.badLines.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_unknown_fields_total", s.unknownFields.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_orders_total", s.orders.Load())
	metrics.WriteCounterUint64(w, "fairway_ingest_orders_failed_total", s.ordersFailed.Load())
}
