package testbed

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"fairway/collector/topology"
)

// diodPort is the registered port of 9P.
const diodPort = 564

// startForwarders starts a diod on every forwarder and waits until all of them speak.
func (tb *Testbed) startForwarders(ctx context.Context) error {
	var forwarders []*node
	for i := range tb.cfg.Forwarders {
		n, err := tb.find(tb.cfg.forwarder(i).Node())
		if err != nil {
			return err
		}
		n.port = diodPort
		if !tb.cfg.Root {
			n.addr = tb.HostAddr()
			if n.port, err = freePort(); err != nil {
				return err
			}
		}
		forwarders = append(forwarders, n)
	}
	return eachNode(forwarders, func(n *node) error { return tb.startDiod(ctx, n) })
}

// startDiod starts the diod of one forwarder and waits until it answers a 9P version request.
func (tb *Testbed) startDiod(ctx context.Context, n *node) error {
	f := topology.ForwarderID(n.id)
	addr := tb.ForwarderAddr(f)
	diod, err := lookProgram("diod")
	if err != nil {
		return err
	}
	// SIGPIPE must be ignored: diod dies of it when a client goes with replies pending. "ctl" must
	// be exported by name. -w cannot be used for the number of workers (it is two options at once).
	p, err := tb.launch(n, "diod", "env", "--ignore-signal=PIPE", diod, "-f", "-c", "/dev/null", "-n", "-N",
		"--nwthreads", strconv.Itoa(tb.cfg.Threads), "-l", addr, "-e", tb.Attach(), "-e", "ctl", "-L", "stderr")
	if err != nil {
		return err
	}
	tb.mu.Lock()
	tb.diods[f] = p
	tb.mu.Unlock()
	return p.awaitReady(ctx, func(ctx context.Context) error { return speak9P(ctx, addr) })
}

// speak9P dials a 9P server and exchanges versions with it.
func speak9P(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	const version, tVersion, noTag, msize = "9P2000.L", 100, 0xffff, 8192
	msg := binary.LittleEndian.AppendUint32(nil, uint32(4+1+2+4+2+len(version)))
	msg = append(msg, tVersion)
	msg = binary.LittleEndian.AppendUint16(msg, noTag)
	msg = binary.LittleEndian.AppendUint32(msg, msize)
	msg = binary.LittleEndian.AppendUint16(msg, uint16(len(version)))
	msg = append(msg, version...)
	if _, err := conn.Write(msg); err != nil {
		return err
	}
	reply := make([]byte, len(msg))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return fmt.Errorf("%s does not answer a 9P version request: %w", addr, err)
	}
	if got := string(reply[len(reply)-len(version):]); got != version {
		return fmt.Errorf("%s speaks %q, not %s", addr, got, version)
	}
	return nil
}

// freePort returns a port of 127.0.0.1 that nobody listened on a moment ago.
func freePort() (uint16, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port), nil
}
