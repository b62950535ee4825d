package socket

import (
	"net"
	"net/netip"
	"sync"
)

// Places bounds connections over all listeners that share it: each takes a file, and a process without files does not
// work. One address, or whoever else a connection is of, has three quarters of the places; the last ones are for the
// chosen, who have no bound of their own.
type Places struct {
	all, each int

	mu    sync.Mutex // guards everything that follows
	taken int
	by    map[string]int
}

// NewPlaces returns so many places.
func NewPlaces(all int) *Places {
	return &Places{all: all, each: max(all*3/4, 1), by: map[string]int{}}
}

// keptOf is of how many places one is kept for the chosen.
const keptOf = 16

// Enter takes a place for somebody; false without a free one.
func (p *Places) Enter(who string, chosen bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	if !chosen {
		all -= p.all / keptOf
	}
	if p.taken >= all || !chosen && p.by[who] >= p.each {
		return false
	}
	p.taken++
	p.by[who]++
	return true
}

// Leave gives a place back.
func (p *Places) Leave(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[who]--; p.by[who] <= 0 {
		delete(p.by, who)
	}
}

// Bound closes what a listener accepts beyond the places. of says whose a connection is, refused hears of each
// that is closed.
func (p *Places) Bound(l net.Listener, of func(net.Conn) (who string, chosen bool),
	refused func(who string)) net.Listener {
	return &bounded{l, p, of, refused}
}

type bounded struct {
	net.Listener
	places  *Places
	of      func(net.Conn) (who string, chosen bool)
	refused func(who string)
}

func (l *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who, chosen := l.of(conn)
		if l.places.Enter(who, chosen) {
			return &Placed{Conn: conn, leave: sync.OnceFunc(func() { l.places.Leave(who) })}, nil
		}
		conn.Close()
		l.refused(who)
	}
}

// Placed is a connection that gives its place back when it is closed.
type Placed struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *Placed) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// SetWriteBuffer bounds what the kernel keeps for who does not read, as of the connection itself.
func (c *Placed) SetWriteBuffer(bytes int) error {
	if b, ok := c.Conn.(interface{ SetWriteBuffer(int) error }); ok {
		return b.SetWriteBuffer(bytes)
	}
	return nil
}

// AddressOf is a remote address without its port; of IPv6 the network of one site's host, which has as many addresses
// as it likes.
func AddressOf(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is4() || ip.IsLoopback() {
		return ip.String()
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return p.String()
}
