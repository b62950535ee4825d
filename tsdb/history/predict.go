package history

import (
	"math"
	"slices"
	"sort"

	"fairway/collector/topology"
)

// Deviation is how far a prediction may be off to count as right: 20 % (FAST'19, section 6.1).
const Deviation = 0.2

// Accuracy counts how often the last run predicted the next one, over the runs that could be predicted.
// Published figures for the same rule on the same machine differ widely (90.3 % in FAST'19, 39.5 %
// in "AIOT", IPDPS'22), so only a site's own is worth showing.
type Accuracy struct {
	Predicted int `json:"predicted"`
	// Within counts the runs whose volume was within Deviation of the prediction and whose I/O mode
	// was the predicted one, where both are known.
	Within int `json:"within"`
}

// Share is Within over Predicted, 0..1; ok is false where nothing was predicted yet.
func (a Accuracy) Share() (share float64, ok bool) {
	if a.Predicted == 0 {
		return 0, false
	}
	return float64(a.Within) / float64(a.Predicted), true
}

// count takes one verdict in, or with n = -1 out again.
func (a *Accuracy) count(right bool, n int) {
	a.Predicted += n
	if right {
		a.Within += n
	}
}

// Prediction is what a job about to start will do, by its latest run.
type Prediction struct {
	Run   Run `json:"run"`
	Depth int `json:"depth"` // runs with a profile of the same key
	Blind int `json:"blind"` // runs of the same key that ended without one
	// Own is the accuracy over the runs of the same key, Site over all runs of all keys.
	Own  Accuracy `json:"own"`
	Site Accuracy `json:"site"`
}

// series is what the index keeps of one key.
type series struct {
	latest Run
	past   []outcome // in the order of their ends
	own    Accuracy
}

// outcome is what a run left to predict the next one by.
type outcome struct {
	at     int64 // of its record in the file
	end    int64 // Unix nanoseconds
	volume float64
	mode   topology.Mode
}

func outcomeOf(p *Profile) outcome { return outcome{volume: p.VolumeBytes(), mode: p.Mode} }

// Hit reports whether the run before predicted this one: its volume within Deviation, and the mode
// where both are known.
func Hit(before, now *Profile) bool { return outcomeOf(now).predictedBy(outcomeOf(before)) }

func (o outcome) predictedBy(before outcome) bool {
	if before.mode != "" && o.mode != "" && before.mode != o.mode {
		return false
	}
	return math.Abs(o.volume-before.volume) <= Deviation*o.volume
}

// index is the memory of a store: predictions, running jobs, and where each run lies in the file.
type index struct {
	series map[Key]*series
	blind  map[Key]int // runs that ended without a profile
	site   Accuracy
}

// learn takes one ended run with a profile, and where its record is in the file. Runs may come in any order: an import
// of old logs counts as if they had come in when they ended.
func (x *index) learn(r *Run, place int64) {
	k := r.Key()
	s := x.series[k]
	if s == nil {
		s = &series{}
		x.series[k] = s
	}
	now := outcomeOf(r.Profile)
	now.end, now.at = r.End.UnixNano(), place
	at := sort.Search(len(s.past), func(i int) bool { return s.past[i].end > now.end })
	verdict := func(before, after outcome, n int) {
		right := after.predictedBy(before)
		s.own.count(right, n)
		x.site.count(right, n)
	}
	if at > 0 {
		verdict(s.past[at-1], now, 1)
	}
	if at < len(s.past) {
		verdict(now, s.past[at], 1)
	} else {
		s.latest = *r
		s.latest.NodeList = nil
	}
	if at > 0 && at < len(s.past) {
		verdict(s.past[at-1], s.past[at], -1)
	}
	s.past = slices.Insert(s.past, at, now)
}
