// Package testbed starts, checks and stops a real I/O-forwarded cluster on this machine.
//
// With root every node is a set of namespaces of its own: a forwarder runs diod (LLNL's 9P2000.L
// I/O forwarding daemon), a compute node has the file system at /pfs through one forwarder and a
// real slurmd, a scheduler node runs slurmctld. A bridge of its own joins them; the machine itself
// is on it with one address, where a daemon can listen. Without root the forwarders are diods on
// addresses of the loopback network.
//
// In the layer NFS a forwarder is an nfs-ganesha gateway that has no file system itself: it serves 9P to compute nodes
// and is an NFSv4.1 client of one of several back ends, nodes of their own with nfs-ganesha over the same directory.
//
// Everything lives as long as the process that started it: namespaces, mounts and processes die
// with it even when it is killed, and what is left in one directory is removed by the next Sweep.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fairway/cmd/lab/leash"
	"fairway/collector/topology"
)

// MountPoint is where compute nodes see the file system.
const MountPoint = "/pfs"

// exportDir is the file system as forwarders see it, and its 9P attach name.
const exportDir = "/export"

// Testbed is one running cluster. Its methods may be called from any goroutine.
type Testbed struct {
	cfg   Config
	inst  *leash.Instance
	base  *leash.Thread // in the testbed's own mount namespace; every node is born from it
	net   *fabric       // nil without root
	nodes []*node       // forwarders, then compute nodes, then the scheduler; constant after Start
	slurm *slurm        // nil without Slurm

	mu sync.Mutex // guards everything that follows
	// services are the newest file service of every forwarder and back end.
	services map[topology.NodeID]*leash.Process
	agents   []*leash.Process
	closed   bool

	faultMu sync.Mutex // guards faults, and lets one at a time be switched off
	faults  []activeFault
}

// Start builds the cluster of cfg and returns when every part of it has answered. On an error it
// leaves nothing behind. The caller must Close.
func Start(ctx context.Context, cfg Config) (*Testbed, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if missing := Missing(cfg); len(missing) > 0 {
		return nil, &MissingError{missing}
	}
	inst, err := leash.NewInstance(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	tb := &Testbed{
		cfg: cfg, inst: inst,
		services: map[topology.NodeID]*leash.Process{},
	}
	if err := tb.up(ctx); err != nil {
		return nil, errors.Join(err, tb.Close())
	}
	return tb, nil
}

// up runs the steps of the start in the order in which they need each other.
func (tb *Testbed) up(ctx context.Context) error {
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"file system", tb.startFilesystem},
		{"nodes", tb.startNodes},
		{"fabric", tb.startFabric},
		{"back ends", tb.startBackEnds},
		{"forwarders", tb.startForwarders},
		{"queues", tb.startQueues},
		{"mounts", tb.startMounts},
		{"scheduler", tb.startSlurm},
	}
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("start the testbed's %s: %w", s.name, err)
		}
	}
	return nil
}

// closeWithin bounds the programs that Close runs.
const closeWithin = 10 * time.Second

// Close stops every process and removes every namespace, mount, link, control group and file of
// the testbed. It may be called more than once.
func (tb *Testbed) Close() error {
	tb.mu.Lock()
	if tb.closed {
		tb.mu.Unlock()
		return nil
	}
	tb.closed = true
	tb.mu.Unlock()

	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	errs = append(errs, tb.clearFaults(ctx))
	if tb.net != nil {
		errs = append(errs, leash.RemoveLink(tb.net.uplink))
	}
	for _, n := range tb.nodes {
		n.kill()
	}
	for _, n := range tb.nodes {
		n.wait()
	}
	tb.mu.Lock()
	loose := slices.Collect(maps.Values(tb.services))
	tb.mu.Unlock()
	for _, p := range loose {
		p.Kill()
	}
	if tb.base != nil {
		tb.base.Close()
	}
	errs = append(errs, leash.RemoveGroups(tb.inst.Name), leash.WithLock(tb.cfg.StateDir, tb.inst.Remove))
	return errors.Join(errs...)
}

// Root says whether the nodes are namespaces (true) or diods on loopback ports (false).
func (tb *Testbed) Root() bool { return tb.cfg.Root }

// HasSlurm says whether jobs can be submitted.
func (tb *Testbed) HasSlurm() bool { return tb.slurm != nil }

