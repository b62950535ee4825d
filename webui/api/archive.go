package api

import (
	"time"

	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// OccupancyView is the share of reported seconds near peak, per forwarder and bucket of time.
type OccupancyView struct {
	FromMillis   int64                `json:"from_ms"`
	ToMillis     int64                `json:"to_ms"`
	BucketMillis int64                `json:"bucket_ms"` // buckets begin at multiples of it since 1970, UTC
	Threshold    float64              `json:"threshold"` // 0..1 of peak
	Nodes        []tsdb.NodeOccupancy `json:"nodes"`
	// Layer is the minimum, mean and maximum over the forwarders, and their imbalance, by bucket.
	Layer  []tsdb.LayerOccupancy `json:"layer"`
	NoPeak []topology.NodeID     `json:"no_peak"` // not counted: their peak is not known
}

// SlowJob is a program run of low bandwidth from the archive of I/O logs, with the factors that
// contribute to it (IOMiner, section II-D). A nil pointer is a value that the log does not have.
type SlowJob struct {
	Job         topology.JobID `json:"job_id"`
	App         string         `json:"app"`
	Procs       int64          `json:"procs"`
	Start       time.Time      `json:"start_time,omitzero"`
	Bytes       *float64       `json:"bytes"`
	BytesPerSec *float64       `json:"bytes_per_sec"` // on the critical path
	// Small, Nonconsec and Collective are shares of requests, LongestShare that of the I/O time which
	// one file takes, 0..1.
	Small        *float64 `json:"small"`
	Nonconsec    *float64 `json:"nonconsec"`
	Collective   *float64 `json:"collective"`
	LongestShare *float64 `json:"longest_share"`
	OSTs         *float64 `json:"osts"`
	ProcsPerOST  *float64 `json:"procs_per_ost"`
}

// JobCause explains a job's I/O time from its logs.
type JobCause struct {
	Job topology.JobID `json:"job"`
	// Forwarders served the job, as far as that is known.
	Forwarders []topology.ForwarderID `json:"forwarders"`
	// Logs has one entry for each program that the job ran; of several, first one for all of them together, whose
	// Log is empty.
	Logs []LogCause `json:"logs"`
}

// LogCause explains one program run; a direction without I/O is nil, but of one that moved no bytes at all Write has
// the verdict on its metadata.
type LogCause struct {
	Log   string            `json:"log"` // the archive's column log, which is too large for JavaScript's numbers
	App   string            `json:"app"`
	Procs int64             `json:"procs"`
	Start time.Time         `json:"start"`
	End   time.Time         `json:"end"`
	Read  *rootcause.Answer `json:"read"`
	Write *rootcause.Answer `json:"write"`
	// Main is the first of the causes of both directions: what acted on the job from outside, then what it did itself.
	Main *rootcause.Clause `json:"main"`
}
