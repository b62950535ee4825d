package failslow

import "math"

// Rule is one threshold of the detector: a condition holds none of its own.
type Rule struct {
	Name  string
	Value float64
	Unit  string
	Why   string
	// Without is the value with which the rule says nothing; not a number where the detector needs it.
	Without float64
	at      *float64
}

// The thresholds, as Rules explains them.
var (
	suddenSlow, mildSlow, oneSlow, canarySlow, wellSlow, metaMuch float64

	backgroundDoubt, comparedDoubt, pastDoubt, streamedDoubt                 float64
	longBackgroundDoubt, longComparedDoubt, longPastDoubt, longStreamedDoubt float64
	oneDoubt, oneCarriedDoubt, canaryDoubt                                   float64

	backgroundShort, streamShort, streamLong, shortWins, shortLoses, alarmLoses, longMost, oneMost float64
	streamCeiling, jointCeiling, loneCeiling, overThreshold                                        float64
	doubtFrom, releaseBelow                                                                        float64

	carryFor, shownFor, amongLeast, amongNear, excuseNear, busyAlike float64
	pastJobs, pastHabit, pastNear, comparedMargin, atPeak            float64

	quietMost, opsWide, opsFar, calmCommon, calmPools, witnesses, coldFor float64

	crowdShare, crowdLeast, canaryBusy, noExample float64
)

var never, always = math.Inf(1), math.Inf(-1)

