package swarm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"fairway/collector/gather"
	"fairway/collector/topology"
	"fairway/webui/access"
)

// inside are gatherers in the process of their nodes, which reach them through memory: the daemon has the same
// connections, channels and seals as from gatherers of their own, and the machine is spared the nodes' sockets.
type inside struct {
	listeners map[string]*pipes // by HOST:PORT
	urls      []string
	stop      func()
}

// startInside starts the gatherers of a part, numbered from first.
func startInside(ctx context.Context, secret, daemon string, first, count int) (in *inside, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	in = &inside{listeners: map[string]*pipes{}}
	in.stop = func() {
		cancel()
		for _, l := range in.listeners {
			l.Close()
		}
		running.Wait()
	}
	e := access.Enrolment{Secrets: func() ([]string, error) { return []string{secret}, nil }}
	var gatherers []*gather.Gatherer
	for i := range count {
		name := fmt.Sprintf("gather%03d", first+i)
		token, err := e.NodeToken(topology.NodeID(name), time.Now().Add(-time.Minute))
		if err != nil {
			in.stop()
			return nil, err
		}
		g := gather.New(gather.Config{Node: topology.NodeID(name), Daemons: []string{daemon}, Token: token, Nodes: 4096,
			Log: slog.New(slog.DiscardHandler)})
		l := newPipes(name + ":80")
		server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
		running.Go(func() { g.Run(ctx) })
		running.Go(func() { _ = server.Serve(l) }) // ends with its listener
		in.listeners[l.name], in.urls = l, append(in.urls, "ws://"+name)
		gatherers = append(gatherers, g)
	}
	until := time.Now().Add(connectWithin)
	for _, g := range gatherers { // a node that comes too early goes another way
		for !g.State().Connected {
			if err := pause(ctx, 50*time.Millisecond); err != nil || time.Now().After(until) {
				in.stop()
				return nil, errors.Join(err, fmt.Errorf("a gatherer did not reach %s within %s", daemon, connectWithin))
			}
		}
	}
	return in, nil
}

// dial reaches a gatherer of this process; ok is false for other addresses.
func (in *inside) dial(ctx context.Context, addr string) (c net.Conn, ok bool, err error) {
	l := in.listeners[addr]
	if l == nil {
		return nil, false, nil
	}
	c, err = l.dial(ctx)
	return c, true, err
}

// pipes is a listener in memory.
type pipes struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes(name string) *pipes {
	return &pipes{name: name, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	mine, its := net.Pipe()
	select {
	case p.conns <- its:
		return mine, nil
	case <-p.closed:
		return nil, errors.New("the gatherer has ended")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return p }

// Network and String implement net.Addr.
func (p *pipes) Network() string { return "memory" }
func (p *pipes) String() string  { return p.name }
