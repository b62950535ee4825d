package collector

import "slices"

// Metric identifies one measured quantity of a node and second. The numbers are part of the wire
// format and of the store's files: append, never renumber.
type Metric uint8

// The metrics that sources report (docs/metrics.md). Rates are per second; waits, exec times, client and probe
// latencies are mean seconds of the operations served in that second.
const (
	MetricNone     Metric = iota
	ReadBytes             // bytes/s
	WriteBytes            // bytes/s
	ReadOps               // 1/s
	WriteOps              // 1/s
	MetaOps               // 1/s
	QueueLen              // requests waiting, mean over the second where sampled faster
	MetaQueueLen          // metadata requests waiting
	ReadWait              // s
	WriteWait             // s
	MetaWait              // s
	ReadExec              // s
	WriteExec             // s
	MetaExec              // s
	ThreadsBusy           // count
	Threads               // count
	Connections           // count
	CacheHitRatio         // 0..1
	LinkRxBytes           // bytes/s
	LinkTxBytes           // bytes/s
	ClientRead            // s, as the compute node saw it
	ClientWrite           // s
	ClientMeta            // s
	ProbeRead             // s, of the canary I/O
	ProbeWrite            // s
	ProbeMeta             // s
	ServerTime            // s, mean time in the server over all classes by Little's law
	CPUSeconds            // CPU seconds used per second by the node's file service
	DiskReadBytes         // bytes/s at block devices
	DiskWriteBytes        // bytes/s at block devices
	DiskBusyRatio         // 0..1, busiest device
	PSIIOSome             // 0..1, share of the second in which some task stalled on I/O
	PSIIOFull             // 0..1
	Errors                // failed operations, 1/s
	Retransmits           // 1/s
	BacklogLen            // requests that no worker is free for, where QueueLen counts those in service too
	PathLossRatio         // 0..1, segments between the node and its forwarder that were sent again or came disordered
	metricEnd
)

// The metrics of a job's share of a node alone. They tell which nodes share files, are no series and
// have no place in the store: their numbers come from the other end of the wire's range, 1 to 127.
const (
	FilesRead        Metric = 127 - iota // files that the job read much of so far
	FilesWritten                         // files that it wrote much of
	LeastFileRead                        // least hash of those files, the same on every node that shares it
	LeastFileWritten                     // of those written
	firstOfJobs      = LeastFileWritten
)

// OfJobs says whether a metric is of a job's share alone.
func (m Metric) OfJobs() bool { return m >= firstOfJobs && m <= FilesRead }

var jobMetricNames = [...]string{"files_read", "files_written", "least_file_read", "least_file_written"}

var metricNames = [...]string{
	"", "read_bytes", "write_bytes", "read_ops", "write_ops", "meta_ops", "queue_len",
	"meta_queue_len", "read_wait", "write_wait", "meta_wait", "read_exec", "write_exec",
	"meta_exec", "threads_busy", "threads", "connections", "cache_hit_ratio", "link_rx_bytes",
	"link_tx_bytes", "client_read", "client_write", "client_meta", "probe_read", "probe_write",
	"probe_meta", "server_time", "cpu_seconds", "disk_read_bytes", "disk_write_bytes",
	"disk_busy_ratio", "psi_io_some", "psi_io_full", "errors", "retransmits", "backlog_len", "path_loss_ratio",
}

// MetricCount is one more than the largest metric number in use.
const MetricCount = int(metricEnd)

// String returns the metric's name as used in files, URLs and the API; "" for an unknown number.
func (m Metric) String() string {
	if int(m) < len(metricNames) {
		return metricNames[m]
	}
	if m.OfJobs() {
		return jobMetricNames[FilesRead-m]
	}
	return ""
}

// ParseMetric is the inverse of String; ok is false for any other word.
func ParseMetric(name string) (m Metric, ok bool) {
	i := slices.Index(metricNames[:], name)
	if i <= 0 {
		return MetricNone, false
	}
	return Metric(i), true
}

// MarshalText writes the metric's name.
func (m Metric) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a metric's name; an unknown word becomes MetricNone.
func (m *Metric) UnmarshalText(b []byte) error {
	*m, _ = ParseMetric(string(b))
	return nil
}
