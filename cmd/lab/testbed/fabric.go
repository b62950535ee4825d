package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"fairway/cmd/lab/leash"
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
	names := make([]topology.NodeID, 0, tb.cfg.Forwarders+tb.cfg.ComputeNodes+tb.cfg.backEnds+1)
	for i := range tb.cfg.Forwarders {
		names = append(names, tb.cfg.forwarder(i).Node())
	}
	for i := range tb.cfg.ComputeNodes {
		names = append(names, tb.cfg.compute(i))
	}
	for i := range tb.cfg.backEnds {
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
		tb.net = &fabric{node: n, uplink: leash.Uplink(tb.inst.Name)}
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
	err := leash.WithLock(tb.cfg.StateDir, func() error {
		var err error
		if tb.net.subnet, err = leash.ChooseSubnet(tb.cfg.hostBits()); err != nil {
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
	etc := filepath.Join(tb.inst.Dir, "etc")
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
	if err := leash.IP(ctx, links.String(), "-batch", "-"); err != nil {
		return err
	}
	_, err := f.node.execInput(ctx, ports.String(), "ip", "-batch", "-")
	return err
}

// eachNode runs f for all nodes, a few at a time, and joins the errors.
func eachNode(nodes []*node, f func(*node) error) error {
	const atOnce = 8
	errs, slots := make([]error, len(nodes)), make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, n := range nodes {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(n)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
