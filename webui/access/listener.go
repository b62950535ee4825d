package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"fairway/collector/socket"
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

func (l Listener) String() string {
	switch l {
	case UnixSocket:
		return "unix"
	case TCP:
		return "tcp"
	case IngestPort:
		return "ingest"
	case Peer:
		return "peer"
	}
	return "none"
}

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
