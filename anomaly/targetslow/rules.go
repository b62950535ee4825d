package targetslow

import (
	"math"

	"fairway/anomaly/failslow"
)

// The thresholds, as Rules explains them.
var (
	suddenFrom, suddenBy, suddenDoubt, mildFrom, mildBy, mildDoubt float64
	fewPeers, mostPoint, mostBet, mostLoss, overLimit              float64
	doubtAt, release, leastBytes, leastSeconds                     float64
)

// Rules lists the thresholds with what they are for, as failslow.Rules does.
func Rules() []failslow.Rule {
	none, never := math.NaN(), math.Inf(1)
	rule := func(name string, value float64, unit, why string, without float64, at *float64) failslow.Rule {
		return failslow.Rule{Name: name, Value: value, Unit: unit, Why: why, Without: without, At: at}
	}
	return []failslow.Rule{
		rule("sudden_from", 0.4, "log", "slowness that the sudden test tolerates for good: half as slow again", none,
			&suddenFrom),
		rule("sudden_by", 0.15, "log", "and bets on beyond that", none, &suddenBy),
		rule("sudden_doubt", 0.1, "log", "error of a block beyond its noise", 0, &suddenDoubt),
		rule("mild_from", 0.14, "log", "slowness that the mild test tolerates for good: 15 %", none, &mildFrom),
		rule("mild_by", 0.06, "log", "and bets on beyond that", none, &mildBy),
		rule("mild_doubt", 0.05, "log", "error of a block beyond its noise", 0, &mildDoubt),
		rule("few_peers", 3, "targets", "that make a median", none, &fewPeers),
		rule("most_point", 0.6, "log", "that one point says at most: what is sick for good is slow all the time", never,
			&mostPoint),
		rule("most_bet", 2, "log wealth", "most that a block wins", never, &mostBet),
		rule("most_loss", 1, "log wealth", "and loses", never, &mostLoss),
		rule("over_limit", 3, "log wealth", "above the threshold that is kept", never, &overLimit),
		rule("doubt_at", 0.5, "of the threshold", "wealth from which a target is in doubt", none, &doubtAt),
		rule("release", 0.1, "of the threshold", "wealth below which an accused target is cleared", none, &release),
		rule("least_bytes", 1<<20, "bytes", "of a file that say something of its target", 0, &leastBytes),
		rule("least_seconds", 1e-3, "s", "of a file that say something of its target", 0, &leastSeconds),
	}
}

func init() {
	for _, r := range Rules() {
		r.Restore()
	}
}
