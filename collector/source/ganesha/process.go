package ganesha

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/prometheus/procfs"
)

// established is the state of a TCP connection in /proc/net/tcp.
const established = 1

// maxConnections bounds what is read of a process's network.
const maxConnections = 1 << 16

// readConnections lists the established TCP connections of a process's network.
func readConnections(proc string, pid int) ([]connection, error) {
	fs, err := procfs.NewFS(filepath.Join(proc, strconv.Itoa(pid)))
	if err != nil {
		return nil, fmt.Errorf("connections of process %d: %w", pid, err)
	}
	//lint:ignore SA1019 its successor asks the kernel, which answers of the caller's own network alone
	four, err := fs.NetTCP()
	//lint:ignore SA1019 as above
	six, bad := fs.NetTCP6()
	if err := errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("connections of process %d: %w", pid, err)
	}
	var out []connection
	for _, lines := range []procfs.NetTCP{four, six} {
		for _, l := range lines {
			local, ok := addrPort(l.LocalAddr, l.LocalPort)
			remote, also := addrPort(l.RemAddr, l.RemPort)
			if l.St == established && ok && also && len(out) < maxConnections {
				out = append(out, connection{local, remote})
			}
		}
	}
	return out, nil
}

func addrPort(ip net.IP, port uint64) (netip.AddrPort, bool) {
	a, ok := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a, uint16(port)), ok && port <= 1<<16-1
}
