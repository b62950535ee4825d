package webui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Door is how a request came in.
type Door uint8

// The kinds of doors.
const (
	DoorUnix   Door = 1 << iota // the socket on this host, by peer credentials
	DoorTCP                     // browsers, terminals and machines
	DoorIngest                  // agents alone
)

func (d Door) String() string {
	switch d {
	case DoorUnix:
		return "unix"
	case DoorTCP:
		return "tcp"
	case DoorIngest:
		return "ingest"
	}
	return "none"
}

// peer is the process at the other end of the unix socket, as the kernel says.
type peer struct {
	uid, gid uint32
	groups   []uint32 // supplementary
}

type peerKey struct{}

// withPeer notes the peer's credentials once per connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	p, err := peerOf(u)
	if err != nil {
		return ctx // nobody: the gate refuses
	}
	return context.WithValue(ctx, peerKey{}, p)
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

// peerGroups asks the kernel (SO_PEERGROUPS): os/user without CGO does not know the supplementary
// groups of a directory service.
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
