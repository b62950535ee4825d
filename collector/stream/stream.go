// Package stream is the agent's end of its connection to the daemon: spool, send, replay, take orders. No second is
// lost while the daemon is away.
//
// Every message goes to the spool first, is sent from it in order, and is forgotten only when the daemon acknowledges
// it. After a lost connection sending starts again behind the last acknowledgement: the daemon may see a message twice
// and takes it as one, by node and time.
package stream

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/collector/wire"
)

const (
	ingestPath   = "/api/v1/ingest"
	minBackoff   = 500 * time.Millisecond
	maxBackoff   = 15 * time.Second
	dialTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	pingPeriod   = 10 * time.Second
	pongWait     = 30 * time.Second
	// maxInFlight bounds the messages sent and not acknowledged: a slow daemon is not flooded.
	maxInFlight = 256
	// maxFromDaemon bounds a message of the daemon, bytes: an order is the largest.
	maxFromDaemon = wire.MaxBodyBytes + 64<<10
	// maxHandshake bounds what the other end may say before the stream is up: certificates and a response.
	maxHandshake = 1 << 20
)

// Queue is what waits to be sent: messages (wire.Frames, encoded) numbered from 1, kept until they are acknowledged.
// A Spool is one.
type Queue interface {
	// Instance names the numbering.
	Instance() string
	// Acked is the last acknowledged number, Ack moves it on, Pending counts what is behind it.
	Acked() uint64
	Ack(seq uint64)
	Pending() uint64
	// Next returns the first message after a number, in buf grown as needed; ok is false when none has come yet.
	Next(after uint64, buf []byte) (seq uint64, msg []byte, ok bool)
	// More receives when messages may have come since the last receive.
	More() <-chan struct{}
}

// Client is an agent's side of the stream. Set the fields, then Run.
type Client struct {
	// URL is ws://HOST:PORT, wss://HOST:PORT (either with a path, else /api/v1/ingest) or
	// unix:///PATH of the daemon's socket.
	URL   string
	Token string      // bearer token; never logged
	TLS   *tls.Config // for wss; nil is the system's
	Node  topology.NodeID
	Role  topology.Role
	Spool Queue
	// Orders has a handler for every kind of order this agent carries out; any other is refused.
	Orders map[string]OrderHandler
	// Fence refuses orders of daemons that lead no more; nil: orders have no term.
	Fence *Fence
	Log   *slog.Logger // nil is slog.Default
	// Dial replaces the network, for tests; nil is net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	desk desk

	mu    sync.Mutex // guards state
	state State
}

// State is how the stream is doing.
type State struct {
	Connected bool
	Err       string // why not connected, or the last refusal
	Refused   uint64 // messages the daemon will never take
	Breaks    uint64 // connections that ended before the client did
}

