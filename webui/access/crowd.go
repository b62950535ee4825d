package access

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"fairway/collector/socket"
	"fairway/webui/access/budget"
)

// Crowd bounds connections over all listeners that share it: each takes a file, and without files the store cannot
// write. One address, or one user of the unix socket, has three quarters of them; root and the daemon's own user have
// what there is.
type Crowd struct {
	places *socket.Places
	limits *budget.Budget
	log    *slog.Logger
	own    uint32
}

// Crowd lets so many connections in.
func (g *Gate) Crowd(all int, log *slog.Logger) *Crowd {
	return &Crowd{places: socket.NewPlaces(all), limits: g.Budget, log: log, own: g.own}
}

// Bound closes what a listener accepts beyond the bounds.
func (c *Crowd) Bound(l net.Listener) net.Listener {
	return c.places.Bound(l, c.of, func(who string) {
		err := c.limits.Refuse(budget.Connections, fmt.Sprintf("%s has too many connections, or all together have",
			who), time.Second)
		c.log.Warn("a connection was closed at once; more are allowed by LimitNOFILE= of the unit", "err", err)
	})
}

// of says whose a connection is.
func (c *Crowd) of(conn net.Conn) (who string, chosen bool) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return socket.AddressOf(conn.RemoteAddr().String()), false
	}
	p, err := peerOf(u)
	if err != nil {
		return "unix", false
	}
	return fmt.Sprint("uid", p.uid), p.uid == 0 || p.uid == c.own
}
