package testbed

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"fairway/collector/topology"
)

// Config says what to start. The zero value of every field has a default.
type Config struct {
	// Forwarders and ComputeNodes are the numbers of nodes; 2 and 4 if 0.
	Forwarders, ComputeNodes int
	// ForwarderName and ComputeName are the node names with one %d verb: "fwd%03d", "cn%03d".
	ForwarderName, ComputeName string
	// Mapping is the default mapping; without it consecutive compute nodes share a forwarder.
	Mapping topology.Mapping
	// Subnet holds every address of the testbed. Without it a free part of 198.18.0.0/15 (the
	// range for test networks, RFC 2544) is taken.
	Subnet netip.Prefix
	// Dir is the directory behind the file system. Without it the file system is in memory, at
	// most SizeBytes (2 GiB if 0).
	Dir       string
	SizeBytes int64
	// Threads is the number of workers a diod has for each exported tree; 8 if 0.
	Threads int
	// LinkBytesPerSec shapes each forwarder's link in each direction, so that its peak bandwidth
	// is known; 0 leaves the links alone. Needs root.
	LinkBytesPerSec float64
	// MountProgram is the fairway-mount to start on each compute node; without it /pfs is an
	// empty directory.
	MountProgram string
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
}

// The bounds of a testbed: past them one machine cannot sensibly hold it.
const (
	maxForwarders   = 64
	maxComputeNodes = 512
)

var nodeNameFormat = regexp.MustCompile(`^[a-z][a-z0-9-]*%0?[0-9]?d$`)

// fill sets defaults and refuses what cannot be started.
func (c *Config) fill() error {
	c.Root = os.Geteuid() == 0 && !c.Loopback
	setDefault(&c.Forwarders, 2)
	setDefault(&c.ComputeNodes, 4)
	setDefault(&c.ForwarderName, "fwd%03d")
	setDefault(&c.ComputeName, "cn%03d")
	setDefault(&c.SizeBytes, 2<<30)
	setDefault(&c.Threads, 8)
	setDefault(&c.StateDir, defaultStateDir(c.Root))
	switch {
	case c.Forwarders < 1 || c.Forwarders > maxForwarders:
		return fmt.Errorf("testbed: %d forwarders; 1 to %d are possible", c.Forwarders, maxForwarders)
	case c.ComputeNodes < 1 || c.ComputeNodes > maxComputeNodes:
		return fmt.Errorf("testbed: %d compute nodes; 1 to %d are possible", c.ComputeNodes, maxComputeNodes)
	case !nodeNameFormat.MatchString(c.ForwarderName) || len(c.ForwarderName) > 12:
		return fmt.Errorf(
			"testbed: forwarder name %q is not letters and one verb such as fwd%%03d (12 characters at most)",
			c.ForwarderName)
	case !nodeNameFormat.MatchString(c.ComputeName) || len(c.ComputeName) > 12:
		return fmt.Errorf(
			"testbed: compute node name %q is not letters and one verb such as cn%%03d (12 characters at most)",
			c.ComputeName)
	case c.forwarder(0).Node() == c.compute(0):
		return fmt.Errorf("testbed: forwarders and compute nodes are both named %q", c.ComputeName)
	case c.Slurm && !c.Root:
		return fmt.Errorf("testbed: Slurm needs root (a node is a set of namespaces)")
	case c.LinkBytesPerSec != 0 && !c.Root:
		return fmt.Errorf("testbed: a link's speed needs root (a link is a veth pair)")
	case c.MountProgram != "" && !c.Root:
		return fmt.Errorf("testbed: a mount needs root (a node is a set of namespaces)")
	case c.Dir != "" && !filepath.IsAbs(c.Dir):
		return fmt.Errorf("testbed: file system directory %q is not an absolute path", c.Dir)
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

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c *Config) forwarder(i int) topology.ForwarderID {
	return topology.ForwarderID(fmt.Sprintf(c.ForwarderName, i))
}

func (c *Config) compute(i int) topology.NodeID {
	return topology.NodeID(fmt.Sprintf(c.ComputeName, i))
}

// hostBits is the number of address bits the nodes, the host and the scheduler need.
func (c *Config) hostBits() int {
	bits := 8
	for 1<<bits < c.Forwarders+c.ComputeNodes+firstNodeAddr+1 {
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
