// Package history keeps what jobs did: one record a run with its I/O profile, in an append-only
// file, and predicts from it what a job will do that starts again.
//
// A profile is built at a job's end from what the collectors saw on its compute nodes and
// forwarders, or imported in batches from the logs of a batch system and of Darshan.
package history

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/collector/topology"
)

// Run is one job's run on a set of compute nodes. A run with a zero End is running.
type Run struct {
	Job     topology.JobID `json:"job"`
	User    string         `json:"user"`
	App     string         `json:"app"`
	Project string         `json:"project,omitempty"`
	Nodes   int            `json:"nodes"` // compute nodes, at least 1
	// NodeList is kept with the start of a run, and until its profile is made.
	NodeList []topology.NodeID `json:"node_list,omitempty"`
	Start    time.Time         `json:"start"`
	End      time.Time         `json:"end,omitzero"`
	// Pending says that the run has ended and its profile is still to be made.
	Pending bool `json:"pending,omitempty"`
	// Forwarders served the run; the policy's decision and plan stand in the desk's journal.
	Forwarders []topology.ForwarderID `json:"forwarders,omitempty"`
	// Given is what the run got beside forwarders.
	Given []string `json:"given,omitempty"`
	// Kept is how it kept to its windows; nil: it had none, or did no I/O since.
	Kept    *KeptWindows `json:"kept_windows,omitempty"`
	Profile *Profile     `json:"profile,omitempty"` // nil: nothing is known of its I/O
}

// KeptWindows is what a run moved inside of its windows for I/O and outside of them, bytes.
type KeptWindows struct {
	InsideBytes  float64 `json:"inside_bytes"`
	OutsideBytes float64 `json:"outside_bytes"`
}

// What a run may have got.
const (
	GivenWindow = "window" // for its I/O
	GivenHints  = "hints"  // of ROMIO
	// GivenShares comes before the name of the policy by which forwarders were shared.
	GivenShares = "shares: "
)

// Profile is what a run did to the file system. Unknown values are absent.
type Profile struct {
	ReadBytes  float64       `json:"read_bytes"`
	WriteBytes float64       `json:"write_bytes"`
	Mode       topology.Mode `json:"mode,omitempty"`
	// IONodes counts the compute nodes that moved at least IONodeBytes.
	IONodes int `json:"io_nodes"`
	Peaks
	MetaOps float64 `json:"meta_ops"` // over the whole run
	// MetaQueue is the mean number of metadata operations waiting at a forwarder of the run while it
	// did I/O; nil: not known.
	MetaQueue *float64 `json:"meta_queue,omitempty"`
	// MetaQueueWithin is the factor to which MetaQueue is known, 0 where it was measured.
	MetaQueueWithin float64 `json:"meta_queue_within,omitempty"`
	// IOSeconds is the time in which the run read, wrote, asked for metadata or waited for an answer.
	IOSeconds float64 `json:"io_seconds"`
	Phases    []Phase `json:"phases,omitempty"`
	// Waits are the forwarders that the run waited for, the longest first; absent: not known.
	Waits []Wait `json:"waits,omitempty"`
	NodeUse
	// StepSeconds is the resolution the profile was built at, 1 for all but very long runs.
	StepSeconds int `json:"step_seconds,omitempty"`
	// Coverage is the share of node-seconds that were reported, 0..1.
	Coverage float64 `json:"coverage"`
	From     string  `json:"from"` // collectors, darshan, csv, ...
}

// Peaks are of means over StepSeconds: of all nodes together, and of the busiest one.
type Peaks struct {
	PeakBytesPerSec     float64 `json:"peak_bytes_per_sec"`
	PeakNodeBytesPerSec float64 `json:"peak_node_bytes_per_sec"`
	PeakOpsPerSec       float64 `json:"peak_ops_per_sec"` // reads and writes
}

// NodeUse is what a run's nodes used beside its I/O, 0..1; nil: not known.
type NodeUse struct {
	CPUBusy    *float64 `json:"cpu_busy,omitempty"`    // mean share of their processors' time in which they worked
	MemoryUsed *float64 `json:"memory_used,omitempty"` // the largest share of one node's memory
}

// VolumeBytes is what the run moved in both directions.
func (p *Profile) VolumeBytes() float64 { return p.ReadBytes + p.WriteBytes }

// Phase is a stretch of a run with I/O.
type Phase struct {
	AtSeconds  float64 `json:"at_seconds"` // since the run's start
	Seconds    float64 `json:"seconds"`
	ReadBytes  float64 `json:"read_bytes"`
	WriteBytes float64 `json:"write_bytes"`
	MetaOps    float64 `json:"meta_ops"`
}

// Key says which runs are runs of the same thing: same user, application, project and size.
type Key struct {
	User, App, Project string
	Nodes              int
}

// Key returns the run's key.
func (r *Run) Key() Key { return Key{r.User, r.App, r.Project, r.Nodes} }

// ErrInvalid is wrapped by every refusal of a run that cannot be true.
var ErrInvalid = errors.New("invalid run")

// check names what is wrong with a run.
func (r *Run) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: job %q: %s", ErrInvalid, r.Job, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Job == "":
		return fmt.Errorf("%w: a run without a job", ErrInvalid)
	case r.Nodes < 1:
		return bad("nodes = %d: want at least 1", r.Nodes)
	case r.Start.IsZero():
		return bad("no start")
	case r.Pending && r.End.IsZero():
		return bad("pending without an end")
	case !r.End.IsZero() && r.End.Before(r.Start):
		return bad("end %s is before start %s", r.End.Format(time.RFC3339), r.Start.Format(time.RFC3339))
	case r.Profile == nil:
		return nil
	}
	p := r.Profile
	for _, f := range []struct {
		name string
		v    float64
	}{{"read_bytes", p.ReadBytes}, {"write_bytes", p.WriteBytes}, {"io_nodes", float64(p.IONodes)},
		{"peak_bytes_per_sec", p.PeakBytesPerSec},
		{"peak_node_bytes_per_sec", p.PeakNodeBytesPerSec}, {"peak_ops_per_sec", p.PeakOpsPerSec},
		{"meta_ops", p.MetaOps},
		{"meta_queue", orZero(p.MetaQueue)}, {"cpu_busy", orZero(p.CPUBusy)}, {"memory_used", orZero(p.MemoryUsed)},
		{"meta_queue_within", p.MetaQueueWithin}, {"io_seconds", p.IOSeconds}, {"coverage", p.Coverage}} {
		if f.v < 0 || math.IsNaN(f.v) || math.IsInf(f.v, 0) {
			return bad("profile.%s = %v: want 0 or more", f.name, f.v)
		}
	}
	if !slices.Contains([]topology.Mode{"", topology.ModeNN, topology.ModeN1, topology.Mode11, topology.ModeNM},
		p.Mode) {
		return bad("profile.mode = %q: want N-N, N-1, 1-1 or N-M", p.Mode)
	}
	return nil
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
