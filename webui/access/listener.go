package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"fairway/collector/socket"
	"fairway/webui/access/budget"
)

// Listener is where a request came in, or a set of listeners.
type Listener uint8

// The kinds of listeners.
const (
	UnixSocket Listener = 1 << iota // the socket on this host, by peer credentials
	TCP                             // browsers, terminals and machines
	IngestPort                      // agents alone
	Peer                            // the other daemons of a cluster, which say who asks

	Everywhere = UnixSocket | TCP // but where agents alone are
)

// Names lists the listeners of a set.
func (l Listener) Names() (names []string) {
	for one := UnixSocket; one <= IngestPort; one <<= 1 {
		if l&one != 0 {
			names = append(names, one.String())
		}
	}
	return names
}

var listenerNames = map[Listener]string{UnixSocket: "unix", TCP: "tcp", IngestPort: "ingest", Peer: "peer"}

func (l Listener) String() string { return cmp.Or(listenerNames[l], "none") }

// peer is the process at the other end of the unix socket, as the kernel says.
type peer struct {
	uid, gid uint32
	groups   []uint32 // supplementary
	// name is asked once for a connection: a directory service may take a while.
	name func() string
}

type peerKey struct{}

// WithPeer notes the peer's credentials once per connection (http.Server.ConnContext).
func WithPeer(ctx context.Context, c net.Conn) context.Context {
	if of, ok := c.(*socket.Placed); ok {
		c = of.Conn
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	p, err := peerOf(u)
	if err != nil {
		return ctx // nobody: the gate refuses
	}
	return WithCredentials(ctx, p.uid, p.gid, p.groups...)
}

// WithCredentials notes who is at the other end of the unix socket.
func WithCredentials(ctx context.Context, uid, gid uint32, groups ...uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, &peer{uid: uid, gid: gid, groups: groups,
		name: sync.OnceValue(func() string { return userName(uid) })})
}

func peerOf(c *net.UnixConn) (*peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var p *peer
	var inner error
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			inner = err
			return
		}
		p = &peer{uid: cred.Uid, gid: cred.Gid}
		p.groups, inner = peerGroups(fd)
	})
	if err := errors.Join(err, inner); err != nil {
		return nil, err
	}
	return p, nil
}

// peerGroups asks the kernel (SO_PEERGROUPS): what the process has may differ from what the
// directory service has by now.
func peerGroups(fd uintptr) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch errno {
		case 0:
			return groups[:size/4], nil
		case syscall.ERANGE:
			groups = make([]uint32, size/4+1)
		default:
			return nil, fmt.Errorf("read the peer's groups: %w", errno)
		}
	}
}

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
