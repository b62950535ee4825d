package clientslow

import (
	"math"

	"fairway/anomaly/failslow"
)

// The thresholds, as Rules explains them.
var (
	least, leastInside, leastLoss, threads                      float64
	fewOps, manyOps, fewPackets, fewPeers, calmQueue            float64
	peerAge, ownSeconds, memory, sizeRange, alikeAge            float64
	slowBy, mostBy, slowerRate, margin, strange, noise          float64
	mostBet, leastBet, clearBet, plainBet, plainFrom, plainly   float64
	marginRate, mostMargin                                      float64
	doubtAt, release, overLimit, teachBelow, newBelow           float64
	firstLevel, levelTimes, visiblyBy, visibleLoss              float64
	swingPrior, ownSwingPrior, swingNoise, outlier, mostLasting float64
)

// Rules lists the thresholds with what they are for, as failslow.Rules does.
func Rules() []failslow.Rule {
	none, never := math.NaN(), math.Inf(1)
	rule := func(name string, value float64, unit, why string, without float64, at *float64) failslow.Rule {
		return failslow.Rule{Name: name, Value: value, Unit: unit, Why: why, Without: without, At: at}
	}
	return []failslow.Rule{
		rule("least", 2e-3, "s", "of latency below which differences are noise of the machine", 1e-6, &least),
		rule("least_inside", 1e-4, "s", "the same, of the time in service by queue and completions", 1e-6,
			&leastInside),
		rule("least_loss", 2e-3, "share", "of packets, below which congestion loses as much on any link", 1e-6,
			&leastLoss),
		rule("threads", 16, "requests", "in flight that may be in service; more wait", never, &threads),

		rule("few_ops", 2, "operations/s", "of a class that say something", 1, &fewOps),
		rule("many_ops", 40, "operations/s", "that say all; of fewer one slow one decides the mean", 1, &manyOps),
		rule("few_packets", 100, "1/s", "that say something of a link", 1, &fewPackets),
		rule("few_peers", 2, "forwarders", "that make a median", none, &fewPeers),
		rule("calm_queue", 4, "requests", "before which a stat of the agent does not wait for its turn", never,
			&calmQueue),
		rule("peer_age", 30, "s", "that what a peer showed is compared with", never, &peerAge),
		rule("own_seconds", 30, "s", "at work before a node's own past counts", 1, &ownSeconds),
		rule("memory", 900, "s", "at work after which the past is forgotten", never, &memory),
		rule("size_range", 0.7, "log bytes", "sizes of requests that are compared: a factor of two", never, &sizeRange),
		rule("alike_age", 5, "s", "that what another node behind the same server showed explains", 0, &alikeAge),

		rule("slow_by", 0.4, "log", "the slowness that is bet on: half as slow again", none, &slowBy),
		rule("most_by", 1.2, "log", "and at most, where the last seconds were slower", 0.4, &mostBy),
		rule("slower_rate", 1.0/8, "1/s", "at which that follows", none, &slowerRate),
		rule("margin", 2.1, "log", "by which a node without a past must be slower: jobs alone may differ by five times",
			0,
			&margin),
		rule("strange", 0.7, "log", "by which what a node does for the first time must be slower", 0, &strange),
		rule("noise", 0.3, "log", "least standard deviation of a healthy second", 0.05, &noise),
		rule("most_bet", 0.8, "log wealth", "most that a second wins: no single one accuses", never, &mostBet),
		rule("least_bet", -0.5, "log wealth", "and loses", -never, &leastBet),
		rule("clear_bet", -1, "log wealth", "the same of an accused node, which is to be cleared", -0.5, &clearBet),
		rule("plain_bet", 1.6, "log wealth", "most that a plainly slow second wins", 0.8, &plainBet),
		rule("plain_from", 1, "log", "from which a second may win more", none, &plainFrom),
		rule("plainly", 1.6, "log", "and from which all of it: five times", none, &plainly),
		rule("margin_rate", 0.01, "1/s", "at which a class learns its margin, so that healthy seconds lose", 0,
			&marginRate),
		rule("most_margin", 0.4, "log", "what is more is not a habit", never, &mostMargin),
		rule("doubt_at", 0.5, "of the threshold", "wealth from which a node is in doubt", none, &doubtAt),
		rule("release", 0.1, "of the threshold", "wealth below which an accused node is cleared", none, &release),
		rule("over_limit", 3, "log wealth", "above the threshold that is kept", never, &overLimit),
		rule("teach_below", 0.375, "of the threshold", "wealth from which an old habit learns no more", never,
			&teachBelow),
		rule("new_below", 0.25, "of the threshold", "and a new one", 0.375, &newBelow),
		rule("first_level", 16, "operations/s", "of other classes beside which a class has its first habit", never,
			&firstLevel),
		rule("level_times", 4, "times", "as many for each further habit", none, &levelTimes),
		rule("visibly", 1.5, "times", "as long as on its peers, from which a sentence calls a class slow", none,
			&visiblyBy),
		rule("visible_loss", 0.05, "%", "of packets that a sentence names", none, &visibleLoss),

		rule("swing_prior", 100, "s", "healthy, after which half of what they show of slow seconds in a row counts", 0,
			&swingPrior),
		rule("own_swing_prior", 300, "s", "the same of a node's own", 0, &ownSwingPrior),
		rule("swing_noise", 0.1, "of the variance", "that independent seconds keep by chance", 0, &swingNoise),
		rule("outlier", 2, "standard deviations", "at which a healthy second is cut off", never, &outlier),
		rule("most_lasting", 0.95, "", "autocorrelation of neighbouring seconds at most: an inflation of 39", 0,
			&mostLasting),
	}
}

func init() {
	for _, r := range Rules() {
		r.Restore()
	}
}
