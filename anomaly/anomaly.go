// Package anomaly defines findings and leads each through its states. A finding says what is wrong with a node, since
// when, how certainly and on what evidence, or what else explains its slowness (a neighbour, the back end). The tracker
// leads each finding through its states.
package anomaly

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb"
)

// Kind is what is wrong.
type Kind string

// The kinds of findings. FailSlow and ForwarderSilent accuse the node itself; the others explain its slowness.
const (
	FailSlow        Kind = "fail_slow"
	N1Pin           Kind = "n1_pin"
	MetaStorm       Kind = "meta_storm"
	HighBandwidth   Kind = "highbw"
	BrownoutAll     Kind = "brownout_all"
	BrownoutPool    Kind = "brownout_pool"
	ForwarderSilent Kind = "silent"
	SecondSpeaker   Kind = "second_speaker" // somebody else speaks for the node: an intruder, or a second agent
	LongList        Kind = "long_list"      // a forwarder lists more clients than there can be
	TargetSlow      Kind = "target_slow"    // a storage target or metadata server; it is never excluded
	// A node that routers wait for, and a router with too few buffers.
	ReceiverSlow     Kind = "receiver_slow"
	BuffersExhausted Kind = "buffers_exhausted"
	ClientSlow       Kind = "client_slow" // a compute node, to all targets that others ask, too
	TargetFull       Kind = "target_full" // a target is full, or soon will be: nobody is slow
)

// State is the state of a finding.
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

// Finding is what a detector concludes about a node, and the state of that.
type Finding struct {
	ID         string          `json:"id"`
	Node       topology.NodeID `json:"node"` // Everywhere for the back end as a whole
	Kind       Kind            `json:"kind"`
	State      State           `json:"state"`
	Since      time.Time       `json:"since"`
	Changed    time.Time       `json:"changed"`
	Confidence float64         `json:"confidence"` // 0..1
	// Condition is the way in which the node fails: the worst seen lately. Empty for kinds that accuse nobody.
	Condition Condition `json:"condition,omitempty"`
	// Factor is the headline: how many times as long as usual its clients' requests took since the finding began, and
	// where they do not time them the median ratio to the peers, on steps. FactorAtLeast says that it may be more:
	// much of what they ask has not ended. FactorNow is the ratio of the newest ten seconds. 0 is not known.
	Factor        float64 `json:"factor,omitempty"`
	FactorAtLeast bool    `json:"factor_at_least,omitempty"`
	FactorNow     float64 `json:"factor_now,omitempty"`
	// Cause is what was looked at for the cause and what was found, in one line; "cause not known: ..." else.
	Cause string `json:"cause,omitempty"`
	// Sentence is the finding in a sentence with its numbers.
	Sentence string             `json:"sentence"`
	Evidence map[string]float64 `json:"evidence,omitempty"`
	Jobs     []topology.JobID   `json:"jobs,omitempty"`
	// Impact lists the jobs that lose time by it, where that is known, or have lost some since the finding began.
	Impact []Impact `json:"impact,omitempty"`
	// Nodes are all nodes where a job is seen to do the same; empty for a finding about Node alone.
	Nodes []topology.NodeID `json:"nodes,omitempty"`
	// Times counts how often it was seen, from the second time on; Again is since when this time.
	Times int       `json:"times,omitempty"`
	Again time.Time `json:"again,omitzero"`
	Class string    `json:"class,omitempty"` // read, write or meta where only one is slow
	Score float64   `json:"score,omitempty"` // the detector's, in its own unit
	Model string    `json:"model,omitempty"` // version of the detector's model
	// Why is the reason of the newest change, Held the reason why the policy does not exclude the node.
	Why  string `json:"why,omitempty"`
	Held string `json:"held,omitempty"`
	// Owner has acknowledged the finding; ExcludedBy is ByPolicy or a person, while it is excluded.
	Owner string `json:"owner,omitempty"`
	// Notes counts what persons wrote about it; Note is the newest, behind its author's name.
	Notes int    `json:"notes,omitempty"`
	Note  string `json:"note,omitempty"`
	// Silenced is until when it does not alert: it is followed and shown as before, but is not listed among what
	// needs a person. A silence ends early when the finding is confirmed or excluded.
	Silenced   time.Time `json:"silenced_until,omitzero"`
	ExcludedBy string    `json:"excluded_by,omitempty"`
	// Steps are the newest maxSteps states that it has been in, the oldest first.
	Steps []Step `json:"steps,omitempty"`
	// Stage is the stage of probation; Relapses counts the probations that failed.
	Stage    Stage `json:"stage,omitempty"`
	Relapses int   `json:"relapses,omitempty"`
}

