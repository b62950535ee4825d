package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"fairway/cmd/program"
	"fairway/collector/gather"
	"fairway/collector/socket"
	"fairway/collector/topology"
)

// gatherMemory is the memory limit of an agent that gathers; what waits is bounded besides.
const gatherMemory = 40 << 20

func (g *Gather) validate() error {
	switch {
	case g.Listen == "":
		return nil
	case (g.Certificate == "") != (g.Key == ""):
		return errors.New("gather.certificate and gather.key belong together")
	case g.MaxNodes < 1:
		return fmt.Errorf("gather.max_nodes = %d: want at least 1", g.MaxNodes)
	}
	if _, _, err := net.SplitHostPort(g.Listen); err != nil {
		return fmt.Errorf("gather.listen = %q: want HOST:PORT: %w", g.Listen, err)
	}
	return nil
}

// startGatherer listens for neighbours and carries their streams until stop is called; nil without [gather].
func startGatherer(ctx context.Context, c Config, log *slog.Logger) (g *gather.Gatherer, stop func(), err error) {
	if c.Gather.Listen == "" {
		return nil, func() {}, nil
	}
	daemonTLS, err := c.Daemon.tlsConfig()
	if err != nil {
		return nil, nil, err
	}
	token, err := c.token(ctx, daemonTLS)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", c.Gather.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("gather.listen: %w", err)
	}
	l = boundNeighbours(l, c.Gather.MaxNodes, log)
	if c.Gather.Certificate != "" {
		own := &Daemon{Certificate: c.Gather.Certificate, Key: c.Gather.Key}
		if _, err := own.pair(); err != nil {
			return nil, nil, errors.Join(err, l.Close())
		}
		l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.pair() }})
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(gatherMemory)
	}
	g = gather.New(gather.Config{Node: topology.NodeID(c.Node), Daemons: c.Daemon.addresses(), Token: token,
		TLS: daemonTLS, Nodes: c.Gather.MaxNodes, Log: log})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	server.SetKeepAlivesEnabled(false) // a request becomes a stream, or is refused
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	running.Go(func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("neighbours cannot connect any more", "err", err)
		}
	})
	log.Info("gathering neighbours' streams", "listen", l.Addr().String(), "max_nodes", c.Gather.MaxNodes)
	return g, func() { cancel(); server.Close(); running.Wait() }, nil
}

// ownFiles are those that an agent needs for itself: its sources, its spool, its own connections.
const ownFiles = 256

// boundNeighbours lets twice as many connections in as nodes, because one that comes again may do so before its old
// connection is gone, and at most as many as there are files for.
func boundNeighbours(l net.Listener, nodes int, log *slog.Logger) net.Listener {
	all := 2 * nodes
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(all+ownFiles) {
		all = max(int(files.Cur)-ownFiles, 1)
		log.Warn("this process has fewer files than gather.max_nodes may need; more by LimitNOFILE= of the unit",
			"files", files.Cur, "connections_at_most", all)
	}
	of := func(c net.Conn) (string, bool) { return socket.AddressOf(c.RemoteAddr().String()), false }
	return socket.NewPlaces(all).Bound(l, of, func(who string) {
		log.Warn("a connection was closed at once: its address has too many, or all together have", "from", who)
	})
}

// checkGatherers refuses settings of which no stream comes: a gatherer carries a node by the node's own token.
func (d *Daemon) checkGatherers(token string) error {
	if len(d.Gatherers) == 0 || stampedToken(token) {
		return nil
	}
	return fmt.Errorf("%w: daemon.gatherers needs a token of this node's own in daemon.token_file ('fairwayd enroll', "+
		"or daemon.join_file); a shared token or a certificate goes to the daemon alone", program.ErrSettings)
}
