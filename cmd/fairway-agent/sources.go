package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/collector"
	"fairway/collector/rootfs"
	"fairway/collector/source/diod"
	"fairway/collector/source/dvs"
	"fairway/collector/source/ganesha"
	"fairway/collector/source/gpfs"
	"fairway/collector/source/lnet"
	"fairway/collector/source/lustre"
	"fairway/collector/source/lwfs"
	"fairway/collector/source/mount"
	"fairway/collector/source/procfs"
	"fairway/collector/source/queue"
	"fairway/collector/source/routes"
	"fairway/collector/topology"
	"fairway/remap/node"
)

// newSources makes the sources that are switched on. The order counts: of a metric that two of them
// report, the first one's value is taken.
func newSources(c Config) (out []collector.Source) {
	root, skip := rootfs.At(c.Root), nodeIDs(c.Source.SkipClients)
	if s := c.Source.Mount; s.Enabled {
		out = append(out, mount.New(topology.NodeID(c.Node), s.Control))
	}
	if s := c.Source.Diod; s.Enabled {
		opt := diod.Options{Addr: atNode(s.Addr, c.Node), Node: topology.NodeID(c.Node), UID: c.Source.UID,
			Workers: s.Workers, Skip: skip, Behind: c.Source.Queue.Enabled}
		if s.PIDFile != "" {
			opt.PID = func() (int, bool) { return readPID(s.PIDFile) }
		}
		out = append(out, diod.New(opt))
	}
	if s := c.Source.Ganesha; s.Enabled {
		bus := strings.TrimPrefix(os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path=")
		out = append(out, ganesha.New(ganesha.Options{Bus: bus, Node: topology.NodeID(c.Node),
			Forwarder: c.Role == topology.Forwarder.String(), Skip: skip,
			Addr: atNode(s.Addr, c.Node), Export: s.Export, UID: c.Source.UID}))
	}
	if s := c.Source.Queue; s.Enabled {
		out = append(out, queue.New(topology.NodeID(c.Node), s.Control, skip...))
	}
	if s := c.Source.Lustre; s.Enabled {
		client := lustre.New(root)
		client.ReportWaiting = c.Role == topology.Compute.String()
		out = append(out, client)
	}
	if s := c.Source.LNet; s.Enabled {
		out = append(out, lnet.New(root))
	}
	if r := c.Routes; r.By != "" {
		opt := routes.Options{Kind: r.By, Node: topology.NodeID(c.Node), Root: root, Net: r.Net,
			Forwarders: byForwarder(r.Forwarders), Run: node.Exec, Volume: strings.TrimPrefix(r.Volume, "/"),
			Beside: c.Orders.beside(&c.Spool)}
		out = append(out, routes.New(opt))
	}
	if s := c.Source.LWFS; s.Enabled {
		out = append(out, lwfs.New(rootfs.At(filepath.Dir(s.Trace)), filepath.Base(s.Trace)))
	}
	if s := c.Source.DVS; s.Enabled {
		out = append(out, dvs.New(root, c.Role == topology.Forwarder.String()))
	}
	if s := c.Source.GPFS; s.Enabled {
		out = append(out, gpfs.New(filepath.Join(c.Root, gpfs.DefaultCommand)))
	}
	if s := c.Source.Procfs; s.Enabled {
		out = append(out, procfs.New(procfs.Options{
			Root: filepath.Join(c.Root, "proc"), SkipLinks: s.SkipLinks,
			ReportWaiting: c.Role == topology.Compute.String(),
		}))
	}
	return out
}

// atNode is HOST:PORT of an address that may leave the host out: then it is at the node's own name.
func atNode(addr, node string) string {
	if strings.HasPrefix(addr, ":") {
		return node + addr
	}
	return addr
}

func nodeIDs(names []string) []topology.NodeID {
	out := make([]topology.NodeID, len(names))
	for i, n := range names {
		out[i] = topology.NodeID(n)
	}
	return out
}

func readPID(file string) (int, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid, err == nil && pid > 0
}
