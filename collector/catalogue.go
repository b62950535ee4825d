package collector

import (
	"slices"
	"strings"

	"fairway/collector/topology"
)

// Info is a metric's row in the catalogue: all that the wire, the store, the API, the faces and the documentation
// know of it. Adding a metric is one row, under a number of its own.
type Info struct {
	Metric Metric
	Name   string // in files, URLs and the API
	Unit   Unit
	Label  string // on pages and in charts
	Column Column // where a list shows the metric
	Help   string // a line for documentation and for PromQL's metadata
	// Full is full scale of a heat map, in the unit; of bytes/s a node's peak bandwidth counts where it is known.
	// 0: none.
	Full float64
	// MoreIsWorse says that a large value is trouble, and not work done.
	MoreIsWorse bool
	// Of are the operations that the value belongs to: bytes are a multiple of them, and where there are none
	// there is nothing to wait for. The store's block format depends on it: a row's never changes.
	Of [2]Metric
	// Chart groups the metrics that are drawn into one chart; "" is drawn nowhere.
	Chart string
	// Scale names the heat-map scale to which the metric adds, on the layers with InScale.
	Scale string
	// What each layer shows of it; 0 where no source of the layer reports it.
	Forwarder, Compute, Storage, Metadata Place
}

// Column is a metric's column in lists.
type Column struct {
	Name  string `json:"name"`  // in addresses
	Title string `json:"title"` // up to six letters
}

// Place says where a layer's pages show a metric that its nodes report.
type Place uint8

// The places.
const (
	Kept Place = 1 << iota // reported by the layer's sources: a series, and a chart where the row has one
	// a column of the list of nodes, and a number of the node's page beside its peers' median
	InList
	InScale  // part of a scale of the layer's heat map
	Evidence // kept with a finding on such a node
	Rare     // only some kinds of the layer's nodes report it: a list shows it where one does
)

// Words names the places.
func (p Place) Words() (words []string) {
	for i, word := range [...]string{"series", "list", "scale", "evidence", "rare"} {
		if p>>i&1 != 0 {
			words = append(words, word)
		}
	}
	return words
}

// Unit is what a metric is counted in.
type Unit uint8

// The units.
const (
	Count Unit = iota
	BytesPerSec
	OpsPerSec
	PerSec
	Requests
	Seconds
	Ratio
	CPUs
	Files
	Hash
	BitsPerSec
)

// UnitInfo says how values of a unit are written.
type UnitInfo struct {
	Name  string  // in documentation
	Prom  string  // the word at the end of PromQL's names; "": none
	Shown string  // on screens
	Scale float64 // from the unit to the shown one
	// Digits after the point for shown values below 10; larger ones have none.
	Digits int
}

var units = [...]UnitInfo{
	Count:       {"count", "", "", 1, 1},
	BytesPerSec: {"bytes/s", "per_second", "MB/s", 1e-6, 1},
	OpsPerSec:   {"1/s", "per_second", "ops/s", 1, 1},
	PerSec:      {"1/s", "per_second", "per s", 1, 1},
	Requests:    {"requests", "", "requests", 1, 1},
	Seconds:     {"s", "seconds", "ms", 1e3, 1},
	Ratio:       {"0..1", "ratio", "%", 100, 0},
	CPUs:        {"s/s", "per_second", "cores", 1, 1},
	Files:       {"files", "", "files", 1, 0},
	Hash:        {"", "", "", 1, 0},
	BitsPerSec:  {"bit/s", "per_second", "Gb/s", 1e-9, 1},
}

// Info returns how values of a unit are written.
func (u Unit) Info() UnitInfo { return units[u] }

var (
	reads  = [2]Metric{ReadOps}
	writes = [2]Metric{WriteOps}
	metas  = [2]Metric{MetaOps}
	moves  = [2]Metric{ReadOps, WriteOps}
)

const listed = Kept | InList

