package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fairway/collector/unixsocket"
	"fairway/webui/access"
)

// openListener is an address that was taken and, once the daemon answers there, its server.
type openListener struct {
	kind     access.Listener
	listener net.Listener
	server   *http.Server
}

// listen takes the addresses, so that a wrong one is known at once.
func (d *daemon) listen() error {
	for _, l := range []struct {
		setting, addr string
		kind          access.Listener
		open          func(string) (net.Listener, error)
	}{
		{"listen.http", d.conf.Listen.HTTP, access.TCP, listenTCP},
		{"listen.agents", d.conf.Listen.Agents, access.IngestPort, listenTCP},
		{"listen.socket", d.conf.Listen.Socket, access.UnixSocket, listenSocket},
	} {
		if l.addr == "" {
			continue
		}
		listener, err := l.open(l.addr)
		if err != nil {
			return fmt.Errorf("%s = %q: %w", l.setting, l.addr, err)
		}
		d.listeners = append(d.listeners, &openListener{kind: l.kind, listener: listener})
	}
	return nil
}

// addr is where a kind of listener answers; "" without one.
func (d *daemon) addr(kind access.Listener) string {
	for _, o := range d.listeners {
		if o.kind == kind {
			return o.listener.Addr().String()
		}
	}
	return ""
}

// browserURL is where a browser reaches the daemon, as far as it knows; "" where it cannot.
func (d *daemon) browserURL() string {
	if at := d.conf.Access.OIDC.URL; at != "" {
		return strings.TrimSuffix(at, "/")
	}
	host, port, err := net.SplitHostPort(d.addr(access.TCP))
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() { // all addresses of this host: by one of its names
		host = "localhost"
		if len(d.conf.Listen.Hosts) > 0 {
			host = d.conf.Listen.Hosts[0]
		}
	}
	if d.keys != nil {
		return "https://" + net.JoinHostPort(host, port)
	}
	return "http://" + net.JoinHostPort(host, port)
}

func listenTCP(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address is in use; is another fairwayd running? (%w)", err)
	}
	return l, err
}

// listenSocket takes a unix socket. Everybody may connect: who asks is known from the kernel and decides
// what is answered.
func listenSocket(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l, err := unixsocket.Listen(path, 0o666)
	if errors.Is(err, unixsocket.ErrAnswers) {
		return nil, errors.New("another fairwayd answers there")
	}
	return l, err
}

// serve answers on every address that was taken.
func (d *daemon) serve(crowd *access.Crowd) {
	for _, o := range d.listeners {
		o.listener = crowd.Bound(o.listener)
		o.server = d.web.HTTP(o.kind)
		d.tasks.Go(func() {
			if err := d.serveOn(o); !errors.Is(err, http.ErrServerClosed) &&
				!errors.Is(err, net.ErrClosed) {
				d.failed <- fmt.Errorf("serving %s: %w", o.listener.Addr(), err)
			}
		})
		d.log.Info("listening", "addr", o.listener.Addr().String())
	}
}

// serveOn answers on one address, over TCP by TLS where there is a certificate. Agents speak WebSocket alone, people
// HTTP/2 too.
func (d *daemon) serveOn(o *openListener) error {
	switch {
	case d.keys == nil || o.kind == access.UnixSocket:
		return o.server.Serve(o.listener)
	case o.kind == access.IngestPort:
		o.server.TLSConfig = serverTLS(d.keys, "http/1.1")
	default:
		o.server.TLSConfig = serverTLS(d.keys, "h2", "http/1.1")
	}
	return o.server.ServeTLS(o.listener, "", "")
}
