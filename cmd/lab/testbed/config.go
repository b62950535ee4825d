package testbed

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairway/cmd/lab/leash"
	"fairway/collector/topology"
)

// Layer is the kind of forwarding layer that a testbed has.
type Layer string

// The layers.
const (
	// Diod forwarders have the file system themselves.
	Diod Layer = "diod"
	// NFS forwarders are nfs-ganesha gateways, clients of back ends with the file system.
	NFS Layer = "nfs"
)

// Config says what to start. The zero value of every field has a default.
type Config struct {
	Layer Layer // Diod if ""
	// Forwarders and ComputeNodes are the numbers of nodes; 2 and 4 if 0.
	Forwarders, ComputeNodes int
	// ForwarderName and ComputeName are the node names with one %d verb: "fwd%03d", "cn%03d".
	ForwarderName, ComputeName string
	// Mapping is the default mapping; without it consecutive compute nodes share a forwarder.
	Mapping topology.Mapping
	// LinkBytesPerSec shapes each forwarder's link in each direction, so that its peak bandwidth
	// is known; 0 leaves the links alone. Needs root.
	LinkBytesPerSec float64
	// MountProgram is the fairway-mount to start on each compute node; without it /pfs is an
	// empty directory.
	MountProgram string
	// QueueProgram is the fairway-queue to start in front of each forwarder, on a node of its own: what lies behind it
	// is then the forwarder's service and its link. Needs root.
	QueueProgram string
	// Queued are the forwarders with a queue; none: all, where there is a QueueProgram.
	Queued []topology.ForwarderID
	// Slurm adds a scheduler node with slurmctld and a slurmd on each compute node. Needs root.
	Slurm bool
	// Hooks are the controller's own programs, an argv each under its key of slurm.conf (PrologSlurmctld,
	// EpilogSlurmctld). TESTBED is the testbed's directory; what they print is in hooks.log.
	Hooks map[string][]string
	// Root builds the nodes of namespaces; it is true whenever the process is root unless
	// Loopback asks for the other form.
	Root     bool
	Loopback bool
	// StateDir holds one directory an instance; /run/fairway-testbed for root.
	StateDir string
	backEnds int // servers behind the gateways of the layer NFS; they take the gateways in turn
}

// The bounds of a testbed: past them one machine cannot sensibly hold it.
const (
	maxForwarders   = 64
	maxComputeNodes = 512
)

// fill sets defaults and refuses what cannot be started.
func (c *Config) fill() error {
	c.Root = os.Geteuid() == 0 && !c.Loopback
	c.Forwarders = cmp.Or(c.Forwarders, 2)
	c.ComputeNodes = cmp.Or(c.ComputeNodes, 4)
	c.ForwarderName = cmp.Or(c.ForwarderName, "fwd%03d")
	c.ComputeName = cmp.Or(c.ComputeName, "cn%03d")
	c.Layer = cmp.Or(c.Layer, Diod)
	if c.Layer == NFS {
		c.backEnds = min(2, c.Forwarders)
	}
	c.StateDir = cmp.Or(c.StateDir, defaultStateDir(c.Root))
	switch {
	case c.Forwarders < 1 || c.Forwarders > maxForwarders:
		return fmt.Errorf("testbed: %d forwarders; 1 to %d are possible", c.Forwarders, maxForwarders)
	case c.ComputeNodes < 1 || c.ComputeNodes > maxComputeNodes:
		return fmt.Errorf("testbed: %d compute nodes; 1 to %d are possible", c.ComputeNodes, maxComputeNodes)
	case c.Layer != Diod && c.Layer != NFS:
		return fmt.Errorf("testbed: no layer is called %q (there are %s and %s)", c.Layer, Diod, NFS)
	}
	for what, asked := range map[string]bool{"the layer nfs": c.Layer == NFS, "Slurm": c.Slurm,
		"a link's speed": c.LinkBytesPerSec != 0, "a queue": c.QueueProgram != "", "a mount": c.MountProgram != ""} {
		if asked && !c.Root {
			return fmt.Errorf("testbed: %s needs root (a node is a set of namespaces, a link a veth pair)", what)
		}
	}
	return c.fillMapping()
}