// catalogue has the rows in the order in which lists and pages show them.
var catalogue = []Info{
	{Metric: ReadBytes, Name: "read_bytes", Unit: BytesPerSec, Label: "read", Column: Column{"read", "READ"},
		Help: "File data read: served by a forwarder or server, used by a compute node.",
		Full: 1e9, Of: reads, Chart: "data", Scale: "bw",
		Forwarder: listed | InScale | Evidence, Compute: listed | InScale, Storage: Kept},
	{Metric: WriteBytes, Name: "write_bytes", Unit: BytesPerSec, Label: "write", Column: Column{"write", "WRITE"},
		Help: "File data written: served by a forwarder or server, used by a compute node.",
		Full: 1e9, Of: writes, Chart: "data", Scale: "bw",
		Forwarder: listed | InScale | Evidence, Compute: listed | InScale, Storage: Kept},
	{Metric: RoutedBytes, Name: "routed_bytes", Unit: BytesPerSec, Label: "routed", Column: Column{"routed", "ROUTED"},
		Help: "Data that a router forwarded, both directions together: it does not know what of it is read and what " +
			"written.",
		Full: 1e9, Chart: "data", Scale: "bw",
		Forwarder: listed | InScale | Evidence | Rare},
	{Metric: RoutedOps, Name: "routed_ops", Unit: OpsPerSec, Label: "messages routed",
		Help: "Messages that a router forwarded.", Chart: "metadata", Forwarder: Kept | Evidence},
	{Metric: TransitTime, Name: "transit_time", Unit: Seconds, Label: "transit", Column: Column{"transit", "TRANms"},
		Help:        "Mean time that a message was inside a router, waiting for buffers and credits included.",
		MoreIsWorse: true, Of: [2]Metric{RoutedOps}, Chart: "wait", Forwarder: listed | Evidence | Rare},
	{Metric: BuffersFreeRatio, Name: "buffers_free_ratio", Unit: Ratio, Label: "router buffers free",
		Help:  "Least share of free buffers of any of a router's pools; at 0 messages wait for a buffer.",
		Chart: "busy", Forwarder: Kept | Evidence},
	{Metric: TxWaiting, Name: "tx_waiting", Unit: Requests, Label: "waiting to be sent",
		Help:        "LNet messages that wait for a peer's credit, when it was looked at.",
		MoreIsWorse: true, Chart: "queue",
		Forwarder: Kept | Evidence, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: RouteUp, Name: "route_up", Label: "route up",
		Help:    "1 where a sender's table of routes says that its route over the router is up, else 0.",
		Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: RoundTripTime, Name: "round_trip_time", Unit: Seconds, Label: "round trip over the router",
		Help: "Mean time from a sender's LNet request over the router to its answer, the far end's part included; " +
			"Lustre 2.17.55 and later, every ten seconds.",
		MoreIsWorse: true, Of: [2]Metric{RoundTrips},
		Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: RoundTrips, Name: "round_trips", Unit: OpsPerSec, Label: "round trips over the router",
		Help:    "Answered LNet requests that a sender had sent over the router.",
		Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: QueueLen, Name: "queue_len", Unit: Requests, Label: "queue", Column: Column{"queue", "QUEUE"},
		Help: "Requests waiting, not in service; the mean over the second where it is sampled more often.",
		Full: 64, MoreIsWorse: true, Of: moves, Chart: "queue", Scale: "queue",
		Forwarder: listed | InScale | Evidence, Storage: Kept, Metadata: Kept},
	{Metric: InFlight, Name: "in_flight", Unit: Requests, Label: "in flight",
		Help:        "Requests waiting and in service; the mean over the second where it is sampled more often.",
		MoreIsWorse: true, Of: moves, Chart: "queue",
		Forwarder: Kept | Evidence, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: MetaQueueLen, Name: "meta_queue_len", Unit: Requests, Label: "metadata queue",
		Help:        "Metadata requests waiting, not in service.",
		MoreIsWorse: true, Of: metas, Chart: "queue", Forwarder: Kept, Metadata: Kept},
	{Metric: MetaInFlight, Name: "meta_in_flight", Unit: Requests, Label: "metadata in flight",
		Help:        "Metadata requests that a compute node waits for where nothing times them, mean over the second.",
		MoreIsWorse: true, Of: metas, Chart: "queue", Compute: Kept},
	{Metric: RequestAge, Name: "request_age", Unit: Seconds, Label: "oldest request",
		Help:        "For how long the compute node has waited for its oldest request without an answer.",
		MoreIsWorse: true, Chart: "clients", Compute: Kept},
	{Metric: WaiterAge, Name: "waiter_age", Unit: Seconds, Label: "longest waiter",
		Help:        "For how long the longest waiter of GPFS's daemon had waited when it was looked at last.",
		MoreIsWorse: true, Chart: "waiters", Forwarder: Kept | Evidence},
	{Metric: DiskWaiterAge, Name: "disk_waiter_age", Unit: Seconds, Label: "longest waiter for a disk",
		Help:        "The same of the waiters whose reason is a disk or its server.",
		MoreIsWorse: true, Chart: "waiters", Forwarder: Kept},
	{Metric: ThreadsBusy, Name: "threads_busy", Label: "threads busy", Help: "Worker threads in service.",
		MoreIsWorse: true, Of: moves, Chart: "queue", Forwarder: Kept, Storage: Kept, Metadata: Kept},
	{Metric: ReadOps, Name: "read_ops", Unit: OpsPerSec, Label: "reads", Help: "Reads completed.",
		Forwarder: Kept, Compute: Kept, Storage: Kept},
	{Metric: WriteOps, Name: "write_ops", Unit: OpsPerSec, Label: "writes", Help: "Writes completed.",
		Forwarder: Kept, Compute: Kept, Storage: Kept},
	{Metric: MetaWait, Name: "meta_wait", Unit: Seconds, Label: "metadata wait", Column: Column{"mdwait", "MDms"},
		Help: "Mean time in the queue of the metadata requests served in this second.",
		Full: 0.1, MoreIsWorse: true, Of: metas, Chart: "wait", Scale: "mdwait",
		Forwarder: listed | InScale | Evidence, Storage: Kept, Metadata: Kept},
	{Metric: MetaOps, Name: "meta_ops", Unit: OpsPerSec, Label: "metadata operations", Column: Column{"md", "MD/s"},
		Help: "Metadata operations completed.",
		Full: 1000, Chart: "metadata", Scale: "mdops",
		Forwarder: listed | Evidence, Compute: listed | InScale, Storage: Kept, Metadata: Kept},
	{Metric: ServerTime, Name: "server_time", Unit: Seconds, Label: "time in server", Column: Column{"server", "SRVms"},
		Help: "Mean time in the server over all classes, by Little's law: mean requests in flight over " +
			"completions.",
		MoreIsWorse: true, Of: moves, Chart: "wait", Forwarder: listed | Evidence},
	{Metric: ReadWait, Name: "read_wait", Unit: Seconds, Label: "read wait",
		Help:        "Mean time in the queue of the reads served in this second.",
		MoreIsWorse: true, Of: reads, Chart: "wait", Forwarder: Kept | Evidence, Storage: Kept},
	{Metric: WriteWait, Name: "write_wait", Unit: Seconds, Label: "write wait",
		Help:        "Mean time in the queue of the writes served in this second.",
		MoreIsWorse: true, Of: writes, Chart: "wait", Forwarder: Kept | Evidence, Storage: Kept},
	{Metric: ReadExec, Name: "read_exec", Unit: Seconds, Label: "read service",
		Help:        "Mean time in service of the reads served in this second.",
		MoreIsWorse: true, Of: reads, Chart: "service", Forwarder: Kept | Evidence, Storage: Kept},
	{Metric: WriteExec, Name: "write_exec", Unit: Seconds, Label: "write service",
		Help:        "Mean time in service of the writes served in this second.",
		MoreIsWorse: true, Of: writes, Chart: "service", Forwarder: Kept | Evidence, Storage: Kept},
	{Metric: MetaExec, Name: "meta_exec", Unit: Seconds, Label: "metadata service",
		Help:        "Mean time in service of the metadata requests served in this second.",
		MoreIsWorse: true, Of: metas, Chart: "service", Forwarder: Kept | Evidence, Storage: Kept, Metadata: Kept},
	{Metric: ClientRead, Name: "client_read", Unit: Seconds, Label: "read, as clients saw it",
		Help: "Mean time that a read took as its compute node saw it.",
		Full: 0.1, MoreIsWorse: true, Of: reads, Chart: "clients", Scale: "latency",
		Forwarder: Kept, Compute: listed | InScale},
	{Metric: ClientWrite, Name: "client_write", Unit: Seconds, Label: "write, as clients saw it",
		Help: "Mean time that a write took as its compute node saw it.",
		Full: 0.1, MoreIsWorse: true, Of: writes, Chart: "clients", Scale: "latency",
		Forwarder: Kept, Compute: listed | InScale},
	{Metric: ClientMeta, Name: "client_meta", Unit: Seconds, Label: "metadata, as clients saw it",
		Help:        "Mean time that a metadata operation took as its compute node saw it.",
		MoreIsWorse: true, Of: metas, Chart: "clients", Forwarder: Kept, Compute: Kept},
	{Metric: Errors, Name: "errors", Unit: PerSec, Label: "errors", Column: Column{"err", "ERR/s"},
		Help: "Failed operations.",
		Full: 10, MoreIsWorse: true, Chart: "errors", Scale: "err",
		Forwarder: listed | InScale, Compute: Kept | InScale},
	{Metric: Retransmits, Name: "retransmits", Unit: PerSec, Label: "retransmits",
		Help:        "Requests of an NFS client that were sent again.",
		MoreIsWorse: true, Chart: "errors", Forwarder: Kept, Compute: Kept},
	{Metric: Reconnects, Name: "reconnects", Unit: PerSec, Label: "reconnects",
		Help:        "Connections of NFS mounts and Lustre imports that were made anew, but for those that idled.",
		MoreIsWorse: true, Chart: "errors", Forwarder: Kept | Evidence, Compute: Kept},
	{Metric: Recovering, Name: "recovering", Label: "targets in recovery",
		Help:        "Targets of a Lustre server that wait for their clients to come back.",
		MoreIsWorse: true, Chart: "recovery", Storage: Kept, Metadata: Kept},
	{Metric: PathLossRatio, Name: "path_loss_ratio", Unit: Ratio, Label: "lost on the way",
		Help: "Share of the TCP segments between a compute node and its forwarder that were sent again or came " +
			"out of order; absent below 20 segments.",
		MoreIsWorse: true, Chart: "loss", Compute: Kept},
	{Metric: DiskReadBytes, Name: "disk_read_bytes", Unit: BytesPerSec, Label: "disk read",
		Help: "Read from block devices.", Chart: "disk", Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: DiskWriteBytes, Name: "disk_write_bytes", Unit: BytesPerSec, Label: "disk write",
		Help: "Written to block devices.", Chart: "disk", Forwarder: Kept, Compute: Kept, Storage: Kept,
		Metadata: Kept},
	{Metric: LinkRxBytes, Name: "link_rx_bytes", Unit: BytesPerSec, Label: "link in",
		Help: "Received over physical network links, or LNet.", Chart: "link",
		Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: LinkTxBytes, Name: "link_tx_bytes", Unit: BytesPerSec, Label: "link out",
		Help: "Sent over physical network links, or LNet.", Chart: "link",
		Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: LinkRateBits, Name: "link_rate_bits", Unit: BitsPerSec, Label: "link rate",
		Help: "Rates at which the node's physical links that are up run, added up.", Chart: "rate",
		Forwarder: Kept | Evidence, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: LinkLanes, Name: "link_lanes", Label: "link lanes",
		Help:      "Lanes of the InfiniBand port with the fewest of those that are up.",
		Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: LinkErrors, Name: "link_errors", Unit: PerSec, Label: "link errors",
		Help: "Symbol errors, packets with errors and discarded ones, and losses of the link, of InfiniBand's ports " +
			"and RDMA over Ethernet.",
		MoreIsWorse: true, Chart: "errors", Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: LinkWaitTicks, Name: "link_wait_ticks", Unit: PerSec, Label: "link waits",
		Help: "Ticks in which an InfiniBand port had data to send and sent none: who receives is slow, or the way " +
			"there. How long a tick is differs by card and is not known: compare with equal cards.",
		MoreIsWorse: true,
		Forwarder:   Kept | Evidence, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: ResentRatio, Name: "resent_ratio", Unit: Ratio, Label: "sent again",
		Help:        "Share of the TCP segments of the node that were sent again; absent below 100 segments a second.",
		MoreIsWorse: true, Chart: "signs",
		Forwarder: Kept | Evidence, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: DiskBusyRatio, Name: "disk_busy_ratio", Unit: Ratio, Label: "disk busy",
		Help:        "Share of the second in which the busiest block device was busy.",
		MoreIsWorse: true, Chart: "busy", Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: PSIIOSome, Name: "psi_io_some", Unit: Ratio, Label: "stalled on I/O, some",
		Help:        "Share of the second in which some task stalled on I/O.",
		MoreIsWorse: true, Chart: "busy", Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: PSIIOFull, Name: "psi_io_full", Unit: Ratio, Label: "stalled on I/O, all",
		Help:        "Share of the second in which all tasks stalled on I/O.",
		MoreIsWorse: true, Chart: "busy", Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: CacheHitRatio, Name: "cache_hit_ratio", Unit: Ratio, Label: "cache hits",
		Help: "Share of the pages that the client's cache had.", Chart: "busy", Forwarder: Kept, Compute: Kept},
	{Metric: NoThreadRatio, Name: "no_thread_ratio", Unit: Ratio, Label: "found no idle thread",
		Help:        "Share of the requests to a kernel NFS server that found none of its threads idle.",
		MoreIsWorse: true, Chart: "busy", Forwarder: Kept | Evidence, Storage: Kept},
	{Metric: Threads, Name: "threads", Label: "threads", Help: "Worker threads.",
		Forwarder: Kept, Storage: Kept, Metadata: Kept},
	{Metric: Connections, Name: "connections", Label: "connections", Help: "Clients connected.",
		Forwarder: Kept, Storage: Kept, Metadata: Kept},
	{Metric: MergedOps, Name: "merged_ops", Unit: OpsPerSec, Label: "requests merged",
		Help: "Requests that a fairway-queue sent together.", Forwarder: Kept},
	{Metric: MergedMessages, Name: "merged_messages", Unit: OpsPerSec, Label: "messages of merged requests",
		Help: "Messages of them.", Forwarder: Kept},
	{Metric: MergedBytes, Name: "merged_bytes", Unit: BytesPerSec, Label: "bytes merged",
		Help: "Bytes of them.", Forwarder: Kept},
	{Metric: SpaceUsedRatio, Name: "space_used_ratio", Unit: Ratio, Label: "space used, fullest target",
		Help: "Used share of the bytes of the server's fullest target.", MoreIsWorse: true, Chart: "capacity",
		Storage: Kept, Metadata: Kept},
	{Metric: InodesUsedRatio, Name: "inodes_used_ratio", Unit: Ratio, Label: "inodes used, fullest target",
		Help: "The same of inodes.", MoreIsWorse: true, Chart: "capacity", Storage: Kept, Metadata: Kept},
	{Metric: OpenHandles, Name: "open_handles", Label: "open handles", Chart: "handles", Forwarder: Kept,
		Help: "Files and directories that clients hold on the forwarder, the agent's own few included."},
	{Metric: ProbeRead, Name: "probe_read", Unit: Seconds, Label: "canary read",
		Help: "Time that a canary's read took.", MoreIsWorse: true, Forwarder: Kept | Evidence},
	{Metric: ProbeWrite, Name: "probe_write", Unit: Seconds, Label: "canary write",
		Help: "Time that a canary's write took.", MoreIsWorse: true, Forwarder: Kept | Evidence},
	{Metric: ProbeMeta, Name: "probe_meta", Unit: Seconds, Label: "canary metadata",
		Help: "Time that a canary's getattr took.", MoreIsWorse: true, Forwarder: Kept | Evidence},
	{Metric: AnswerTime, Name: "answer_time", Unit: Seconds, Label: "answer to the agent",
		Help: "Time that a server took to answer for its statistics: long while its process is stopped or " +
			"starved.",
		MoreIsWorse: true, Chart: "answer", Forwarder: Kept | Evidence, Storage: Kept},
	{Metric: CPUSeconds, Name: "cpu_seconds", Unit: CPUs, Label: "CPU",
		Help: "CPU time of the node's file service.", Forwarder: Kept, Storage: Kept},
	{Metric: CPUWait, Name: "cpu_wait", Unit: CPUs, Label: "waited for a CPU", Chart: "cpu",
		Help: "Time in which threads of the network drivers and of the file service could have run and had no " +
			"processor, all of them together.",
		MoreIsWorse: true, Forwarder: Kept | Evidence, Storage: Kept, Metadata: Kept},
	{Metric: ThrottledRatio, Name: "throttled_ratio", Unit: Ratio, Label: "throttled", Chart: "signs",
		Help: "Share of the second in which the hottest of the node's processors was throttled; the kernel counts a " +
			"throttling when it ends.",
		MoreIsWorse: true, Forwarder: Kept | Evidence, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: ThrottleEvents, Name: "throttle_events", Unit: PerSec, Label: "throttlings begun",
		Help:        "How often the node's processors began to be throttled, however long.",
		MoreIsWorse: true, Forwarder: Kept | Evidence, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: CPUBusyRatio, Name: "cpu_busy_ratio", Unit: Ratio, Label: "CPU busy", Chart: "busy",
		Help:      "Share of the processors' last ten seconds that was neither idle nor waiting for I/O.",
		Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: MemoryUsedRatio, Name: "memory_used_ratio", Unit: Ratio, Label: "memory used", Chart: "busy",
		Help:      "Share of the memory that is not available, every ten seconds.",
		Forwarder: Kept, Compute: Kept, Storage: Kept, Metadata: Kept},
	{Metric: LockCallbacks, Name: "lock_callbacks", Unit: OpsPerSec, Label: "locks called back",
		Help:        "Locks of the file system that servers took back because another node asked for the same.",
		MoreIsWorse: true, Forwarder: Kept, Compute: Kept},
}