// Step is one state of a finding and since when, with its condition where that is not slow.
type Step struct {
	State     State     `json:"state"`
	At        time.Time `json:"at"`
	Condition Condition `json:"condition,omitempty"`
}

// maxSteps bounds the steps of a finding that relapses again and again.
const maxSteps = 12

// Silent reports whether a finding does not alert at now.
func (f *Finding) Silent(now time.Time) bool { return now.Before(f.Silenced) }

// Everywhere is the node of a finding about the whole back end.
const Everywhere topology.NodeID = "*"

// ByPolicy is named as the one who excluded a forwarder that no person excluded.
const ByPolicy = "policy"

// Stage is a part of probation.
type Stage string

// The stages of probation: canary I/O while no job may use the forwarder, then a first job.
const (
	StageCanary Stage = "canary"
	StageJob    Stage = "first job"
)

// Impact is a job that a slow node delays.
type Impact struct {
	Job topology.JobID `json:"job"`
	// Share is the part of its nodes' time that the job loses by the node's slowness, 0..1.
	Share float64 `json:"share"`
	// CostSeconds is what the job has lost by it so far: Share, added up over the seconds. In a verdict it is what was
	// lost before this second and not counted then: of requests that were found to hang.
	CostSeconds float64 `json:"cost_seconds,omitempty"`
}

// Open reports whether a finding is neither returned nor dismissed.
func (f *Finding) Open() bool { return f.State != Returned && f.State != Dismissed }

// Over reports whether the node of a finding is well again, as far as is known: it has its first job, or the finding is
// closed. It is so since Changed.
func (f *Finding) Over() bool { return !f.Open() || f.State == Probation && f.Stage == StageJob }

// From is what the age of its state counts from: the first second, or of one that is over the end.
func (f *Finding) From() time.Time {
	if f.Over() {
		return f.Changed
	}
	return f.Since
}

// Began is when its node fell ill: the first second, or of one that came back that of this time.
func (f *Finding) Began() time.Time { return cmp.Or(f.Again, f.Since) }

// Lasted is how long its node has been at fault at now, or was.
func (f *Finding) Lasted(now time.Time) time.Duration {
	if f.Over() {
		now = f.Changed
	}
	return now.Sub(f.Since)
}

// Accuses reports whether a kind holds the node itself responsible; only such a node is ever excluded.
func (k Kind) Accuses() bool { return k == FailSlow || k == ForwarderSilent }

// LinkBits is the evidence of a finding about the rate of a forwarder's links.
const LinkBits = "link_rate_bits"

// ClientsWait and PeersWait are the evidence of what a request of a forwarder's clients took in the newest second,
// seconds, and of the median of the other forwarders' clients.
const (
	ClientsWait = "clients_wait_seconds"
	PeersWait   = "peers_wait_seconds"
)

// OfLink reports whether a finding is about the rate of links: it holds at any load, before it hurts anybody.
func (f *Finding) OfLink() bool {
	_, ok := f.Evidence[LinkBits]
	return ok
}

// OfJob reports whether a kind is what a job does: on as many nodes as it does it, it is one finding.
func (k Kind) OfJob() bool { return k == N1Pin || k == MetaStorm || k == HighBandwidth }

// Level is what one second of a node is evidence of.
type Level uint8

// The levels. Absent evidence is not health: a second in which nothing could be seen is Unseen.
const (
	Unseen Level = iota
	Clean        // as the model expects
	Doubt        // the test leans towards the finding
	Alarm        // the test has decided
)

// Verdict is what a detector concludes about one node and kind in one second.
type Verdict struct {
	Node      topology.NodeID
	Kind      Kind
	Level     Level
	Condition Condition // empty: the one that the kind implies
	Slowness
	Cause      string    // see Finding
	Since      time.Time // of the first evidence; zero: now
	Confidence float64   // 0..1
	Score      float64
	Class      string
	Model      string
	Sentence   string
	Evidence   map[string]float64
	Impact     []Impact
	Culprits   []topology.JobID // the jobs that cause it; none for one that accuses the node
}