// fillMapping gives consecutive compute nodes to a forwarder, as sites do, or checks the given one.
func (c *Config) fillMapping() error {
	if c.Mapping == nil {
		c.Mapping = topology.Mapping{}
		for i := range c.ComputeNodes {
			c.Mapping[c.compute(i)] = c.forwarder(i * c.Forwarders / c.ComputeNodes)
		}
		return nil
	}
	known := map[topology.ForwarderID]bool{}
	for i := range c.Forwarders {
		known[c.forwarder(i)] = true
	}
	for i := range c.ComputeNodes {
		if f, ok := c.Mapping[c.compute(i)]; !ok || !known[f] {
			return fmt.Errorf("testbed: the mapping gives %s the forwarder %q, which does not exist", c.compute(i), f)
		}
	}
	return nil
}

// defaultStateDir is short because unix sockets live below it (their names hold 108 bytes).
func defaultStateDir(root bool) string {
	if root {
		return "/run/fairway-testbed"
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("fairway-testbed.%d", os.Geteuid()))
}

func (c *Config) forwarder(i int) topology.ForwarderID {
	return topology.ForwarderID(fmt.Sprintf(c.ForwarderName, i))
}

// backEnd is a server behind the gateways.
func (c *Config) backEnd(i int) topology.NodeID {
	return topology.NodeID(fmt.Sprintf("be%03d", i))
}

// backEndOf is the back end of a gateway: they take turns, so that neighbours have different ones.
func (c *Config) backEndOf(gateway int) topology.NodeID { return c.backEnd(gateway % c.backEnds) }

// hasFiles says whether a node has the file system itself.
func (c *Config) hasFiles(id topology.NodeID) bool {
	n, name := c.Forwarders, func(i int) topology.NodeID { return c.forwarder(i).Node() }
	if c.Layer == NFS {
		n, name = c.backEnds, c.backEnd
	}
	for i := range n {
		if name(i) == id {
			return true
		}
	}
	return false
}

// queued are the forwarders with a queue.
func (c *Config) queued() []topology.ForwarderID {
	if c.QueueProgram == "" || len(c.Queued) > 0 {
		return c.Queued
	}
	all := make([]topology.ForwarderID, c.Forwarders)
	for i := range all {
		all[i] = c.forwarder(i)
	}
	return all
}

func (c *Config) compute(i int) topology.NodeID {
	return topology.NodeID(fmt.Sprintf(c.ComputeName, i))
}

// hostBits is the number of address bits the nodes, the host and the scheduler need.
func (c *Config) hostBits() int {
	bits := 8
	for 1<<bits < 2*c.Forwarders+c.ComputeNodes+c.backEnds+firstNodeAddr+1 {
		bits++
	}
	return bits
}

// hostsFile gives every address a name: diod refuses a client whose address has none.
func hostsFile(hostAddr netip.Addr, nodes []*node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "127.0.0.1 localhost\n%s %s\n", hostAddr, hostName)
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s %s\n", n.addr, n.id)
	}
	return b.String()
}

// MissingError lists the Debian packages a testbed needs and the machine lacks.
type MissingError struct{ Packages []string }

func (e *MissingError) Error() string {
	return "the testbed needs programs that are not installed; apt-get install " + strings.Join(e.Packages, " ")
}

// Missing returns the Debian packages that a testbed of this configuration needs and that are not
// installed, sorted.
func Missing(cfg Config) []string {
	programs := [][2]string{{"env", "coreutils"}}
	if cfg.Layer == NFS {
		programs = append(programs, [2]string{"ganesha.nfsd", "nfs-ganesha"}, [2]string{"dbus-daemon", "dbus-daemon"})
		for fsal, pack := range map[string]string{"libfsalvfs.so": "nfs-ganesha-vfs",
			"libfsalproxy_v4.so": "nfs-ganesha-proxy-v4"} {
			if found, _ := filepath.Glob(filepath.Join("/usr/lib/*/ganesha", fsal)); len(found) == 0 {
				programs = append(programs, [2]string{fsal, pack}) // on no path: it is missing
			}
		}
	} else {
		programs = append(programs, [2]string{"diod", "diod"})
	}
	if os.Geteuid() == 0 && !cfg.Loopback {
		programs = append(programs, [2]string{"ip", "iproute2"}, [2]string{"tc", "iproute2"})
	}
	if cfg.Slurm {
		programs = append(programs, [2]string{"slurmctld", "slurmctld"}, [2]string{"slurmd", "slurmd"},
			[2]string{"sbatch", "slurm-client"}, [2]string{"munged", "munge"}, [2]string{"setpriv", "util-linux"})
	}
	return missingOf(programs)
}

// missingOf returns the packages of those (program, package) pairs whose program is not found.
func missingOf(programs [][2]string) []string {
	var out []string
	for _, p := range programs {
		if _, err := leash.Look(p[0]); err != nil {
			out = append(out, p[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