// ofJobs are the rows of the metrics of a job's share alone, from FilesRead down.
var ofJobs = [...]Info{
	{Metric: FilesRead, Name: "files_read", Unit: Files,
		Help: "Files of which the job has read at least 1 MiB through one open file since it began, up to 1024."},
	{Metric: FilesWritten, Name: "files_written", Unit: Files,
		Help: "Files of which the job has written at least 1 MiB through one open file since it began, up to 1024."},
	{Metric: LeastFileRead, Name: "least_file_read", Unit: Hash,
		Help: "The least hash of the files read; nodes that share a file have the same."},
	{Metric: LeastFileWritten, Name: "least_file_written", Unit: Hash,
		Help: "The least hash of the files written; nodes that share a file have the same."},
	{Metric: FilesCreated, Name: "files_created", Unit: OpsPerSec,
		Help: "Files that the job created at this metadata server."},
	{Metric: FilesOpened, Name: "files_opened", Unit: OpsPerSec,
		Help: "Opens by the job at this metadata server, those that create included."},
}

var (
	byNumber = func() (rows [metricEnd]Info) {
		for _, row := range catalogue {
			rows[row.Metric] = row
		}
		return rows
	}()
	byName = func() map[string]Metric {
		names := make(map[string]Metric, len(catalogue))
		for _, row := range catalogue {
			names[row.Name] = row.Metric
		}
		return names
	}()
)

