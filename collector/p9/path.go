package p9

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Path is what the kernel has counted of a TCP connection since it began, in segments that carry data.
type Path struct {
	Sent   uint64
	Resent uint64 // of these: sent again
	// Received counts what came, Disordered what of it came before something that was sent earlier, as what
	// follows a lost segment does.
	Received, Disordered uint64
}

// Path returns what the kernel counts of the connection; ok is false where it counts nothing: no TCP, or closed.
func (c *Client) Path() (p Path, ok bool) {
	conn, isSocket := c.conn.(syscall.Conn)
	if !isSocket {
		return p, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return p, false
	}
	var info *unix.TCPInfo
	if raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}) != nil || err != nil {
		return p, false
	}
	return Path{Sent: uint64(info.Data_segs_out), Resent: uint64(info.Total_retrans),
		Received: uint64(info.Data_segs_in), Disordered: uint64(info.Rcv_ooopack)}, true
}
