// Package rootcause says why a job's I/O was slow: which files its I/O time went to, what was wrong
// with the way they were used, and whether a forwarder or storage target on their way was itself slow.
//
// The method is IOMiner's sweep line (Wang et al., IOMiner: Large-scale Analytics Framework for Gaining
// Knowledge from I/O Logs, section II-D) with an exact cover in place of its heap. The package reads
// no clock and no file: everything it judges is in its input.
package rootcause

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Known is a number that may be unknown: NaN and the infinities are not known, and null in JSON.
type Known float64

// Unknown is the value of what was not logged.
func Unknown() Known { return Known(math.NaN()) }

// OK says whether the number is known.
func (k Known) OK() bool { return finite(float64(k)) }

// MarshalJSON writes null for an unknown number.
func (k Known) MarshalJSON() ([]byte, error) {
	if !k.OK() {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, "%v", float64(k)), nil
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (k *Known) UnmarshalJSON(b []byte) error {
	v := math.NaN() // null leaves it
	err := json.Unmarshal(b, &v)
	*k = Known(v)
	return err
}

// File is one direction of I/O on one file of the job. Fields of type Known may be unknown.
type File struct {
	Name string `json:"name"`
	// Start and End bound the file's I/O, seconds on the job's own clock.
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Bytes float64 `json:"bytes"`
	// Small is the share of its requests that were small, 0..1.
	Small Known `json:"small"`
	// Nonconsec is the share of its requests that did not start where the one before ended, 0..1.
	Nonconsec Known `json:"nonconsec"`
	// Collective is 1 where collective MPI-IO was used and 0 where not.
	Collective Known `json:"-"`
	// Procs is how many processes used the file.
	Procs Known `json:"procs"`
	// OSTs is the number of storage targets it is striped over.
	OSTs Known `json:"-"`
	// Targets names them, where that is known.
	Targets []topology.TargetID `json:"-"`
	// Written is true where the interval is known to be one of writes.
	Written bool `json:"-"`
	// Calls is what the log says of the calls themselves; nil where only the interval is known.
	Calls *Calls `json:"-"`
}

// seconds is how long the file was in I/O.
func (f *File) seconds() float64 {
	if f.Calls != nil {
		return f.Calls.Seconds
	}
	return f.End - f.Start
}

// density is the part of its interval in which the file was in I/O.
func (f *File) density() float64 {
	if !(f.End > f.Start) {
		return 0
	}
	return f.seconds() / (f.End - f.Start)
}

// Record is something that was the matter with a node or a target on the job's way for a time.
type Record struct {
	// Layer is topology.Forwarder or topology.Storage.
	Layer topology.Role `json:"layer"`
	// Node is the forwarder's or target's name.
	Node string `json:"node"`
	// What is a kind of finding, or Excluded for a forwarder that was excluded from allocation.
	What anomaly.Kind `json:"what"`
	// Start and End are seconds on the job's own clock; End may lie after the job's end.
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	// Neighbour is the job that pinned the node, where one is known by name.
	Neighbour topology.JobID `json:"neighbour,omitempty"`
	// Own is true where the job itself did it.
	Own bool `json:"own,omitempty"`
	// Text is the finding's own sentence.
	Text string `json:"text,omitempty"`
}

// Excluded is a Record's What for a forwarder that allocation had excluded.
const Excluded anomaly.Kind = "excluded"

// Job is everything that is judged.
type Job struct {
	Files []File
	// Procs is the number of processes of the job.
	Procs Known
	// Records are the troubles known of the forwarders and targets that the job used.
	Records []Record
	// Metadata is what its processes spent on opening, closing and looking at files.
	Metadata Metadata
	// Storage is what the storage servers recorded meanwhile; empty where they keep no record.
	Storage Storage
	// Mounts are the site's.
	Mounts Mounts
	// RunSeconds is how long the job ran.
	RunSeconds Known
	// Notes are what the log lacks, a sentence each.
	Notes []string
}

// Metadata is the time of a job's calls that moved no bytes. The zero value is not known.
type Metadata struct {
	// Seconds were spent on metadata, DataSeconds on reads and writes, summed over the processes.
	Seconds, DataSeconds float64
	// SlowestSeconds are those of the process that spent most on one file's metadata.
	SlowestSeconds float64
	Opens, Files   int64
	// Reopens counts opens beyond the first of each process, Requests the reads and writes.
	Reopens, Requests int64
}

// Limits are the thresholds of the verdict. All are settings; Defaults are the paper's where it has one.
type Limits struct {
	// LowBytesPerSec is the bandwidth below which a job counts as slow, bytes/s (IOMiner section III-F).
	LowBytesPerSec float64
	// Small and Nonconsec are shares of requests above which a pattern counts as the cause, 0..1 (III-F).
	Small, Nonconsec float64
	// ProcsPerOST is the contention above which a target counts as crowded (III-F).
	ProcsPerOST float64
	// Dominant is the share of the I/O time that makes one file, one process, a shared file or metadata the
	// bottleneck, 0..1; ours.
	Dominant float64
	// Overlap is the mean number of files in I/O at a time below which the job's files run one after another, and one
	// of them counts as alone; ours.
	Overlap float64
	// SerialFiles is the least number of critical files for which lacking overlap is worth saying; ours.
	SerialFiles int
	// Idle is the share of the span without I/O that is worth saying, 0..1; ours.
	Idle float64
	// Shadow is the share of the I/O time under a Record that makes it part of the cause, 0..1; ours.
	Shadow float64
	// Saturated is the share of a target's peak from which it counts as saturated, 0..1 (DFRA's occupancy).
	Saturated float64
	// Hot is how many times the mean of its file system a target moves when it counts as hot, and Slow the
	// share of its peers' rate at which it counts as slow for the same work, 0..1; ours.
	Hot, Slow float64
	// Pattern are the limits of how the requests were made.
	Pattern PatternLimits
	// Bother is the share of the run time below which I/O is not worth the trouble, 0..1; ours.
	Bother float64
}

// PatternLimits are thresholds of Drishti's triggers (Bez et al., Drishti: Guiding End-Users in the I/O Optimization
// Journey, PDSW 2022), but for the last three, which are ours.
type PatternLimits struct {
	// Unaligned and Random are shares of requests, Independent one of the calls of MPI-IO, 0..1.
	Unaligned, Random, Independent float64
	// Requests are fewer than count as a pattern.
	Requests int64
	// MetaSeconds is what one process may spend on the metadata of a file.
	MetaSeconds float64
	// Redundant is how often each byte is moved when it counts as moved again; Reopens is opens a request.
	Redundant, Reopens float64
	// TinyBytes is the mean request below which it costs a call too many even in order.
	TinyBytes float64
	// Split is the number of small requests of each access to a library that counts as many.
	Split float64
}

// Defaults returns the limits of IOMiner section III-F (1 GB/s, half of the requests, 3 processes for
// each target) and our own where the paper has none.
func Defaults() Limits {
	return Limits{
		LowBytesPerSec: 1e9, Small: 0.5, Nonconsec: 0.5, ProcsPerOST: 3,
		Dominant: 0.5, Overlap: 1.5, SerialFiles: 4, Idle: 0.1, Shadow: 0.1,
		Saturated: 0.8, Hot: 2, Slow: 0.5, Bother: 0.05,
		Pattern: PatternLimits{Unaligned: 0.1, Random: 0.2, Independent: 0.5, Requests: 1000, MetaSeconds: 30,
			Redundant: 1.5, Reopens: 0.5, TinyBytes: 64 << 10, Split: 8},
	}
}

// Critical is one critical file and its part of the critical path.
type Critical struct {
	Name string `json:"name"`
	// Start and End bound the piece of the critical path that only this file is charged with: from
	// where the critical file before it ended to its own end. Where the calls' own time is known they bound the calls,
	// and Exclusive may be less than their distance.
	Start     float64 `json:"start"`
	End       float64 `json:"end"`
	Exclusive float64 `json:"exclusive"`
	// FileStart is where the file's own I/O began, at or before Start.
	FileStart float64 `json:"file_start"`
	// File is the index into Job.Files.
	File int `json:"file"`
	// apart says that no piece of the path overlaps another.
	apart bool
	// active are starts and ends, in turn, of the times to which Exclusive falls; nil: all from Start to End.
	active []float64
}

// Factors are the five contributing factors of IOMiner section II-D: means over the critical files,
// weighted by exclusive time. One that no critical file knows is null.
type Factors struct {
	Small       Known `json:"small"`
	Nonconsec   Known `json:"nonconsec"`
	Collective  Known `json:"collective"`
	OSTs        Known `json:"osts"`
	ProcsPerOST Known `json:"procs_per_ost"`
}

// Clause is one sentence of the verdict with the number it rests on.
type Clause struct {
	// Rule is the rule's short name, such as "small" or "one-file".
	Rule  string `json:"rule"`
	Value Known  `json:"value"`
	// Limit is what Value was compared with; null where the clause only reports.
	Limit Known `json:"limit"`
	// Cause is true where the clause names a cause of low bandwidth.
	Cause bool   `json:"cause"`
	Text  string `json:"text"`
	// Remedy is the hint or call that helps, GainSeconds the I/O time that it may save at most; both only of causes.
	Remedy      string  `json:"remedy,omitempty"`
	GainSeconds float64 `json:"gain_seconds,omitempty"`
	// outside is true of what is not the job's own doing.
	outside bool
}

// Answer is the explanation of one job.
type Answer struct {
	// IOTime is the time in which at least one file was in I/O, seconds, and never more than the calls took; Span
	// reaches from the first file's start to the last one's end.
	IOTime float64 `json:"io_time"`
	Span   float64 `json:"span"`
	Bytes  float64 `json:"bytes"`
	// Bandwidth is Bytes over IOTime, bytes/s; null without I/O time.
	Bandwidth Known      `json:"bandwidth"`
	Critical  []Critical `json:"critical"`
	// CriticalFiles counts them; Keep may have shortened the list.
	CriticalFiles int     `json:"critical_files"`
	Factors       Factors `json:"factors"`
	// DistinctOSTs counts the targets of all files together, the paper's OST#; null where no file names its targets.
	DistinctOSTs Known    `json:"distinct_osts"`
	Verdict      []string `json:"verdict"`
	Reasons      []Clause `json:"reasons"`
}

// Explain finds the critical path of a job that Check accepts and says what it was spent on.
func Explain(j Job, lim Limits) Answer {
	a := Answer{Critical: criticalPath(&j), Bandwidth: Unknown()}
	a.CriticalFiles, a.Span = len(a.Critical), span(j.Files)
	for _, c := range a.Critical {
		a.IOTime += c.Exclusive
	}
	for i := range j.Files {
		a.Bytes += j.Files[i].Bytes
	}
	if a.IOTime > 0 {
		a.Bandwidth = Known(a.Bytes / a.IOTime)
	}
	a.Factors = weigh(j.Files, a.Critical)
	a.DistinctOSTs = distinctTargets(j.Files)
	a.Reasons = judge(&j, &a, lim)
	a.Verdict = make([]string, len(a.Reasons))
	for i, c := range a.Reasons {
		a.Verdict[i] = c.Text
	}
	return a
}

// Keep shortens the list of critical files to the n with most exclusive time, in their order.
func (a *Answer) Keep(n int) {
	if len(a.Critical) <= n {
		return
	}
	bySize := slices.Clone(a.Critical)
	slices.SortStableFunc(bySize, func(x, y Critical) int { return cmp.Compare(y.Exclusive, x.Exclusive) })
	a.Critical = bySize[:n]
	slices.SortFunc(a.Critical, func(x, y Critical) int { return cmp.Compare(x.Start, y.Start) })
}

// Check refuses what has no meaning. Its errors name the file and the field.
func (j *Job) Check() error {
	for i := range j.Files {
		if err := j.Files[i].check(); err != nil {
			return fmt.Errorf("files[%d] %q: %w", i, j.Files[i].Name, err)
		}
	}
	if j.Procs < 0 || j.Procs > maxCount {
		return fmt.Errorf("procs is %v, want a count", float64(j.Procs))
	}
	for i, r := range j.Records {
		switch {
		case r.Layer != topology.Forwarder && r.Layer != topology.Storage:
			return fmt.Errorf("records[%d] %q: layer is %q, want forwarder or storage", i, r.Node, r.Layer)
		case r.Node == "" || r.What == "":
			return fmt.Errorf("records[%d]: node and what must not be empty", i)
		case !(r.End >= r.Start):
			return fmt.Errorf("records[%d] %q: end %v lies before start %v", i, r.Node, r.End, r.Start)
		}
	}
	return j.Storage.check()
}

// What no log can hold: more than 30,000 years, more than a million exabytes.
const (
	maxSeconds = 1e12
	maxCount   = 1e24
)

func (f *File) check() error {
	switch {
	case !(math.Abs(f.Start) <= maxSeconds):
		return fmt.Errorf("start is %v, want seconds", f.Start)
	case !(math.Abs(f.End) <= maxSeconds):
		return fmt.Errorf("end is %v, want seconds", f.End)
	case f.End < f.Start:
		return fmt.Errorf("end %v lies before start %v", f.End, f.Start)
	case !(f.Bytes >= 0 && f.Bytes <= maxCount):
		return fmt.Errorf("bytes is %v, want 0 or more", f.Bytes)
	}
	for _, s := range []struct {
		name string
		v    Known
		max  float64
	}{{"small", f.Small, 1}, {"nonconsec", f.Nonconsec, 1}, {"collective", f.Collective, 1},
		{"procs", f.Procs, maxCount}, {"osts", f.OSTs, maxCount}} {
		if v := float64(s.v); v < 0 || v > s.max {
			if s.max == 1 {
				return fmt.Errorf("%s is %v, want a share from 0 to 1", s.name, v)
			}
			return fmt.Errorf("%s is %v, want a count", s.name, v)
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// ownRules are the causes that lie in the job itself, in the order in which they explain its time: metadata beside
// which hardly any bytes moved, requests that no target serves well, a file that all wait for, and what is left idle.
var ownRules = []string{"open-close", "metadata", "split", "blocking", "sieving", "inflated", "small", "unaligned",
	"random", "redundant", "rewritten", "shared-file", "independent", "collective", "nonconsec", "procs-per-ost",
	"one-process", "imbalance", "one-file", "serial"}

// Main is the first of the causes of some answers; nil without a cause. What acted on the job from outside goes
// before what it did itself, the longest first: without it the same program would have been faster. Answers may be nil.
func Main(answers ...*Answer) *Clause {
	var causes []Clause
	for _, a := range answers {
		if a == nil {
			continue
		}
		for _, c := range a.Reasons {
			if c.Cause {
				causes = append(causes, c)
			}
		}
	}
	if len(causes) == 0 {
		return nil
	}
	rank := func(c *Clause) int {
		if c.outside {
			return -1
		}
		if i := slices.Index(ownRules, c.Rule); i >= 0 {
			return i
		}
		return len(ownRules)
	}
	first := slices.MinFunc(causes, func(a, b Clause) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Value, a.Value))
	})
	return &first
}