// Slowness is how slow a node is in one second.
type Slowness struct {
	Ratio float64 // of its operations to the peers'; 0 is not known
	Waits *Waits  // as a forwarder's clients see it; nil is not known
}

// Fact reports whether a verdict is of what was seen once, such as a link's rate: chance and peers are not asked.
func (v *Verdict) Fact() bool {
	_, link := v.Evidence[LinkBits]
	return link || v.Kind == TargetFull || v.Condition != "" && v.Condition != Slow
}

// Add adds a number to the evidence, which the detector may have used before.
func (v *Verdict) Add(name string, value float64) {
	evidence := maps.Clone(v.Evidence)
	if evidence == nil {
		evidence = map[string]float64{}
	}
	evidence[name], v.Evidence = value, evidence
}

// Change is one change of a finding, with what was known at that instant.
type Change struct {
	Finding Finding   `json:"finding"` // after the change
	From    State     `json:"from,omitempty"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty"` // a person; empty: the tracker
	Why     string    `json:"why"`
	// Noted is of a person's note alone, which changes nothing: the moment that it is about.
	Noted  time.Time `json:"noted,omitzero"`
	Frozen *Frozen   `json:"frozen,omitempty"`
	// Cleared says that the node was seen to be well: detectors forget what they hold against it.
	Cleared bool `json:"-"`
}

// Frozen is the evidence as it was when a finding changed. It is kept for ever.
type Frozen struct {
	// Series are the node's last seconds by metric, Peers the median over the other forwarders' means of the
	// last ten seconds.
	Series map[string][]tsdb.Point `json:"series,omitempty"`
	Peers  map[string]float64      `json:"peers,omitempty"`
	// Missing lists the metrics that could not be read from the store in time.
	Missing []string `json:"missing,omitempty"`
}

// Digits writes a ratio or a time for a sentence: two digits, from 100 on a whole number, never a power of ten; less
// than 0.0001 is 0.
func Digits(x float64) string {
	switch {
	case x >= 99.5:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x < 1e-4:
		return "0"
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// Percent writes a share for a sentence.
func Percent(share float64) string { return Digits(100*share) + " %" }

// Saturated is the ratio from which on ratios say the same: beyond it the peers' time is next to nothing, and chance.
const Saturated = 100

// Times writes how many times its peers' a value is, the same in every sentence, heading and list.
func Times(ratio float64) string {
	if ratio > Saturated {
		return fmt.Sprintf("over %dx", Saturated)
	}
	return Digits(ratio) + "x"
}

// Headline is the factor as all faces write it; empty where it has no factor.
func (f *Finding) Headline() string {
	switch {
	case f.Factor == 0:
		return ""
	case f.FactorAtLeast:
		return "over " + Digits(f.Factor) + "x"
	}
	return Times(f.Factor)
}

// Size writes bytes with three digits and the unit that fits them, decimal as bandwidths of storage are given.
func Size(bytes float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e18, "EB"}, {1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if bytes >= 0.9995*u.size { // what three digits make a whole unit of
			n := math.Nextafter(bytes/u.size, math.Inf(1)) // halves go up, as in a browser
			return strconv.FormatFloat(n, 'g', 3, 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%.0f B", bytes)
}

// Counted is a number of things as people say it: 1 node, 2 nodes, 1 process, 2 processes.
func Counted[T int | int64 | float64](n T, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		thing += "e"
	}
	return fmt.Sprintf("%v %ss", n, thing)
}

// CountedAs is a number of things with the words for one or for more.
func CountedAs(n int, one, many string) string { return fmt.Sprintf("%d %s", n, VerbOf(n, one, many)) }

// VerbOf is a verb behind a number of things: 1 node waits, 2 nodes wait.
func VerbOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Median of the values; not a number of none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// KnownMedian is the median of the values; nil where it is not a finite number.
func KnownMedian(v []float64) *float64 {
	m := Median(v)
	if math.IsNaN(m) || math.IsInf(m, 0) {
		return nil
	}
	return &m
}

// ClassWords says what a forwarder is slow at, by a finding's class.
func ClassWords(class string) string {
	switch class {
	case "read":
		return "reading"
	case "write":
		return "writing"
	case "meta":
		return "metadata"
	}
	return "reading and writing"
}
