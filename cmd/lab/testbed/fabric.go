package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"fairway/collector/topology"
)

const (
	// hostName is this process's name on the testbed's network.
	hostName = "fairway-host"
	// schedulerName is the scheduler node's name.
	schedulerName = "sched"
	// firstNodeAddr is the first node's number in the subnet; the host has 1.
	firstNodeAddr = 2
	bridge        = "br0"
)

// testNetworks is set aside for network tests (RFC 2544); no site routes it.
var testNetworks = netip.MustParsePrefix("198.18.0.0/15")

// fabric is the network that joins the nodes: a bridge in a namespace of its own, with one link to
// this machine. The link, and so every trace of the network, goes when the namespace does.
type fabric struct {
	node   *node // holds the bridge; has no address
	subnet netip.Prefix
	host   netip.Addr
	uplink string // the host's end of its link
}

// startNodes powers the fabric, the forwarders, the compute nodes and the scheduler on.
func (tb *Testbed) startNodes(context.Context) error {
	names := make([]topology.NodeID, 0, tb.cfg.Forwarders+tb.cfg.ComputeNodes+tb.cfg.BackEnds+1)
	for i := range tb.cfg.Forwarders {
		names = append(names, tb.cfg.forwarder(i).Node())
	}
	for i := range tb.cfg.ComputeNodes {
		names = append(names, tb.cfg.compute(i))
	}
	for i := range tb.cfg.BackEnds {
		names = append(names, tb.cfg.backEnd(i))
	}
	for _, f := range tb.cfg.queued() {
		names = append(names, queueNode(f))
	}
	if tb.cfg.Slurm {
		names = append(names, schedulerName)
	}
	if tb.cfg.Root {
		n, err := startNode(tb.base, "fabric")
		if err != nil {
			return err
		}
		tb.net = &fabric{node: n, uplink: tb.inst.name + ".up"}
		tb.nodes = append(tb.nodes, n)
	}
	for _, name := range names {
		n := &node{id: name, base: tb.base}
		if tb.cfg.Root {
			var err error
			if n, err = startNode(tb.base, name); err != nil {
				return err
			}
		}
		tb.nodes = append(tb.nodes, n)
		if err := os.Mkdir(tb.NodeDir(name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// startFabric gives every node its address and joins them.
func (tb *Testbed) startFabric(ctx context.Context) error {
	if !tb.cfg.Root {
		return nil
	}
	members := tb.nodes[1:] // without the fabric itself
	err := withStateLock(tb.cfg.StateDir, func() error {
		var err error
		if tb.net.subnet, err = tb.chooseSubnet(); err != nil {
			return err
		}
		addr := tb.net.subnet.Addr().Next()
		tb.net.host = addr
		for _, n := range members {
			addr = addr.Next()
			n.addr = addr
		}
		// The address is on the machine before the lock is let go, so nobody else chooses it.
		return tb.net.wire(ctx, members)
	})
	if err != nil {
		return err
	}
	etc := filepath.Join(tb.inst.dir, "etc")
	if err := os.Mkdir(etc, 0o755); err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(etc, "hosts"), []byte(hostsFile(tb.net.host, members)), 0o644),
		os.WriteFile(filepath.Join(etc, "nsswitch.conf"), []byte("passwd: files\ngroup: files\nhosts: files\n"), 0o644),
	); err != nil {
		return err
	}
	return eachNode(members, func(n *node) error {
		_, err := n.execInput(ctx, fmt.Sprintf("link set lo up\naddr add %s/%d dev eth0\nlink set eth0 up\n",
			n.addr, tb.net.subnet.Bits()), "ip", "-batch", "-")
		return errors.Join(err, n.setUp(ctx, etc, tb.cfg.hasFiles(n.id)))
	})
}

// chooseSubnet returns the configured subnet or one that no address of this machine is in.
func (tb *Testbed) chooseSubnet() (netip.Prefix, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, err
	}
	free := func(p netip.Prefix) bool {
		for _, a := range taken {
			if q, err := netip.ParsePrefix(a.String()); err == nil && p.Overlaps(q.Masked()) {
				return false
			}
		}
		return true
	}
	bits := tb.cfg.hostBits()
	if want := tb.cfg.Subnet; want.IsValid() {
		switch {
		case !want.Addr().Is4() || want.Bits() > 32-bits:
			return want, fmt.Errorf("subnet %s is not an IPv4 prefix of /%d or shorter, which the nodes need", want,
				32-bits)
		case !free(want.Masked()):
			return want, fmt.Errorf("subnet %s is in use on this machine; set another, or none to have one chosen",
				want)
		}
		return want.Masked(), nil
	}
	for p := netip.PrefixFrom(testNetworks.Addr(), 32-bits); testNetworks.Contains(p.Addr()); p = nextPrefix(p) {
		if free(p) {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free /%d in %s: close other testbeds, or set a subnet", 32-bits, testNetworks)
}

// nextPrefix returns the IPv4 prefix after p.
func nextPrefix(p netip.Prefix) netip.Prefix {
	b := p.Addr().As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	n += 1 << (32 - p.Bits())
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), p.Bits())
}

// wire makes the bridge and one link from it to each node and to this machine.
func (f *fabric) wire(ctx context.Context, members []*node) error {
	var links, ports strings.Builder
	fmt.Fprintf(&ports, "link add %s type bridge\nlink set %s up\n", bridge, bridge)
	port := func(name string) { fmt.Fprintf(&ports, "link set %s master %s up\n", name, bridge) }
	fmt.Fprintf(&links, "link add %s type veth peer name host netns %d\n", f.uplink, f.node.pid())
	port("host")
	for _, n := range members {
		fmt.Fprintf(&links, "link add %s netns %d type veth peer name eth0 netns %d\n", n.id, f.node.pid(), n.pid())
		port(string(n.id))
	}
	fmt.Fprintf(&links, "addr add %s/%d dev %s\nlink set %s up\n", f.host, f.subnet.Bits(), f.uplink, f.uplink)
	if err := hostIP(ctx, links.String(), "-batch", "-"); err != nil {
		return err
	}
	_, err := f.node.execInput(ctx, ports.String(), "ip", "-batch", "-")
	return err
}

// close takes the link to this machine away.
func (f *fabric) close(ctx context.Context) error {
	if _, err := net.InterfaceByName(f.uplink); err != nil {
		return nil // never made, or gone with the bridge's namespace
	}
	return hostIP(ctx, "", "link", "del", f.uplink)
}

// sweepLink removes the link of a dead instance, should its namespace have outlived it.
func sweepLink(instance string) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	return (&fabric{uplink: instance + ".up"}).close(ctx)
}

// hostIP runs ip on this machine itself.
func hostIP(ctx context.Context, input string, args ...string) error {
	ip, err := lookProgram("ip")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, ip, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// eachNode runs f for all nodes, a few at a time, and joins the errors.
func eachNode(nodes []*node, f func(*node) error) error {
	const atOnce = 8
	errs := make(chan error, len(nodes))
	slots := make(chan struct{}, atOnce)
	for _, n := range nodes {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			errs <- f(n)
		}()
	}
	var all []error
	for range nodes {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}
