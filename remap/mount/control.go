package mount

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	report "fairway/collector/source/mount"
	"fairway/collector/unixsocket"
)

// control answers on the mount's unix socket: one JSON request a line, one JSON response a line. Only
// the mount's own user and root may connect (mode 0600).
type control struct {
	m        *Mount
	listener net.Listener
	end      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
}

const (
	maxRequest   = 4 << 10         // bytes of a request line
	idleTimeout  = time.Minute     // an idle connection is closed
	orderTimeout = 2 * time.Minute // a remap, with its drain
)

// listen opens the socket, replacing one that nobody listens on any more.
func listen(path string, m *Mount) (*control, error) {
	l, err := unixsocket.Listen(path, 0o600)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	c := &control{m: m, listener: l}
	c.end, c.stop = context.WithCancel(context.Background())
	c.running.Go(c.accept)
	return c, nil
}

func (c *control) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				c.m.opt.Log.Error("control socket", "err", err)
			}
			return
		}
		c.running.Go(func() { c.serve(conn) })
	}
}

func (c *control) serve(conn net.Conn) {
	defer conn.Close()
	cut := context.AfterFunc(c.end, func() { conn.Close() })
	defer cut()
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 0, 512), maxRequest)
	out := json.NewEncoder(conn)
	for {
		conn.SetDeadline(time.Now().Add(idleTimeout))
		if !lines.Scan() {
			if errors.Is(lines.Err(), bufio.ErrTooLong) {
				out.Encode(report.Response{Error: fmt.Sprintf("the request is longer than %d bytes", maxRequest)})
			}
			return
		}
		conn.SetDeadline(time.Now().Add(orderTimeout + idleTimeout))
		if out.Encode(c.answer(lines.Bytes())) != nil {
			return
		}
	}
}

// answer carries out one request.
func (c *control) answer(line []byte) report.Response {
	var q report.Request
	refuse := func(err error) report.Response { return report.Response{Error: err.Error(), Report: c.m.Report()} }
	if err := json.Unmarshal(line, &q); err != nil {
		return refuse(fmt.Errorf("request: %w", err))
	}
	switch q.Op {
	case "stats":
		return report.Response{Report: c.m.Report()}
	case "remap", "force":
		if _, _, err := net.SplitHostPort(q.Addr); err != nil {
			return refuse(fmt.Errorf("addr: %q: want HOST:PORT", q.Addr))
		}
		if allowed := c.m.opt.Allowed; allowed != nil {
			if err := allowed.Check(q.Addr); err != nil {
				return refuse(err)
			}
		}
		if q.Forwarder == "" {
			return refuse(errors.New("forwarder: the name of the new forwarder is missing"))
		}
		ctx, cancel := context.WithTimeout(c.end, orderTimeout)
		defer cancel()
		r, err := c.m.Remap(ctx, Target{q.Forwarder, q.Addr}, q.Op == "force")
		if err != nil {
			r.Error = err.Error()
		}
		return r
	}
	return refuse(fmt.Errorf("op: %q is not one of stats, remap, force", q.Op))
}

func (c *control) close() {
	c.stop()
	c.listener.Close()
	c.running.Wait()
}
