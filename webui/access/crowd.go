package access

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"fairway/webui/access/budget"
)

// Crowd bounds connections over all listeners that share it: each takes a file, and without files the store cannot
// write. One address, or one user of the unix socket, has three quarters of them; root and the daemon's own user have
// what there is.
type Crowd struct {
	all, each int
	limits    *budget.Budget
	log       *slog.Logger
	own       uint32

	mu    sync.Mutex // guards everything that follows
	taken int
	by    map[string]int
}

// Crowd lets so many connections in.
func (g *Gate) Crowd(all int, log *slog.Logger) *Crowd {
	return &Crowd{all: all, each: max(all*3/4, 1), limits: g.Budget, log: log, own: g.own, by: map[string]int{}}
}

// Bound closes what a listener accepts beyond the bounds.
func (c *Crowd) Bound(l net.Listener) net.Listener { return &crowded{l, c} }

// enter counts a connection of somebody; false without a free place. Chosen are those who have no bound of their own
// and the last places.
func (c *Crowd) enter(who string, chosen bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	if !chosen {
		all -= c.all / keptOf
	}
	if c.taken >= all || !chosen && c.by[who] >= c.each {
		return false
	}
	c.taken++
	c.by[who]++
	return true
}

// keptOf is of how many connections one is kept for the chosen.
const keptOf = 16

func (c *Crowd) leave(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken--
	if c.by[who]--; c.by[who] <= 0 {
		delete(c.by, who)
	}
}

// crowded is a listener of a crowd.
type crowded struct {
	net.Listener
	crowd *Crowd
}

func (l *crowded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who, chosen := l.crowd.of(conn)
		if l.crowd.enter(who, chosen) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { l.crowd.leave(who) })}, nil
		}
		conn.Close()
		err = l.crowd.limits.Refuse(budget.Connections, fmt.Sprintf("%s has too many connections, or all together have",
			who), time.Second)
		l.crowd.log.Warn("a connection was closed at once; more are allowed by LimitNOFILE= of the unit", "err", err)
	}
}

// of says whose a connection is.
func (c *Crowd) of(conn net.Conn) (who string, chosen bool) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return addressOf(conn.RemoteAddr().String()), false
	}
	p, err := peerOf(u)
	if err != nil {
		return "unix", false
	}
	return fmt.Sprint("uid", p.uid), p.uid == 0 || p.uid == c.own
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// SetWriteBuffer bounds what the kernel keeps for who does not read, as of the connection itself.
func (c *counted) SetWriteBuffer(bytes int) error {
	if b, ok := c.Conn.(interface{ SetWriteBuffer(int) error }); ok {
		return b.SetWriteBuffer(bytes)
	}
	return nil
}
