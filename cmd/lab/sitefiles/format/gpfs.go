package format

import (
	"fmt"
	"strings"
	"time"
)

// FSIO are mmpmon's counts of one file system on a node.
type FSIO struct {
	Addr, Node, Cluster, System                string
	Disks                                      int
	Read, Written, Opens, Closes, Reads, Write uint64
	Dirs, Inodes                               uint64
}

// Mmpmon is a line of "mmpmon -p" that answers fs_io_s.
func Mmpmon(c FSIO, at time.Time) string {
	return fmt.Sprintf("_fs_io_s_ _n_ %s _nn_ %s _rc_ 0 _t_ %d _tu_ %d _cl_ %s _fs_ %s _d_ %d _br_ %d _bw_ %d _oc_ %d "+
		"_cc_ %d _rdc_ %d _wc_ %d _dir_ %d _iu_ %d\n", c.Addr, c.Node, at.Unix(), at.Nanosecond()/1000, c.Cluster,
		c.System, c.Disks, c.Read, c.Written, c.Opens, c.Closes, c.Reads, c.Write, c.Dirs, c.Inodes)
}

// CESAddress is a row of "mmces address list".
type CESAddress struct{ Address, Node string }

// CESAddresses is what "mmces address list" prints.
func CESAddresses(rows []CESAddress) string {
	var b strings.Builder
	line := func(cells ...any) { fmt.Fprintf(&b, "%-16s %-12s %-11s %s\n", cells...) }
	line("Address", "Node", "Ces Group", "Attributes")
	line(strings.Repeat("-", 14), strings.Repeat("-", 12), strings.Repeat("-", 11), strings.Repeat("-", 12))
	for _, r := range rows {
		line(r.Address, r.Node, "none", "none")
	}
	return b.String()
}

// CESCluster is what "mmlscluster --ces" prints of the services' parameters.
func CESCluster(cluster, policy string) string {
	return fmt.Sprintf("\nGPFS cluster information\n========================\n  GPFS cluster name:         %s\n\n"+
		"Cluster Export Services global parameters\n-----------------------------------------\n"+
		"  Shared root directory:                /gpfs/ces\n  Enabled Services:                     NFS\n"+
		"  Log level:                            0\n  Address distribution policy:          %s\n\n", cluster, policy)
}

// CESNode is a row of "mmces node list".
type CESNode struct{ Name, Flags string }

// CESNodes is what "mmces node list" prints.
func CESNodes(rows []CESNode) string {
	var b strings.Builder
	line := func(cells ...any) { fmt.Fprintf(&b, "%-13v %-11s %-13s %s\n", cells...) }
	line("Node Number", "Node Name", "Node Groups", "Node Flags")
	line(strings.Repeat("-", 13), strings.Repeat("-", 11), strings.Repeat("-", 13), strings.Repeat("-", 12))
	for i, r := range rows {
		line(i+1, r.Name, "", r.Flags)
	}
	return b.String()
}

// Waiter is a row of "mmdiag --waiters".
type Waiter struct {
	Age    time.Duration
	Number int // of the thread
	Thread string
	Reason string
}

// Waiters is what "mmdiag --waiters" prints at a moment, in the shape of releases since 4.
func Waiters(rows []Waiter, at time.Time) string {
	var b strings.Builder
	b.WriteString("\n=== mmdiag: waiters ===\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "Waiting %.4f sec since %s, monitored, thread %d %s: %s\n", r.Age.Seconds(),
			at.Add(-r.Age).Format("15:04:05"), r.Number, r.Thread, r.Reason)
	}
	return b.String()
}