// State returns how the stream is doing now.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Run keeps the stream up until ctx is done. It waits for the orders in progress, whose context
// ends with ctx.
func (c *Client) Run(ctx context.Context) error {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	target, err := parseURL(c.URL)
	if err != nil {
		return err
	}
	c.desk.open(c.Orders, c.Fence)
	defer c.desk.wait()
	backoff := minBackoff
	for {
		worked, err := c.session(ctx, target)
		if ctx.Err() != nil {
			return nil
		}
		c.lost(err)
		if worked {
			backoff = minBackoff
		}
		// Half of the pause is random: thousands of agents lose a daemon at the same instant.
		pause := backoff/2 + rand.N(backoff)
		backoff = min(2*backoff, maxBackoff)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Drain waits until everything spooled is acknowledged, or ctx is done.
func (c *Client) Drain(ctx context.Context) error {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for {
		n := c.Spool.Pending()
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d messages stay in the spool for the next start: %w", n, ctx.Err())
		case <-t.C:
		}
	}
}

// target is where to dial.
type target struct {
	url     string // for the handshake
	network string // "unix", or "" for the URL's own
	addr    string
}

func parseURL(s string) (target, error) {
	u, err := url.Parse(s)
	if err != nil {
		return target{}, fmt.Errorf("daemon address: %w", err)
	}
	switch u.Scheme {
	case "unix":
		if u.Host != "" || u.Path == "" {
			return target{}, fmt.Errorf("daemon address %q: want unix:///PATH with three slashes", s)
		}
		return target{url: "ws://localhost" + ingestPath, network: "unix", addr: u.Path}, nil
	case "ws", "wss":
		if u.Host == "" {
			return target{}, fmt.Errorf("daemon address %q: no host", s)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = ingestPath
		}
		return target{url: u.String()}, nil
	}
	return target{}, fmt.Errorf("daemon address %q: want ws://HOST:PORT, wss://HOST:PORT or unix:///PATH", s)
}

func (c *Client) dial(ctx context.Context, t target) (*websocket.Conn, error) {
	dialNet := c.Dial
	if dialNet == nil {
		dialNet = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	var early *handshaking
	d := websocket.Dialer{
		HandshakeTimeout: dialTimeout, TLSClientConfig: c.TLS, ReadBufferSize: 4096, WriteBufferSize: 4096,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if t.network != "" {
				network, addr = t.network, t.addr
			}
			conn, err := dialNet(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			early = &handshaking{Conn: conn}
			early.left.Store(maxHandshake)
			return early, nil
		},
	}
	head := http.Header{}
	if c.Token != "" {
		head.Set("Authorization", "Bearer "+c.Token)
	}
	conn, resp, err := d.DialContext(ctx, t.url, head)
	if err == nil {
		early.left.Store(math.MaxInt64)
		return conn, nil
	}
	if resp == nil {
		return nil, fmt.Errorf("daemon %s: %w", c.URL, err)
	}
	defer resp.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	what := "did not accept the stream"
	switch {
	case resp.StatusCode == http.StatusForbidden && c.Token == "":
		what = "wants a token ('fairwayd token NAME agent' makes one; name its file in [daemon] token_file)"
	case resp.StatusCode == http.StatusUnauthorized:
		what = "refused the token (set [daemon] token_file to this agent's own)"
	case resp.StatusCode == http.StatusForbidden:
		what = "does not let this token stream"
	}
	var problem struct{ Detail string } // RFC 9457
	if json.Unmarshal(why, &problem) == nil && problem.Detail != "" {
		why = []byte(problem.Detail)
	}
	return nil, fmt.Errorf("daemon %s %s: %s: %s", c.URL, what, resp.Status,
		topology.Clean(strings.TrimSpace(string(why))))
}

// handshaking is a connection whose other end has not shown yet what it is: the response to a handshake has no bound of
// its own.
type handshaking struct {
	net.Conn
	left atomic.Int64
}

func (h *handshaking) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if err == nil && h.left.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("the other end sent %d bytes and no answer to the handshake: not a fairway daemon",
			maxHandshake)
	}
	return n, err
}

// session is one connection's life. worked says that the daemon acknowledged something.
func (c *Client) session(ctx context.Context, daemon target) (worked bool, err error) {
	conn, err := c.dial(ctx, daemon)
	if err != nil {
		return false, err
	}
	l := newLink(conn, c.URL)
	s := &session{c: c, link: l, sent: c.Spool.Acked(), acks: make(chan uint64, 1), rejected: make(map[uint64]bool)}
	sctx, cancel := context.WithCancelCause(ctx)
	var reader sync.WaitGroup
	reader.Go(func() { cancel(s.read(ctx)) })
	err = s.write(sctx)
	if cause := context.Cause(sctx); cause != nil {
		err = cause // what the reader saw explains more than a write to a dead connection
	}
	cancel(nil)
	l.Close()
	reader.Wait()
	return s.worked, err
}

func (c *Client) up() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.Connected {
		c.Log.Info("streaming to the daemon", "daemon", c.URL, "spooled", c.Spool.Pending())
	}
	c.state.Connected, c.state.Err = true, ""
}

func (c *Client) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := "the connection ended"
	if err != nil && !errors.Is(err, context.Canceled) {
		text = err.Error()
	}
	if c.state.Connected {
		c.state.Breaks++
	}
	if c.state.Connected || c.state.Err != text { // a lasting absence is logged once
		c.Log.Warn("the daemon is away; seconds go to the spool", "err", text)
	}
	c.state.Connected, c.state.Err = false, text
}

func (c *Client) refused(r wire.Reject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Refused++
	c.state.Err = r.Error()
	c.Log.Error("the daemon will never take this message; going on without it", "err", r.Error())
}

// Probe says whether the daemon would take the stream: it connects and goes away again.
func (c *Client) Probe(ctx context.Context) error {
	t, err := parseURL(c.URL)
	if err != nil {
		return err
	}
	conn, err := c.dial(ctx, t)
	if err != nil {
		return err
	}
	return conn.Close()
}
