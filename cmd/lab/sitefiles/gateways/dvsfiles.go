package gateways

import (
	"fmt"
	"strings"
	"time"

	"fairway/cmd/lab/sitefiles/format"
)

// dvsFiles is where DVS's files are, and dvsTransport where those of its transport are.
func (l Layer) dvsFiles() string {
	if l == OldDVS {
		return "proc/fs/dvs"
	}
	return "sys/kernel/debug/dvs"
}

func (l Layer) dvsTransport() string {
	if l == OldDVS {
		return "proc/fs/dvs/ipc"
	}
	return "sys/kernel/debug/dvsipc"
}

// dvsClient adds the files of a client's mount.
func dvsClient(t format.Tree, l Layer, c *Client, now time.Duration) {
	at := l.dvsFiles() + "/"
	t[at+"mounts/0/mount"] = dvsMount(c.on)
	t[at+"mounts/0/stats"] = dvsStats(l, c.mount, false)
	t[dvsListFile(l)] = dvsList(c, now)
	if l == DVS {
		t[at+"statistics/client_message_timings"] = dvsTimes(c.ever, false)
	}
}

// dvsServer adds a server's files.
func dvsServer(t format.Tree, l Layer, g *Gateway) {
	at := l.dvsFiles() + "/"
	t[at+"stats"] = dvsStats(l, g.calls, true)
	t[l.dvsTransport()+"/stats"] = dvsThreads(g)
	if l == DVS {
		t[at+"statistics/server_message_timings"] = dvsTimes(g.calls, true)
	}
}

// dvsMount is a DVS client's file of one mount.
func dvsMount(g *Gateway) string {
	n := nodename(g)
	return fmt.Sprintf(
		"local-mount %s\nremote-path %s\noptions (rw,blksize=524288,statsfile=/proc/fs/dvs/mounts/0/stats,"+
			"attrcache_timeout=14400,nodwfs,nodwcfs,noparallelwrite,nomultifsync,nocache,nodatasync,noclosesync,retry,"+
			"failover,userenv,noclusterfs,killprocess,noatomic,nodeferopens,no_distribute_create_ops,no_ro_cache,"+
			"noloadbalance,maxnodes=1,nnodes=1,nomagic,nohash_on_nid,hash=fnv-1a,"+
			"nodefile=/proc/fs/dvs/mounts/0/nodenames,nodename=%s)\nactive_nodes %[3]s\ninactive_nodes\n"+
			"loadbalance_node\nremote-magic 0xbd00bd0\n", mountPoint, export, n)
}

// dvsKinds are the requests that DVS counts.
var dvsKinds = strings.Fields(
	"LOOKUP OPEN CLOSE READDIR CREATE UNLINK IOCTL FLUSH FSYNC FASYNC LOCK LINK SYMLINK MKDIR " +
		"RMDIR MKNOD RENAME READLINK TRUNCATE SETATTR GETATTR PARALLEL_READ PARALLEL_WRITE STATFS READPAGE_ASYNC " +
		"READPAGE_DATA GETEOI SETXATTR GETXATTR LISTXATTR REMOVEXATTR VERIFYFS RO_CACHE_DISABLE PERMISSION " +
		"SYNC_UPDATE READPAGES_RQ READPAGES_RP WRITEPAGES_RQ WRITEPAGES_RP")

// dvsAsked are the requests of the model's operations.
var dvsAsked = [classes]string{Read: "PARALLEL_READ", Write: "PARALLEL_WRITE", Meta: "GETATTR"}

