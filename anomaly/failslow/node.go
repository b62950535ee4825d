package failslow

import (
	"math"

	"fairway/anomaly"
	"fairway/anomaly/compare"
	"fairway/collector/topology"
)

// The regimes of request sizes.
const (
	small = iota
	large
	regimes
)

// The kinds of evidence in a block, the surer one first.
const (
	background = iota // small requests that every node always has
	compared          // what jobs stream, against what their other forwarders need for it in the same seconds
	past              // what jobs stream, far slower than any habit of jobs
	streamed          // what jobs stream, against what the fleet needs: their habits are in it
	kinds
)

const (
	offsetFast = 300  // seconds of plain averaging
	offsetSlow = 5400 // seconds, time constant afterwards
	offsetMost = 0.25 // of log time: more than that is a fault, not a habit
)

// teachOffset lets a residual teach what a node's have always been: its own slow-moving mean.
func teachOffset(o *compare.Mean, r float64) {
	o.Teach(clip(r, -0.6, 0.6), offsetFast, offsetSlow)
	o.Mean = clip(o.Mean, -offsetMost, offsetMost)
}

const (
	quietFalls, quietRises = 0.1, 1.0 / 3000 // shares of the way in a second
)

// noteQuiet says that so many small requests are what the node always has, and learns of it.
func (n *node) noteQuiet(c int, ops float64) bool {
	q := &n.Habit.Quiet[c]
	switch {
	case *q == 0:
		*q = ops
	case ops < *q:
		*q += quietFalls * (ops - *q)
	default:
		*q += quietRises * (ops - *q)
	}
	return ops <= quietMost*(*q)
}

// estimate is a weighted mean of clipped residuals.
type estimate struct{ Sum, Weight float64 }

// noiseClip is how many times its noise a residual counts at most.
const noiseClip = 2.5

// add takes one residual; what is above most counts as most.
func (e *estimate) add(r, sigma, most float64) {
	w := 1 / (sigma * sigma)
	e.Sum += w * max(-noiseClip*sigma, min(max(noiseClip*sigma, most), r))
	e.Weight += w
}

func (e estimate) mean() float64     { return e.Sum / e.Weight }
func (e estimate) variance() float64 { return 1 / e.Weight }

const octaves = 8 // of request sizes, from 32 KiB

// node is one forwarder.
type node struct {
	Kept
	company
	blocks
	row     int   // of the newest second
	judged  int64 // newest second with a row
	level   anomaly.Level
	loads   [loadedFor]recent
	now     second
	ratio   [classes]float64 // running log ratio, for sentences and the console
	through [2]float64       // the same of its canaries
}

// Forget ends what is held against the node.
func (n *node) Forget() {
	n.Case.Forget()
	n.level = anomaly.Unseen
}

// Kept is what outlives a restart.
type Kept struct {
	compare.Case
	ID     topology.NodeID
	Index  int // in order of first appearance
	Seen   int64
	Back   int64 // when it last came back after a silence
	Probed int64 // newest canary
	Asked  int64 // newest canary asked for
	Waited int64 // newest second in which requests waited
	// Bare says that the class was seen while no job used the node: then no job made its quiet rate.
	Bare  [2]bool
	Load  float64
	Habit habit
	Cause int // the test that declared
}

// habit is what a node is like while it is healthy.
type habit struct {
	Offset [2][regimes]compare.Mean
	Quiet  [2]float64          // operations a second of a class while no job makes any
	Freely [2][octaves]float64 // the most that it streamed without waiting, of the peak, by request size
	CapAt  float64             // share of the peak at which the node was saturated lately
}

// company is what a node has to do with the other forwarders of its jobs.
type company struct {
	visited int64 // see roster.peers
	shown   [2][regimes]shown
	storms  shown    // metadata operations that jobs make
	sure    [2]int64 // newest second compared with enough forwarders of its jobs
	unlike  [2]bool  // what looks like its background may be those of a job that nobody else serves
	flow    [2]flow
}

// blocks gather what a node showed for the next bets.
type blocks struct {
	short     [2][kinds]estimate // of this block
	long      [2][kinds]estimate // of this long block
	carried   [2]estimate        // the newest long block with something in it
	age       [2]int64           // of carried
	kind      [2]int             // of carried
	spent     [2]float64         // log wealth that was won with carried after its block
	cap       estimate
	burst     burst
	storm     estimate // metadata operations against those of the job's other forwarders
	compared  int64    // newest canary that was judged
	stormOver float64  // mean of the newest block of storm
	stormed   int64    // when that was
}

// second is what was made of a node's newest row.
type second struct {
	seen     [2]bool
	regime   [2]int
	residual [2]float64 // without common factor; the node's offset removed
	expected [2]float64
	known    [2]bool
	guess    [2]bool // too few taught what is expected: only the same jobs' and the node's own past can be compared
	quiet    [2]bool // small requests, as many as without jobs
	util     float64
	ops      [2]float64
	size     [2]float64
	log      [2]float64
}

// rate is the node's total bytes a second as a share of the peak.
func rate(o *Observation, peak float64) float64 {
	b := o.Class[Read].Bytes + o.Class[Write].Bytes
	if math.IsNaN(b) || peak <= 0 {
		return 0
	}
	return b / peak
}
