package history

import "math"

// Deviation is how far a prediction may be off to count as right: 20 % (FAST'19, section 6.1).
const Deviation = 0.2

// Accuracy counts how often the last run told the next one, over the runs that could be predicted.
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

func (a *Accuracy) count(right bool) {
	a.Predicted++
	if right {
		a.Within++
	}
}

// Prediction is what a job about to start will do, by its latest run.
type Prediction struct {
	Run   Run `json:"run"`
	Depth int `json:"depth"` // runs with a profile of the same key
	// Own is the accuracy over the runs of the same key, Site over all runs of all keys.
	Own  Accuracy `json:"own"`
	Site Accuracy `json:"site"`
}

// series is what the index keeps of one key.
type series struct {
	latest Run
	depth  int
	own    Accuracy
}

// index is the memory of a store: predictions, running jobs, and where each run lies in the file.
type index struct {
	series map[Key]*series
	site   Accuracy
}

// learn takes one ended run with a profile. A run that ended before the latest known one (a late
// import) adds to the depth and predicts nothing.
func (x *index) learn(r *Run) {
	k := r.Key()
	s := x.series[k]
	if s == nil {
		s = &series{}
		x.series[k] = s
	}
	s.depth++
	if s.depth > 1 && r.End.Before(s.latest.End) {
		return
	}
	if s.depth > 1 {
		right := Told(s.latest.Profile, r.Profile)
		s.own.count(right)
		x.site.count(right)
	}
	s.latest = *r
	s.latest.NodeList = nil
}

// Told says whether the run before predicted this one: its volume within Deviation, and the mode
// where both are known.
func Told(before, now *Profile) bool {
	if before.Mode != "" && now.Mode != "" && before.Mode != now.Mode {
		return false
	}
	return math.Abs(now.VolumeBytes()-before.VolumeBytes()) <= Deviation*now.VolumeBytes()
}