// Rules lists the thresholds with what they are for.
func Rules() []Rule {
	none := math.NaN()
	return []Rule{
		{"sudden_slow", 0.4, "log", "the slowness that a short block bets on: half as slow again", none, &suddenSlow},
		{"mild_slow", 0.1, "log", "the slowness that a long block bets on", none, &mildSlow},
		{"one_slow", 0.15, "log", "the slowness of one class beside the other that a long block bets on", none,
			&oneSlow},
		{"canary_slow", 0.2, "log", "the slowness that a canary bets on", none, &canarySlow},
		{"well_slow", 0.3, "log", "an accused node loses below half of it", none, &wellSlow},

		{"background_doubt", 0.12, "log", "error of a short block beyond its noise, small requests of every node", 0,
			&backgroundDoubt},
		{"compared_doubt", 0.2, "log", "the same, of what is compared with the job's other forwarders", 0,
			&comparedDoubt},
		{"past_doubt", 0.25, "log", "the same, of what is compared with the node's past", 0, &pastDoubt},
		{"streamed_doubt", 0.3, "log", "the same, of what jobs stream", 0, &streamedDoubt},
		{"long_background_doubt", 0.052, "log", "as background_doubt, of a long block", 0, &longBackgroundDoubt},
		{"long_compared_doubt", 0.12, "log", "as compared_doubt, of a long block", 0, &longComparedDoubt},
		{"long_past_doubt", 0.2, "log", "as past_doubt, of a long block", 0, &longPastDoubt},
		{"long_streamed_doubt", 0.26, "log", "as streamed_doubt, of a long block", 0, &longStreamedDoubt},
		{"one_doubt", 0.087, "log", "error of one class against the other", 0, &oneDoubt},
		{"one_carried_doubt", 0.1, "log", "the same, where the class spoke in an earlier block", 0, &oneCarriedDoubt},
		{"canary_doubt", 0.05, "log", "error of a canary beyond its noise", 0, &canaryDoubt},

		{"background_short", 0.6, "log", "at least that much of a background's residual counts in a short block", 0,
			&backgroundShort},
		{"stream_short", 1.2, "log", "the same of what jobs stream", 0, &streamShort},
		{"stream_long", 0.6, "log", "the same in a long block", 0, &streamLong},
		{"short_wins", 4, "log wealth", "most that a short block wins", never, &shortWins},
		{"short_loses", 0.12, "log wealth", "most that a short block loses, so that bursts add up", never, &shortLoses},
		{"alarm_loses", 0.5, "log wealth", "the same of an accused node, which is to be cleared", never, &alarmLoses},
		{"long_most", 2, "log wealth", "most that a long block wins or loses", never, &longMost},
		{"one_most", 1, "log wealth", "most that a long block of one class wins, and half of what it loses", never,
			&oneMost},
		{"stream_ceiling", 0.7, "of the threshold", "what jobs stream accuses nobody alone", never, &streamCeiling},
		{"joint_ceiling", 0.4, "of the threshold", "nor with one unlucky canary", never, &jointCeiling},
		{"lone_ceiling", 0.4, "of the threshold", "nor one class of it", never, &loneCeiling},
		{"over_threshold", 3, "log wealth", "wealth above the threshold that is kept: a healed node is to be cleared",
			never,
			&overThreshold},
		{"doubt_from", 0.3, "of the threshold", "wealth from which a node is in doubt", none, &doubtFrom},
		{"release_below", 0.1, "of the threshold", "wealth below which an accused node is cleared", none,
			&releaseBelow},

		{"carry_for", 300, "s", "for which a class that is not seen speaks through what it last showed", 0, &carryFor},
		{"shown_for", 30, "s",
			"for which a forwarder is compared with: where all wait for the slowest, others are done", 1,
			&shownFor},
		{"among_least", 2, "forwarders",
			"of each of a node's jobs that must do as it does before what it streams accuses it",
			0, &amongLeast},
		{"among_near", 0.35, "log bytes", "sizes of requests that may be compared to accuse", never, &amongNear},
		{"excuse_near", 1, "log bytes", "and to excuse", always, &excuseNear},
		{"busy_alike", 0.5, "of its operations",
			"least that a forwarder serves that is compared with: a slow one serves fewer",
			0, &busyAlike},
		{"past_jobs", 300, "s", "for which a node's jobs are the same before its past accuses it", never, &pastJobs},
		{"past_habit", 120, "s", "that taught a habit before it accuses", 0, &pastHabit},
		{"past_near", 0.25, "log bytes", "sizes of requests that may be compared with the past", never, &pastNear},
		{"compared_margin", 0.15, "log", "by which one class may be slower than through the job's other forwarders", 0,
			&comparedMargin},
		{"at_peak", 0.85, "of the peak", "from which a node's requests may wait and take long", never, &atPeak},

		{"quiet_most", 5, "times", "as many small requests as ever while no job makes any are no job's", never,
			&quietMost},
		{"ops_wide", 1, "log", "distance of the nodes' small operations from their mean above which jobs make them",
			never,
			&opsWide},
		{"ops_far", 4, "mean distances", "above the mean a node's small operations are a job's", never, &opsFar},
		{"calm_common", 0.3, "log", "common factor above which nobody learns and one class accuses nobody", never,
			&calmCommon},
		{"calm_pools", 0.1, "log", "the same of the mean storage pool", never, &calmPools},
		{"witnesses", 4, "nodes", "whose background shows how slow the back end is", 0, &witnesses},
		{"cold_for", 300, "s", "after a start in which caches are cold and quiet rates not known", 0, &coldFor},

		{"crowd_share", 0.25, "of the nodes", "under suspicion above which canaries clear and do not accuse", never,
			&crowdShare},
		{"crowd_least", 2, "nodes", "that are no crowd, however few there are", 0, &crowdLeast},
		{"canary_busy", 0.5, "of the peak", "load from which canaries are compared with canaries at as much load",
			never,
			&canaryBusy},
		{"no_example", 2, "log wealth", "above which a node's canaries teach nobody", never, &noExample},
		{"meta_much", 500, "operations", "of the layer before shares of quick answers are compared", none, &metaMuch},
	}
}

func init() {
	for _, r := range Rules() {
		*r.at = r.Value
	}
}

// Ablate takes a rule out until restore is called; ok is false where the detector needs it. It is for
// measuring, while no detector runs.
func (r *Rule) Ablate() (restore func(), ok bool) {
	*r.at = r.Without
	if math.IsNaN(r.Without) {
		*r.at = r.Value
		return func() {}, false
	}
	return func() { *r.at = r.Value }, true
}
