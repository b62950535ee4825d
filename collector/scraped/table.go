package scraped

import (
	"regexp"

	c "fairway/collector"
)

// Kind is what a subject is.
type Kind uint8

// The kinds of subjects.
const (
	Target    Kind = iota // a storage or metadata target
	Server                // the node behind targets
	NFSServer             // a node that serves NFS, by its own counters
	SeenNFS               // a server of NFS mounts, by what its clients saw
	Router                // an LNet router
	Node                  // a node that was named
	Disk                  // a disk of an NFS server or of a named node
)

// part is how a series makes the metric of its row.
type part uint8

const (
	rate      part = iota // a counter: its increase a second is the metric
	gauge                 // its value is the metric
	spent                 // a counter of time: its increase over that of the metric's operations is the metric
	histogram             // a counter of operations that took as long as the label apart says, in milliseconds
)

// row says what one metric of an exporter is in fairway's own words. The label host, where Telegraf sets it, else
// instance names the node.
type row struct {
	exporter, name string // the name is a pattern
	kind           Kind
	part           part
	metric         c.Metric
	subject        string  // the label that names the subject; "": the node
	where          []label // that a series has
	apart          string  // the label of a histogram's buckets, or of operations that are timed apart
	scale          float64 // of a counter of time, to seconds
}

// label is one that a series has; the pattern matches all of its value. A label that is absent is "".
type label struct{ name, pattern string }

// The exporters, as they are named in an answer.
const (
	node    = "node_exporter"
	lustre  = "lustre_exporter or lustrefs-exporter"
	lustre2 = "Telegraf's lustre2"
	nfs     = "Telegraf's nfsclient"
)

const (
	// links leaves out what stands on other devices: bonds, bridges, tunnels, IPoIB, and the VLANs of a card.
	links = "(en|eth|hsn|em[0-9]|p[0-9]+p)[^.:@]*"
	// disks leaves out partitions and volumes.
	disks = "(sd|vd|hd|xvd)[a-z]+|nvme[0-9]+n[0-9]+"
	// metaOps are the operations of an md_stats file, as source lustre counts them: an open that creates is a mknod,
	// too, a rename a samedir_rename or crossdir_rename, and a target with files' data counts its reads and writes.
	metaOps = "open|close|link|unlink|mkdir|rmdir|rename|getattr|setattr|getxattr|setxattr|statfs|sync"
	// mounts begins the names of what an NFS client counted of one operation.
	mounts = "node_mountstats_nfs_operations_"
)

