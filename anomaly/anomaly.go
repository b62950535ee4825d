// Package anomaly judges: what is wrong with a node, since when, how sure, on what evidence, and
// whether the slowness has another explanation (a neighbour, the back end).
package anomaly

import (
	"strconv"
	"time"

	"fairway/collector/topology"
)

// Kind is what a finding says of its subject.
type Kind string

// The kinds of findings. FailSlow accuses the node itself; the others explain a slowness away.
const (
	FailSlow        Kind = "fail_slow"
	N1Pin           Kind = "n1_pin"
	MetaStorm       Kind = "meta_storm"
	HighBandwidth   Kind = "highbw"
	BrownoutAll     Kind = "brownout_all"
	BrownoutPool    Kind = "brownout_pool"
	ForwarderSilent Kind = "silent"
	TargetSlow      Kind = "target_slow" // a storage target or metadata server; nobody excludes it here
)

// State is where a finding is in its life.
type State string

// The states of a finding.
const (
	Suspect   State = "suspect"
	Confirmed State = "confirmed"
	Excluded  State = "excluded"
	Probation State = "probation"
	Returned  State = "returned"
	Dismissed State = "dismissed"
)

// Finding is what a detector says of a node, and how far that has come.
type Finding struct {
	ID         string          `json:"id"`
	Node       topology.NodeID `json:"node"` // Everywhere for the back end as a whole
	Kind       Kind            `json:"kind"`
	State      State           `json:"state"`
	Since      time.Time       `json:"since"`
	Changed    time.Time       `json:"changed"`
	Confidence float64         `json:"confidence"` // 0..1
	// Sentence is the finding in words an operator can repeat, with its numbers.
	Sentence string             `json:"sentence"`
	Evidence map[string]float64 `json:"evidence,omitempty"`
	Jobs     []topology.JobID   `json:"jobs,omitempty"`
	// Impact says how much of the jobs' time goes into it, where that is known.
	Impact []Impact `json:"impact,omitempty"`
	Class  string   `json:"class,omitempty"` // read, write or meta where only one is slow
	Score  float64  `json:"score,omitempty"` // the detector's, in its own unit
	Model  string   `json:"model,omitempty"` // version of what judged
	// Why is the reason of the newest change, Held why the policy does not exclude the node.
	Why  string `json:"why,omitempty"`
	Held string `json:"held,omitempty"`
	// Owner has acknowledged the finding; ExcludedBy is ByPolicy or a person, while it is excluded.
	Owner string `json:"owner,omitempty"`
	// Silenced is until when it calls nobody: it is followed and shown as before, and does not stand
	// among what needs a person. It ends early when the finding is confirmed or excluded.
	Silenced   time.Time `json:"silenced_until,omitzero"`
	ExcludedBy string    `json:"excluded_by,omitempty"`
	// Steps are the states that it has been in, the oldest first, at most maxSteps: the newest ones.
	Steps []Step `json:"steps,omitempty"`
	// Stage is how far probation has come; Relapses counts how often it ended badly.
	Stage    Stage `json:"stage,omitempty"`
	Relapses int   `json:"relapses,omitempty"`
}

// Step is one state of a finding and since when.
type Step struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
}

// maxSteps bounds the steps of a finding that relapses again and again.
const maxSteps = 12

// Silent says that a finding calls nobody at now.
func (f *Finding) Silent(now time.Time) bool { return now.Before(f.Silenced) }

// Everywhere stands for the node of a finding about the whole back end.
const Everywhere topology.NodeID = "*"

// ByPolicy is who excludes a forwarder that no person excluded.
const ByPolicy = "policy"

// Stage is a part of probation.
type Stage string

// The stages of probation: canary I/O while no job may use the forwarder, then a first job.
const (
	StageCanary Stage = "canary"
	StageJob    Stage = "first job"
)

// Impact is one job behind a slow node.
type Impact struct {
	Job topology.JobID `json:"job"`
	// Share is the part of the job's nodes' time that went into waiting for the node's slowness, 0..1.
	Share float64 `json:"share"`
}

// Open says that a finding is neither returned nor dismissed.
func (f *Finding) Open() bool { return f.State != Returned && f.State != Dismissed }

// Accuses says that a kind holds the node itself responsible; only such a node is ever excluded.
func (k Kind) Accuses() bool { return k == FailSlow || k == ForwarderSilent }

// Level is which way what was seen of a node in one second points.
type Level uint8

// The levels. Silence is not health: a second in which nothing could be seen is Unseen.
const (
	Unseen Level = iota
	Clean        // what was seen is what the model expects
	Doubt        // the test leans towards the finding
	Alarm        // the test has declared
)

// Verdict is what a detector says of one node and kind in one second.
type Verdict struct {
	Node       topology.NodeID
	Kind       Kind
	Level      Level
	Since      time.Time // of the first evidence; zero: now
	Confidence float64   // 0..1
	Score      float64
	Class      string
	Model      string
	Sentence   string
	Evidence   map[string]float64
	Impact     []Impact
}

// Change is one step in the life of a finding, with what was known at that instant.
type Change struct {
	Finding Finding   `json:"finding"` // after the change
	From    State     `json:"from,omitempty"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"` // a person; empty: the tracker
	Why     string    `json:"why"`
	Frozen  *Frozen   `json:"frozen,omitempty"`
}

// Frozen is the evidence as it was when a finding changed, kept for ever.
type Frozen struct {
	// Series are the node's last seconds by metric, Peers the median over the other forwarders' means of the
	// last ten seconds.
	Series map[string][]Value `json:"series,omitempty"`
	Peers  map[string]float64 `json:"peers,omitempty"`
	// Missing lists the metrics that could not be read from the store in time.
	Missing []string `json:"missing,omitempty"`
}

// Value is one second of a frozen series: Unix milliseconds and the value.
type Value struct {
	TimeMillis int64   `json:"t"`
	Value      float64 `json:"v"`
}

// Digits is a ratio or a time as sentences say it: two digits, from 100 on a whole number, never a
// power of ten; x >= 0.0001.
func Digits(x float64) string {
	if x >= 99.5 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}