// Catalogue lists the metrics that a node's samples may have, in the order in which lists and pages show them.
func Catalogue() []Info { return slices.Clone(catalogue) }

// At returns what the nodes of a role show of the metric.
func (i *Info) At(role topology.Role) Place {
	switch role {
	case topology.Forwarder:
		return i.Forwarder
	case topology.Compute:
		return i.Compute
	case topology.Storage:
		return i.Storage
	case topology.Metadata:
		return i.Metadata
	}
	return 0
}

// ShownAs lists the metrics that the nodes of a role show in a place, in the catalogue's order.
func ShownAs(role topology.Role, p Place) (metrics []Metric) {
	for i := range catalogue {
		if catalogue[i].At(role)&p != 0 {
			metrics = append(metrics, catalogue[i].Metric)
		}
	}
	return metrics
}

// Info returns a metric's row; an empty one for an unknown number.
func (m Metric) Info() Info {
	switch {
	case m < metricEnd:
		return byNumber[m]
	case m.OfJobs():
		return ofJobs[FilesRead-m]
	}
	return Info{}
}

// SeriesName returns the name that PromQL has for a metric, such as fairway_read_bytes_per_second: its unit stands
// at the end, as Prometheus's conventions want.
func (m Metric) SeriesName() string {
	row := m.Info()
	name, word := "fairway_"+row.Name, row.Unit.Info().Prom
	if word == "" || strings.HasSuffix(name, "_"+word) {
		return name
	}
	return name + "_" + word
}