// rows lists what is read of each exporter. Names and labels are those of node_exporter 1.5 and later, lustre_exporter
// 2.1 of HPE and GSI, lustrefs-exporter 0.12, and Telegraf 1.18 and later.
func rows() []row {
	const ms, us = 1e-3, 1e-6
	ost := []label{{"component", "ost"}}
	mdt := []label{{"component", "mdt"}, {"operation", metaOps}}
	lnet := []label{{"component", "lnet"}}
	// lustrefs-exporter has the buckets by size of operation, too.
	osdRead := []label{{"component", "ost"}, {"operation", "read"}, {"opsize", ""}}
	osdWrite := []label{{"component", "ost"}, {"operation", "write"}, {"opsize", ""}}
	// Telegraf gives the shares of clients and jobs the names of the target's own fields.
	ost2 := []label{{"name", ".*OST.*"}, {"client", ""}, {"jobid", ""}}
	mdt2 := []label{{"name", ".*MDT.*"}, {"client", ""}, {"jobid", ""}}
	osd2 := []label{{"name", ".*OST.*"}, {"brw_section", "io_time"}}
	read, write := []label{{"operation", "READ"}}, []label{{"operation", "WRITE"}}
	meta := []label{{"operation", "GETATTR|LOOKUP|ACCESS"}}
	link, disk := []label{{"device", links}}, []label{{"device", disks}}

	return []row{
		{lustre, "lustre_read_bytes_total", Target, rate, c.ReadBytes, "target", ost, "", 0},
		{lustre, "lustre_write_bytes_total", Target, rate, c.WriteBytes, "target", ost, "", 0},
		{lustre, "lustre_read_samples_total", Target, rate, c.ReadOps, "target", ost, "", 0},
		{lustre, "lustre_write_samples_total", Target, rate, c.WriteOps, "target", ost, "", 0},
		{lustre, "lustre_io_time_milliseconds_total", Target, histogram, c.ReadExec, "target", osdRead, "size", 0},
		{lustre, "lustre_io_time_milliseconds_total", Target, histogram, c.WriteExec, "target", osdWrite, "size", 0},
		{lustre, "lustre_stats_total", Target, rate, c.MetaOps, "target", mdt, "operation", 0},
		{lustre, "lustre_stats_time_total", Target, spent, c.MetaExec, "target", mdt, "operation", us},
		{lustre, "lustre_route_bytes_total", Router, rate, c.RoutedBytes, "", lnet, "", 0},

		{lustre2, "lustre2_read_bytes", Target, rate, c.ReadBytes, "name", ost2, "", 0},
		{lustre2, "lustre2_write_bytes", Target, rate, c.WriteBytes, "name", ost2, "", 0},
		{lustre2, "lustre2_read_calls", Target, rate, c.ReadOps, "name", ost2, "", 0},
		{lustre2, "lustre2_write_calls", Target, rate, c.WriteOps, "name", ost2, "", 0},
		{lustre2, "lustre2_read_ios", Target, histogram, c.ReadExec, "name", osd2, "bucket", 0},
		{lustre2, "lustre2_write_ios", Target, histogram, c.WriteExec, "name", osd2, "bucket", 0},
		{lustre2, "lustre2_(" + metaOps + ")", Target, rate, c.MetaOps, "name", mdt2, "", 0},

		{nfs, "nfsstat_bytes", SeenNFS, rate, c.ReadBytes, "serverexport", read, "", 0},
		{nfs, "nfsstat_bytes", SeenNFS, rate, c.WriteBytes, "serverexport", write, "", 0},
		{nfs, "nfsstat_ops", SeenNFS, rate, c.ReadOps, "serverexport", read, "", 0},
		{nfs, "nfsstat_ops", SeenNFS, rate, c.WriteOps, "serverexport", write, "", 0},
		{nfs, "nfsstat_rtt", SeenNFS, spent, c.ClientRead, "serverexport", read, "", ms},
		{nfs, "nfsstat_rtt", SeenNFS, spent, c.ClientWrite, "serverexport", write, "", ms},
		{node, mounts + "received_bytes_total", SeenNFS, rate, c.ReadBytes, "export", read, "", 0},
		{node, mounts + "sent_bytes_total", SeenNFS, rate, c.WriteBytes, "export", write, "", 0},
		{node, mounts + "requests_total", SeenNFS, rate, c.ReadOps, "export", read, "", 0},
		{node, mounts + "requests_total", SeenNFS, rate, c.WriteOps, "export", write, "", 0},
		{node, mounts + "requests_total", SeenNFS, rate, c.MetaOps, "export", meta, "operation", 0},
		{node, mounts + "response_time_seconds_total", SeenNFS, spent, c.ClientRead, "export", read, "", 1},
		{node, mounts + "response_time_seconds_total", SeenNFS, spent, c.ClientWrite, "export", write, "", 1},
		{node, mounts + "response_time_seconds_total", SeenNFS, spent, c.ClientMeta, "export", meta, "operation", 1},

		{node, "node_nfsd_disk_bytes_read_total", NFSServer, rate, c.ReadBytes, "", nil, "", 0},
		{node, "node_nfsd_disk_bytes_written_total", NFSServer, rate, c.WriteBytes, "", nil, "", 0},
		{node, "node_nfsd_server_threads", NFSServer, gauge, c.Threads, "", nil, "", 0},
		{node, "node_network_receive_bytes_total", Node, rate, c.LinkRxBytes, "", link, "", 0},
		{node, "node_network_transmit_bytes_total", Node, rate, c.LinkTxBytes, "", link, "", 0},
		{node, "node_infiniband_port_data_received_bytes_total", Node, rate, c.LinkRxBytes, "", nil, "", 0},
		{node, "node_infiniband_port_data_transmitted_bytes_total", Node, rate, c.LinkTxBytes, "", nil, "", 0},
		{node, "node_disk_reads_completed_total", Disk, rate, c.ReadOps, "device", disk, "", 0},
		{node, "node_disk_writes_completed_total", Disk, rate, c.WriteOps, "device", disk, "", 0},
		{node, "node_disk_read_time_seconds_total", Disk, spent, c.ReadExec, "device", disk, "", 1},
		{node, "node_disk_write_time_seconds_total", Disk, spent, c.WriteExec, "device", disk, "", 1},
	}
}

// matcher is a row with its patterns.
type matcher struct {
	row
	called *regexp.Regexp
	labels []*regexp.Regexp
}

// table is the rows, ready to match.
type table []matcher

func newTable() table {
	all := rows()
	t := make(table, len(all))
	for i := range all {
		t[i] = matcher{row: all[i], called: compile(all[i].name)}
		for _, l := range all[i].where {
			t[i].labels = append(t[i].labels, compile(l.pattern))
		}
	}
	return t
}

func compile(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")$") }

// has reports whether a metric is in some row.
func (t table) has(name string) bool {
	for i := range t {
		if t[i].called.MatchString(name) {
			return true
		}
	}
	return false
}

// matches reports whether labels are those of the row.
func (m *matcher) matches(labels map[string]string) bool {
	if !m.called.MatchString(labels[nameLabel]) || m.subject != "" && labels[m.subject] == "" {
		return false
	}
	for i, l := range m.where {
		if !m.labels[i].MatchString(labels[l.name]) {
			return false
		}
	}
	return true
}
