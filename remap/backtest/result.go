package backtest

import (
	"cmp"
	"slices"

	"fairway/remap/policy/dfra"
)

// Result is what a policy came to.
type Result struct {
	Policy string `json:"policy"`
	Jobs   int    `json:"jobs"`
	// Unplaced jobs found no free compute nodes: the history is larger than the machine. They are left out.
	Unplaced int `json:"unplaced"`
	// Granted jobs left their default forwarders: for more, for dedicated, or only for healthy ones.
	Granted  int `json:"granted"`
	Upgraded int `json:"upgraded"`
	Isolated int `json:"isolated"`
	Steered  int `json:"steered"`
	// CoreHours is the granted jobs' share of all node time, 0..1.
	CoreHours float64 `json:"core_hours"`
	// MeanInUse and PeakInUse count forwarders with at least one job.
	MeanInUse float64 `json:"mean_in_use"`
	PeakInUse int     `json:"peak_in_use"`
	// FirstFailed counts the jobs that may not have more forwarders by the test that failed first (DFRA, Table 4).
	FirstFailed map[string]int `json:"first_failed,omitempty"`
	Predictions
	Classes []Class `json:"classes"`
	// Against is the comparison with the fixed mapping; nil for that itself.
	Against *Against `json:"against_ffm,omitempty"`

	played
}

// Predictions are the last-run ones that could be checked; Right of them were within 20 %.
type Predictions struct {
	Checked int `json:"checked"`
	Right   int `json:"right"`
}

// played is what a result was computed from.
type played struct {
	seconds []float64 // by job
	jobs    []*job
}

// Class is the jobs of a range of I/O volume.
type Class struct {
	Name    string  `json:"name"`
	Jobs    int     `json:"jobs"`
	Seconds float64 `json:"mean_io_seconds"` // expected
}

// classes are bounded above by volume, bytes.
var classes = []struct {
	name  string
	below float64
}{{"< 1 GB", 1e9}, {"1-20 GB", 20e9}, {"20 GB-1 TB", 1e12}, {">= 1 TB", 0}}

// Against compares the expected I/O times of a policy with those of the fixed mapping. A job gains or
// loses when its time differs by more than 1 %.
type Against struct {
	Gain int `json:"gain"`
	Lose int `json:"lose"`
	// NodeHoursSaved is the expected I/O time saved over all jobs, times their nodes; losses count against it.
	NodeHoursSaved float64 `json:"node_hours_saved"`
	NodeHoursLost  float64 `json:"node_hours_lost"` // by those that lose
	Worst          []Loser `json:"worst,omitempty"` // at most worstShown, by node time lost
}

// Loser is a job that a policy makes slower.
type Loser struct {
	Job           string  `json:"job"`
	User          string  `json:"user"`
	App           string  `json:"app"`
	Nodes         int     `json:"nodes"`
	DefaultSecond float64 `json:"ffm_io_seconds"`
	Seconds       float64 `json:"io_seconds"`
}

const (
	worstShown = 5
	noticeable = 0.01
)

func (s *sim) result() *Result {
	r := &Result{Policy: s.policy.Name, PeakInUse: s.peak, Predictions: Predictions{s.checked, s.right},
		FirstFailed: s.failed, played: played{jobs: s.jobs}}
	if span := s.last.Sub(s.events[0].at).Seconds(); span > 0 {
		r.MeanInUse = s.usedTime / span
	}
	for _, c := range classes {
		r.Classes = append(r.Classes, Class{Name: c.name})
	}
	var all, granted float64
	for _, j := range s.jobs {
		r.seconds = append(r.seconds, j.seconds)
		if !j.placed {
			r.Unplaced++
			continue
		}
		r.Jobs++
		time := float64(j.run.Nodes) * j.lasts()
		all += time
		if j.granted {
			r.Granted++
			granted += time
			switch j.action {
			case dfra.Upgrade:
				r.Upgraded++
			case dfra.Isolate:
				r.Isolated++
			default:
				r.Steered++
			}
		}
		if j.past != nil {
			c := &r.Classes[classOf(j.past.VolumeBytes)]
			c.Jobs++
			c.Seconds += j.seconds
		}
	}
	if all > 0 {
		r.CoreHours = granted / all
	}
	for i := range r.Classes {
		r.Classes[i].Seconds /= max(1, float64(r.Classes[i].Jobs))
	}
	return r
}

func classOf(volume float64) int {
	for i, c := range classes {
		if volume < c.below {
			return i
		}
	}
	return len(classes) - 1
}

// Compare fills in how r's jobs fare against the fixed mapping's result of the same history.
func (r *Result) Compare(ffm *Result) {
	a := &Against{}
	var losers []Loser
	for i, j := range r.jobs {
		was, now := ffm.seconds[i], r.seconds[i]
		hours := float64(j.run.Nodes) * (was - now) / 3600
		a.NodeHoursSaved += hours
		switch {
		case now > (1+noticeable)*was:
			a.Lose++
			a.NodeHoursLost -= hours
			losers = append(losers, Loser{string(j.run.Job), j.run.User, j.run.App, j.run.Nodes, was, now})
		case now < (1-noticeable)*was:
			a.Gain++
		}
	}
	slices.SortStableFunc(losers, func(x, y Loser) int { return cmp.Compare(y.lost(), x.lost()) })
	a.Worst = losers[:min(worstShown, len(losers))]
	r.Against = a
}

func (l Loser) lost() float64 { return float64(l.Nodes) * (l.Seconds - l.DefaultSecond) }
