package console

import (
	"time"

	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
)

// JobCause explains a job's I/O time from its logs.
type JobCause struct {
	Job topology.JobID `json:"job"`
	// Forwarders served the job, as far as that is known.
	Forwarders []topology.ForwarderID `json:"forwarders"`
	// Logs has one entry for each program that the job ran.
	Logs []LogCause `json:"logs"`
}

// LogCause explains one program run; a direction without I/O is nil.
type LogCause struct {
	Log   string            `json:"log"` // the archive's column log, which is too large for JavaScript's numbers
	App   string            `json:"app"`
	Procs int64             `json:"procs"`
	Start time.Time         `json:"start"`
	End   time.Time         `json:"end"`
	Read  *rootcause.Answer `json:"read"`
	Write *rootcause.Answer `json:"write"`
}
