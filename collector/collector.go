// Package collector senses the machine: once a second it turns what a node exposes (a diod control
// tree, Lustre or Linux counters, a mount's own statistics) into frames of samples and streams
// them to the daemon.
package collector

import (
	"context"
	"errors"
	"strings"
	"time"

	"fairway/collector/topology"
)

// Sample is one value of one metric. A value that is not known is absent from its frame, never 0.
type Sample struct {
	Metric Metric  `json:"metric"`
	Value  float64 `json:"value"`
}

// MaxValue bounds what a value may be, either sign: nothing that is measured comes near it, and sums and
// products of such values stay finite.
const MaxValue = 1e30

// IsValue says whether v can be the value of a sample: a number, and within MaxValue.
func IsValue(v float64) bool { return -MaxValue <= v && v <= MaxValue }

// JobSamples are the samples of one job's share of a node's I/O in the frame's second.
type JobSamples struct {
	// Job is one, or what else a storage server counts: see its IsJob.
	Job topology.JobID `json:"job"`
	// Target is the one of the storage server's at which the share is counted; a job may have a share at each.
	Target  topology.TargetID `json:"target,omitempty"`
	Samples []Sample          `json:"samples"`
}

// What a storage server says in place of a job. No id of a client can be one of them: those have no blank there.
const (
	// SmallJobs are those together that did least where too many did something.
	SmallJobs topology.JobID = topology.NoJob + " small"
	// UncountedWork is what a target counts in all and for no id.
	UncountedWork topology.JobID = topology.NoJob + " rest"
)

// TargetSamples are the samples of a node's I/O to one storage target in the frame's second, as the target's client saw
// it. Bytes and requests are a second; ClientRead and ClientWrite are mean seconds from a request's sending to its
// reply. They are no series and have no place in the store.
type TargetSamples struct {
	Target  topology.TargetID `json:"target"`
	Samples []Sample          `json:"samples"`
}

// Route is one observed use of a forwarder by a compute node.
type Route struct {
	Client    topology.NodeID      `json:"client"`
	Forwarder topology.ForwarderID `json:"forwarder"`
	// Generation counts the remaps of the client's mount since it started; 0 where the observer
	// cannot know it (a forwarder's list of connections).
	Generation uint64 `json:"generation,omitempty"`
	// Lost says that the client's mount is set to that forwarder and gets no answer from it: the
	// client has no forwarder until it is back or the mount is moved.
	Lost bool `json:"lost,omitempty"`
	// Share is the part of the client's traffic that goes this way, where the client spreads it over several
	// forwarders and reports them all; 0: all of it.
	Share float64 `json:"share,omitempty"`
	// Assumed says that the share was not measured: the client may use all of its forwarders alike.
	Assumed bool `json:"assumed,omitempty"`
	// Address is a floating one. A client reports it instead of the forwarder, which it cannot know; a forwarder
	// reports each address that it has now instead of its clients.
	Address string `json:"address,omitempty"`
}

// ServiceEnded is in the error of a source whose service's process has ended since it was read.
const ServiceEnded = "the service has ended"

// SourceStatus is what the agent says of one of its own sources in the frame's second.
type SourceStatus struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration_ns"`
	Failures uint64        `json:"failures"` // since the agent's start
	Resets   uint64        `json:"resets"`   // counters seen to go backwards, since start
	Err      string        `json:"err,omitempty"`
	// Note is what the source says in words of a value, such as what GPFS's longest waiter waits for; of several, a
	// line each that begins with what it is about.
	Note string `json:"note,omitempty"`
}

// Frame is everything known of one node in one second.
type Frame struct {
	Node topology.NodeID `json:"node"`
	Role topology.Role   `json:"role"`
	// TimeMillis is the start of the second the frame describes, Unix milliseconds UTC.
	TimeMillis int64        `json:"time_ms"`
	Samples    []Sample     `json:"samples"`
	Jobs       []JobSamples `json:"jobs,omitempty"`
	// Targets are the storage targets to which the node sent requests in this second; nil where it reports
	// no targets.
	Targets []TargetSamples `json:"targets,omitempty"`
	Routes  []Route         `json:"routes,omitempty"`
	Sources []SourceStatus  `json:"sources,omitempty"`
	// RoutesComplete reports whether Routes lists all clients of a forwarder, or all forwarders of a compute node. Then
	// an absent route is known to be gone.
	RoutesComplete bool `json:"routes_complete,omitempty"`
}

// Value returns the frame's value of a metric; ok is false where it was not reported.
func (f *Frame) Value(m Metric) (v float64, ok bool) { return SampleOf(f.Samples, m) }

// NoteOf returns what a source says in words about one thing; "" where it says nothing of it.
func (f *Frame) NoteOf(source, about string) string {
	for i := range f.Sources {
		if f.Sources[i].Name != source {
			continue
		}
		for line := range strings.Lines(f.Sources[i].Note) {
			if text, is := strings.CutPrefix(line, about+": "); is {
				return strings.TrimSuffix(text, "\n")
			}
		}
	}
	return ""
}

// SampleOf returns the value of a metric; ok is false where it is not among the samples.
func SampleOf(samples []Sample, m Metric) (v float64, ok bool) {
	for _, s := range samples {
		if s.Metric == m {
			return s.Value, true
		}
	}
	return 0, false
}

// ErrNoData says that a source's subject does not exist on this node (no such file, module not
// loaded). It is not a failure.
var ErrNoData = errors.New("no data")

// LoadEvery is how often a node's processors and memory are looked at.
const LoadEvery = 10 * time.Second

// Reading collects what one source saw in one tick. The runner gives each source its own and
// merges them into the node's frame.
type Reading struct {
	// Now is the tick's time: the end of the second that is being described.
	Now            time.Time
	Samples        []Sample
	Jobs           []JobSamples
	Targets        []TargetSamples
	Routes         []Route
	RoutesComplete bool
	Resets         int
	Note           string // in words, of the samples
}

// Add appends one sample.
func (r *Reading) Add(m Metric, v float64) { r.Samples = append(r.Samples, Sample{m, v}) }

// AddNote says in words something about one thing.
func (r *Reading) AddNote(about, text string) {
	if r.Note != "" {
		r.Note += "\n"
	}
	r.Note += about + ": " + text
}

// Source is one kind of thing an agent reads. Read is called once a second from one goroutine,
// must honour ctx (the runner's deadline) and leaves absent what it does not know. Close releases
// what Read opened.
type Source interface {
	Name() string
	Read(ctx context.Context, into *Reading) error
	Close() error
}
