package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/collector/wire/seal"
)

const (
	// A gatherer that is frozen takes what is sent to it and passes nothing on: the daemon itself is asked for signs of
	// life, where it has sent nothing for longer than its acknowledgements of a steady stream are apart.
	gatheredLook = time.Second
	gatheredPing = 5 * time.Second
	gatheredWait = 10 * time.Second
	// homeAfter is after how long a stream that goes another way looks for the first gatherer again; up to as long
	// again is added at random.
	homeAfter = 2 * time.Minute
)

// errHome says that a gatherer before the one in use can be reached again.
var errHome = errors.New("a gatherer that is listed earlier can be reached again")

// sessions is a session each through the gatherers in turn, then one with the daemon itself. It ends when that has
// ended, or when an earlier gatherer can be reached again.
func (c *Client) sessions(ctx context.Context, daemon target) (worked bool, err error) {
	for i, at := range c.Gatherers {
		l, gerr := c.gatherer(ctx, at)
		if gerr == nil {
			var did bool
			did, gerr = c.home(ctx, l, at, c.Gatherers[:i])
			worked = worked || did
		}
		if ctx.Err() != nil || errors.Is(gerr, errHome) {
			return worked, gerr
		}
		c.avoids(gerr)
	}
	conn, err := c.dial(ctx, c.URL, daemon)
	if err != nil {
		return worked, err
	}
	did, err := c.home(ctx, newDirect(conn, c.URL), "", c.Gatherers)
	return worked || did, err
}

// home is a session that ends when one of the better gatherers can be reached.
func (c *Client) home(ctx context.Context, l link, via string, better []string) (worked bool, err error) {
	if len(better) == 0 {
		return c.session(ctx, l, via)
	}
	sctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-sctx.Done():
				return
			case <-time.After(homeAfter + rand.N(homeAfter)):
			}
			for _, at := range better {
				if l, err := c.gatherer(sctx, at); err == nil {
					l.Close()
					cancel(errHome)
					return
				}
			}
		}
	})
	worked, err = c.session(sctx, l, via)
	if errors.Is(context.Cause(sctx), errHome) {
		err = errHome
	}
	cancel(nil)
	looking.Wait()
	return worked, err
}

// gathered is a stream through a gatherer, sealed.
type gathered struct {
	conn *websocket.Conn
	at   string // the gatherer
	in   *seal.Half
	got  seal.Whole
	// last is when something of the daemon last came; Unix nanoseconds.
	last atomic.Int64

	mu  sync.Mutex // guards what follows: the reader answers the daemon's pings
	out *seal.Half
	buf []byte
}

// gatherer connects to a gatherer and proves who this node is to the daemon behind it.
func (c *Client) gatherer(ctx context.Context, at string) (link, error) {
	t, err := parseURL(at)
	if err != nil {
		return nil, err
	}
	offer, err := seal.NewOffer(c.Token)
	if err != nil {
		return nil, err
	}
	t.url = strings.TrimSuffix(t.url, ingestPath) + GatherPath
	if c.Daemon != "" {
		t.url += "?daemon=" + url.QueryEscape(c.Daemon)
	}
	// The token stays here.
	conn, err := Dialer{TLS: c.TLS, Dial: c.Dial}.dial(ctx, at, t)
	if err != nil {
		return nil, fmt.Errorf("gatherer: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	g := &gathered{conn: conn, at: at, got: seal.Whole{Most: maxFromDaemon}}
	conn.SetReadLimit(wire.MaxRecord)
	if err = sendTo(conn, offer.Bytes()); err == nil {
		err = g.begin(offer, c.Token)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("gatherer %s: %w", at, err)
	}
	return g, nil
}

func (g *gathered) begin(offer *seal.Offer, token string) error {
	answer, err := g.next()
	if err != nil {
		return err
	}
	if g.in, g.out, err = offer.Take(token, answer); err != nil {
		return err
	}
	return g.sealed(seal.Via, []byte(g.at[:min(len(g.at), 256)]))
}

// next reads what the gatherer brings next.
func (g *gathered) next() ([]byte, error) {
	if err := g.conn.SetReadDeadline(time.Now().Add(gatheredWait)); err != nil {
		return nil, err
	}
	kind, b, err := g.conn.ReadMessage()
	if bye := (*websocket.CloseError)(nil); errors.As(err, &bye) {
		return nil, errors.New(topology.Clean(bye.Text))
	}
	if err != nil {
		return nil, err
	}
	if kind != websocket.BinaryMessage {
		return nil, errors.New("text message: not a gatherer")
	}
	return b, nil
}

func (g *gathered) sealed(kind seal.Kind, text []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.buf = g.out.Seal(g.buf[:0], kind, text)
	return sendTo(g.conn, g.buf)
}

func (g *gathered) send(msg []byte) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.buf, err = g.out.Parts(g.buf, msg, func(sealed []byte) error { return sendTo(g.conn, sealed) })
	return err
}

func (g *gathered) read() ([]byte, error) {
	for {
		b, err := g.next()
		if err != nil {
			return nil, fmt.Errorf("gatherer %s: %w", g.at, err)
		}
		kind, text, err := g.in.Open(b)
		if err != nil {
			return nil, fmt.Errorf("gatherer %s: %w", g.at, err)
		}
		g.last.Store(time.Now().UnixNano())
		switch kind {
		case seal.Ping:
			if err := g.sealed(seal.Pong, nil); err != nil {
				return nil, err
			}
		case seal.Message, seal.Part:
			if msg, whole, err := g.got.Add(kind, text); whole || err != nil {
				return msg, err
			}
		}
	}
}

// ping asks only where no acknowledgement has shown lately that the way is whole.
func (g *gathered) ping() error {
	if time.Since(time.Unix(0, g.last.Load())) < gatheredPing {
		return nil
	}
	return g.sealed(seal.Ping, nil)
}

func (g *gathered) pingEvery() time.Duration { return gatheredLook }
func (g *gathered) bye() error               { return goodbye(g.conn) }
func (g *gathered) Close() error             { return g.conn.Close() }