// dvsStats is a DVS file of statistics: of each kind what a client asked and what a server answered, well and not.
func dvsStats(l Layer, calls [classes]counted, server bool) string {
	n := map[string]uint64{}
	for op, kind := range dvsAsked {
		n[kind] = calls[op].n
	}
	var b strings.Builder
	if l == DVS {
		side := "req"
		if server {
			side = "reqp"
		}
		b.WriteString("STATS.version 2\nSTATS.flags enable,flat,brief,plain,notest\n")
		for _, k := range dvsKinds {
			if n[k] > 0 {
				fmt.Fprintf(&b, "RQ.RQ_%s.%s.ok %d\nRQ.RQ_%[1]s.%[2]s.err 0\n", k, side, n[k])
			}
		}
		for op, name := range []string{"read", "write"} {
			if o := calls[op]; o.n > 0 && !server {
				fmt.Fprintf(&b, "PERF.user.%s.min_len %d\nPERF.user.%[1]s.max_len %[2]d\n"+
					"PERF.user.%[1]s.total.iops %d\nPERF.user.%[1]s.total.bytes %[4]d\n", name, uint64(callBytes), o.n,
					o.bytes)
			}
		}
		return b.String()
	}
	for _, k := range dvsKinds {
		if server {
			fmt.Fprintf(&b, "RQ_%s: 0 0 %d 0 0.000 0.000\n", k, n[k])
		} else {
			fmt.Fprintf(&b, "RQ_%s: %d 0 0 0 0.000 0.000\n", k, n[k])
		}
	}
	fmt.Fprintf(&b, "llseek: 0 0 0.000 0.000\nread: %d 0 0.000 0.004\nwrite: %d 0 0.000 0.004\n", calls[Read].n,
		calls[Write].n)
	return b.String()
}

// dvsTimes is a file of what messages took, of a client, or of a server with the time in its queue.
func dvsTimes(calls [classes]counted, server bool) string {
	side, whose := "Client", "sent as a client"
	if server {
		side, whose = "Server", "executed as a server"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Version 1.0 %s Timing Stats. Stats last reset at 11/25/2026 08:00:00. All times in "+
		"microseconds.\n# This file contains timings for messages that this node has %s.\n", side, whose)
	fmt.Fprintf(&b, "# %-16s %-16s %16s %16s %16s %16s %16s %8s\n", "Operation", "Measurement", "Number", "Sum_us",
		"Average_us", "Max_us", "Min_us", "Approx_%")
	for _, k := range dvsKinds {
		var c counted
		for op := range dvsAsked {
			if dvsAsked[op] == k {
				c = calls[op]
			}
		}
		line := func(what string, d time.Duration) {
			us := uint64(d.Microseconds())
			fmt.Fprintf(&b, "%-18s %-16s %16d %16d %16d %16d %16d %8d\n", k, what, c.n, us, us/max(1, c.n), us, 0, 0)
		}
		line("Server_Overhead", 0)
		line("File_System", c.took)
		line("Queue", c.queued)
		if !server {
			line("Network", 0)
		}
		line("Total", c.took+c.queued)
	}
	return b.String()
}

// dvsThreads is a server's file of its transport.
func dvsThreads(g *Gateway) string {
	var b strings.Builder
	b.WriteString("DVS IPC Transport Statistics\n")
	fmt.Fprintf(&b, "%22s %16d\n%22s %16d\nRefill Stats:\n%8d\n\nInstance 0:\n", "RMA Puts", g.calls[Read].n,
		"NAKs", 0, 3)
	for _, l := range []struct {
		name string
		n    int
	}{{"Total Threads", threads}, {"Created Threads", threads}, {"Active Threads", threads - g.free},
		{"Idle Threads", g.free}, {"Blocked Threads", 0}, {"Thread Limit", threads}, {"Total Queues", 4},
		{"Queued Messages", len(g.waiting)}} {
		fmt.Fprintf(&b, "%21s        %8d\n", l.name, l.n)
	}
	return b.String()
}

// dvsListFile is where a client's outstanding requests are listed.
func dvsListFile(l Layer) string { return l.dvsTransport() + "/requests" }

// dvsList lists them.
func dvsList(c *Client, now time.Duration) string {
	var b strings.Builder
	for _, one := range c.under {
		age := (now - one.asked).Milliseconds()
		fmt.Fprintf(&b, "server: %s  request: RQ_%s  path: %s/out.%s  user: 1000  time: %d.%03d sec  apid: 0\n",
			nodename(one.on), dvsAsked[one.op], mountPoint, c.Name, age/1000, age%1000)
	}
	return b.String()
}
