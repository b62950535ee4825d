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
