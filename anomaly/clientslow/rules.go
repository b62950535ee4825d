package clientslow

// The thresholds: each with its unit and what it is for.
const (
	// least, s: of latency below which differences are noise of the machine.
	least = 2e-3
	// leastInside, s: the same, of the time in service by queue and completions.
	leastInside = 1e-4
	// leastLoss, share: of packets, below which congestion loses as much on any link.
	leastLoss = 2e-3
	// threads, requests: in flight that may be in service; more wait.
	threads = 16

	// fewOps, operations/s: of a class that say something.
	fewOps = 2
	// manyOps, operations/s: that say all; of fewer one slow one decides the mean.
	manyOps = 40
	// fewPackets, 1/s: that say something of a link.
	fewPackets = 100
	// fewPeers, forwarders: that make a median.
	fewPeers = 2
	// calmQueue, requests: before which a stat of the agent does not wait for its turn.
	calmQueue = 4
	// peerAge, s: that what a peer showed is compared with.
	peerAge = 30
	// busySeconds are remembered of what a node's operations took.
	busySeconds = 10
	// ownSeconds, s: at work before a node's own past counts.
	ownSeconds = 30
	// memory, s: at work after which the past is forgotten.
	memory = 900
	// sizeRange, log bytes: sizes of requests that are compared: a factor of two.
	sizeRange = 0.7
	// alikeAge, s: that what another node behind the same server showed explains.
	alikeAge = 5

	// slowBy, log: the slowness that is bet on: half as slow again.
	slowBy = 0.4
	// mostBy, log: and at most, where the last seconds were slower.
	mostBy = 1.2
	// slowerRate, 1/s: at which that follows.
	slowerRate = 1.0 / 8
	// margin, log: by which a node without a past must be slower: jobs alone may differ by five times.
	margin = 2.1
	// strange, log: by which what a node does for the first time must be slower.
	strange = 0.7
	// noise, log: least standard deviation of a healthy second.
	noise = 0.3
	// noiseSeconds, s: healthy ones of all nodes, over which the noise is learnt.
	noiseSeconds = 5000
	// mostBet, log wealth: most that a second wins: no single one accuses.
	mostBet = 0.8
	// leastBet, log wealth: and loses.
	leastBet = -0.5
	// clearBet, log wealth: the same of an accused node, which is to be cleared.
	clearBet = -1
	// plainBet, log wealth: most that a plainly slow second wins.
	plainBet = 1.6
	// plainFrom, log: from which a second may win more.
	plainFrom = 1
	// plainly, log: and from which all of it: five times.
	plainly = 1.6
	// marginRate, 1/s: at which a class learns its margin, so that healthy seconds lose.
	marginRate = 0.01
	// mostMargin, log: what is more is not a habit.
	mostMargin = 0.4
	// doubtAt, of the threshold: wealth from which a node is in doubt.
	doubtAt = 0.5
	// silentBelow, of the threshold: wealth from which a node is not judged while the class that has it is silent.
	silentBelow = 0.1
	// teachBelow, of the threshold: wealth from which an old habit learns no more.
	teachBelow = 0.375
	// newBelow, of the threshold: and a new one.
	newBelow = 0.25
	// firstLevel, operations/s: of other classes beside which a class has its first habit.
	firstLevel = 16
	// levelTimes, times: as many for each further habit.
	levelTimes = 4
	// visiblyBy, times: as long as on its peers, from which a sentence calls a class slow.
	visiblyBy = 1.5
	// visibleLoss, %: of packets that a sentence names.
	visibleLoss = 0.05

	// swingPrior, s: healthy, after which half of what they show of slow seconds in a row counts.
	swingPrior = 100
	// ownSwingPrior, s: the same of a node's own.
	ownSwingPrior = 300
	// swingNoise, of the variance: that independent seconds keep by chance.
	swingNoise = 0.1
	// outlier, standard deviations: at which a healthy second is cut off.
	outlier = 2
	// mostLasting: autocorrelation of neighbouring seconds at most: an inflation of 39.
	mostLasting = 0.95
)
