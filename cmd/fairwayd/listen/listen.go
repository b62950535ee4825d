// Package listen opens the daemon's addresses.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"fairway/cmd/fairwayd/config"
	"fairway/cmd/program"
	"fairway/collector/unixsocket"
	"fairway/webui/access"
	"fairway/webui/api"
)

// Listeners are the addresses of the settings that were taken.
type Listeners struct {
	conf *config.Listen
	log  *slog.Logger
	keys *config.Watched[keys] // nil: no TLS
	all  []*openListener

	tasks  sync.WaitGroup
	failed chan error
}

// openListener is an address that was taken and, once the daemon answers there, its server.
type openListener struct {
	kind     access.Listener
	listener net.Listener
	server   *http.Server
}

// Open reads the keys and takes the addresses, so that a wrong one is known at once.
func Open(conf *config.Listen, log *slog.Logger) (_ *Listeners, err error) {
	l := &Listeners{conf: conf, log: log, failed: make(chan error, 3)}
	if l.keys, err = watchKeys(&conf.TLS, log); err != nil {
		return nil, fmt.Errorf("%w: %w", program.ErrSettings, err)
	}
	for _, a := range []struct {
		setting, addr string
		kind          access.Listener
		open          func(string) (net.Listener, error)
	}{
		{"listen.http", conf.HTTP, access.TCP, TCP},
		{"listen.agents", conf.Agents, access.IngestPort, TCP},
		{"listen.socket", conf.Socket, access.UnixSocket, listenSocket},
	} {
		if a.addr == "" {
			continue
		}
		listener, err := a.open(a.addr)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("%s = %q: %w", a.setting, a.addr, err)
		}
		l.all = append(l.all, &openListener{kind: a.kind, listener: listener})
	}
	return l, nil
}

// Encrypted says whether TLS is spoken.
func (l *Listeners) Encrypted() bool { return l.keys != nil }

// Failed has the error of a listener that closed by itself.
func (l *Listeners) Failed() <-chan error { return l.failed }

// Addr is where a kind of listener answers; "" without one.
func (l *Listeners) Addr(kind access.Listener) string {
	for _, o := range l.all {
		if o.kind == kind {
			return o.listener.Addr().String()
		}
	}
	return ""
}

// BrowserURL is where a browser reaches the daemon, as far as it knows; "" where it cannot.
func (l *Listeners) BrowserURL() string {
	host, port, err := net.SplitHostPort(l.Addr(access.TCP))
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() { // all addresses of this host: by one of its names
		host = "localhost"
		if len(l.conf.Hosts) > 0 {
			host = l.conf.Hosts[0]
		}
	}
	if l.keys != nil {
		return "https://" + net.JoinHostPort(host, port)
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Check says what is in clear text and when the certificate ends.
func (l *Listeners) Check(context.Context) api.Check {
	return checkEncryption(l.conf, l.keys, time.Now())
}

// TCP takes an address.
func TCP(addr string) (net.Listener, error) {
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

// Serve answers on every address that was taken, by the server of its kind.
func (l *Listeners) Serve(server func(access.Listener) *http.Server, crowd *access.Crowd) {
	for _, o := range l.all {
		o.listener = crowd.Bound(o.listener)
		o.server = server(o.kind)
		l.tasks.Go(func() {
			if err := l.serveOn(o); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				l.failed <- fmt.Errorf("serving %s: %w", o.listener.Addr(), err)
			}
		})
		l.log.Info("listening", "addr", o.listener.Addr().String())
	}
}

// serveOn answers on one address, over TCP by TLS where there is a certificate. Agents speak WebSocket alone, people
// HTTP/2 too.
func (l *Listeners) serveOn(o *openListener) error {
	switch {
	case l.keys == nil || o.kind == access.UnixSocket:
		return o.server.Serve(o.listener)
	case o.kind == access.IngestPort:
		o.server.TLSConfig = serverTLS(l.keys, "http/1.1")
	default:
		o.server.TLSConfig = serverTLS(l.keys, "h2", "http/1.1")
	}
	return o.server.ServeTLS(o.listener, "", "")
}

// Close takes no further connections; Shutdown ends those that are open.
func (l *Listeners) Close() {
	for _, o := range l.all {
		_ = o.listener.Close() // its server closes it a second time
	}
}

// shutdownWithin bounds how long open requests are waited for.
const shutdownWithin = 5 * time.Second

// Shutdown waits a while for the requests that are open and cuts off the others.
func (l *Listeners) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWithin)
	defer cancel()
	for _, o := range l.all {
		if o.server == nil {
			continue
		}
		if err := o.server.Shutdown(ctx); err != nil {
			l.log.Warn("open requests were cut off", "addr", o.listener.Addr().String(), "err", err)
			_ = o.server.Close()
		}
	}
	l.tasks.Wait()
}