// Machine describes the cluster: its nodes and its default mapping. A forwarder's Addr, that of its queue if it has
// one, can be reached from every node and from this process.
func (tb *Testbed) Machine() topology.Machine {
	m := topology.Machine{Name: tb.inst.Name, Default: tb.cfg.Mapping.Clone()}
	for i := range tb.cfg.Forwarders {
		id := tb.cfg.forwarder(i)
		m.Nodes = append(m.Nodes, topology.Node{
			ID: id.Node(), Role: topology.Forwarder, Addr: tb.entryAddr(id),
			PeakBytesPerSec: tb.cfg.LinkBytesPerSec,
		})
	}
	for i := range tb.cfg.ComputeNodes {
		m.Nodes = append(m.Nodes, topology.Node{ID: tb.cfg.compute(i), Role: topology.Compute})
	}
	for i := range tb.cfg.backEnds {
		m.Nodes = append(m.Nodes, topology.Node{ID: tb.cfg.backEnd(i), Role: topology.Storage})
	}
	return m
}

// ForwarderAddr is where a forwarder's file service listens, HOST:PORT; empty for an unknown forwarder.
func (tb *Testbed) ForwarderAddr(f topology.ForwarderID) string {
	n, err := tb.find(f.Node())
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(n.addr, n.port).String()
}

// forwarderIndex returns a forwarder's number.
func (tb *Testbed) forwarderIndex(f topology.ForwarderID) (int, bool) {
	for i := range tb.cfg.Forwarders {
		if tb.cfg.forwarder(i) == f {
			return i, true
		}
	}
	return 0, false
}

// Attach is the attach name of the file system at every forwarder.
func (tb *Testbed) Attach() string {
	switch {
	case tb.cfg.Layer == NFS:
		return gatewayTag
	case tb.cfg.Root:
		return exportDir
	}
	return tb.Dir()
}

// Dir is the file system as this process sees it, beside all forwarders.
func (tb *Testbed) Dir() string {
	if tb.cfg.Root {
		return filepath.Join("/proc", fmt.Sprint(tb.net.node.pid()), "root", exportDir)
	}
	return filepath.Join(tb.inst.Dir, "fs")
}

// HostAddr is this process's address on the testbed's bridge: where a daemon must listen so that
// the nodes can reach it.
func (tb *Testbed) HostAddr() netip.Addr {
	if tb.net == nil {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return tb.net.host
}

// NodeDir is a directory of this instance for one node's sockets and files, with the same name on
// the node and for this process. It is gone after Close.
func (tb *Testbed) NodeDir(id topology.NodeID) string { return filepath.Join(tb.inst.Dir, string(id)) }

// LogDir holds one log file for every program the testbed started.
func (tb *Testbed) LogDir() string { return filepath.Join(tb.inst.Dir, "log") }

// find returns a node by its name.
func (tb *Testbed) find(id topology.NodeID) (*node, error) {
	for _, n := range tb.nodes {
		if n.id == id {
			return n, nil
		}
	}
	return nil, fmt.Errorf("testbed %s has no node %q", tb.inst.Name, id)
}

// local is this machine itself, for programs that must see the nodes from outside.
func (tb *Testbed) local() *node { return &node{id: "host", base: tb.base} }

// startFilesystem makes the thread that all nodes descend from and mounts the file system in its
// mount namespace, where nobody else sees it.
func (tb *Testbed) startFilesystem(context.Context) error {
	var err error
	if tb.base, err = leash.NewThread(); err != nil {
		return err
	}
	if !tb.cfg.Root {
		return os.MkdirAll(tb.Dir(), 0o755)
	}
	return tb.base.Do(func() error { return privateRoot(filepath.Join(tb.inst.Dir, "root")) })
}

// Sweep removes what testbeds left whose process died without Close, and says how many there were. With an empty
// stateDir it looks where Config's default puts them.
func Sweep(stateDir string) (removed int, err error) {
	if stateDir != "" {
		return leash.Sweep(stateDir)
	}
	removed, err = leash.Sweep(defaultStateDir(false))
	if os.Geteuid() == 0 { // root's testbeds on loopback are kept as anybody's
		more, rootErr := leash.Sweep(defaultStateDir(true))
		removed, err = removed+more, errors.Join(err, rootErr)
	}
	return removed, err
}
