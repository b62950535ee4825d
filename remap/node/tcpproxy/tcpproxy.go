// Package tcpproxy moves compute nodes whose file service is reached by TCP: clients on the node connect
// to a port of the node itself, and the proxy there passes their bytes on to one forwarder. A move
// drops the connections and sends the new ones to the new forwarder; the client must connect again
// by itself, as NFS, 9P and most file services do.
package tcpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/node"
)

// Options say where a proxy listens and where it leads at first.
type Options struct {
	Listen    string // HOST:PORT, on this node
	Forwarder topology.ForwarderID
	Addr      string       // HOST:PORT of the forwarder
	Log       *slog.Logger // nil: discard
}

// Proxy passes connections on. All methods may be called concurrently.
type Proxy struct {
	log      *slog.Logger
	listener net.Listener
	running  sync.WaitGroup
	ctx      context.Context
	stop     context.CancelFunc

	mu         sync.Mutex // guards everything that follows
	forwarder  topology.ForwarderID
	addr       string
	generation uint64
	pairs      map[*pair]struct{}
}

var _ node.Mover = (*Proxy)(nil)

// pair is a client's connection and the one to the forwarder.
type pair struct{ client, server net.Conn }

func (p *pair) close() {
	_ = p.client.Close()
	_ = p.server.Close()
}

// dialWithin bounds how long a forwarder may take to accept.
const dialWithin = 5 * time.Second

// Start listens. The caller must Close.
func Start(o Options) (*Proxy, error) {
	if o.Forwarder == "" {
		return nil, errors.New("proxy: the name of its first forwarder is missing")
	}
	if _, _, err := net.SplitHostPort(o.Addr); err != nil {
		return nil, fmt.Errorf("proxy: address of %s: %w", o.Forwarder, err)
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	r := &Proxy{log: o.Log, listener: l, forwarder: o.Forwarder, addr: o.Addr, generation: 1,
		pairs: map[*pair]struct{}{}}
	r.log = cmp.Or(r.log, slog.New(slog.DiscardHandler))
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.running.Go(r.accept)
	return r, nil
}

// Close ends every connection and waits.
func (r *Proxy) Close() error {
	r.stop()
	err := r.listener.Close()
	r.mu.Lock()
	for p := range r.pairs {
		p.close()
	}
	r.mu.Unlock()
	r.running.Wait()
	return err
}

func (r *Proxy) accept() {
	for {
		c, err := r.listener.Accept()
		if r.ctx.Err() != nil {
			return
		}
		if err != nil { // out of descriptors, most often: it passes
			r.log.Warn("proxy: a connection was not accepted", "err", err)
			pace.Wait(r.ctx, 100*time.Millisecond)
			continue
		}
		r.running.Go(func() { r.serve(c) })
	}
}

// serve passes one client's bytes on until either side ends.
func (r *Proxy) serve(client net.Conn) {
	defer client.Close()
	p, err := r.connect(client)
	if err != nil {
		r.log.Warn("proxy: the forwarder does not answer", "err", err)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(p.server, p.client) })
	both.Go(func() { pass(p.client, p.server) })
	both.Wait()
	p.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pairs, p)
}

// connect dials the forwarder of the moment; when that has changed meanwhile, the next one.
func (r *Proxy) connect(client net.Conn) (*pair, error) {
	for {
		r.mu.Lock()
		addr, generation := r.addr, r.generation
		r.mu.Unlock()
		server, err := dial(r.ctx, addr)
		if err != nil {
			return nil, err
		}
		p := &pair{client, server}
		r.mu.Lock()
		now, over := r.generation == generation, r.ctx.Err() != nil
		if now && !over {
			r.pairs[p] = struct{}{}
		}
		r.mu.Unlock()
		switch {
		case over:
			_ = server.Close()
			return nil, r.ctx.Err()
		case now:
			return p, nil
		}
		_ = server.Close()
	}
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialWithin}
	return d.DialContext(ctx, "tcp", addr)
}

// pass copies one direction. The end of one is passed on; an error ends both.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()
		_ = from.Close()
	}
}

// Move drops every connection and leads new ones to o.Forwarder. A forwarder that does not answer is
// refused, and nothing changes.
func (r *Proxy) Move(ctx context.Context, o wire.RemapOrder) (wire.RouteAnswer, error) {
	r.mu.Lock()
	there := r.forwarder == o.Forwarder && r.addr == o.Addr
	r.mu.Unlock()
	if there {
		return r.Route(ctx)
	}
	probe, err := dial(ctx, o.Addr)
	if err != nil {
		return wire.RouteAnswer{}, fmt.Errorf("%s at %s: %w", o.Forwarder, o.Addr, err)
	}
	_ = probe.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forwarder, r.addr = o.Forwarder, o.Addr
	r.generation++
	for p := range r.pairs {
		p.close()
		delete(r.pairs, p)
	}
	return wire.RouteAnswer{Forwarder: r.forwarder, Generation: r.generation}, nil
}

// Way is how it moves the node.
func (*Proxy) Way() string { return wire.WayProxy }

// Route says where new connections lead.
func (r *Proxy) Route(context.Context) (wire.RouteAnswer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return wire.RouteAnswer{Forwarder: r.forwarder, Generation: r.generation}, nil
}
