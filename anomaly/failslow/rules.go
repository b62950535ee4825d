package failslow

// doubt is what a block may be wrong by beyond its noise, log.
type doubt struct{ short, long float64 }

// doubts are those of each kind of evidence, the surer one first.
func doubts(kind int) doubt {
	return [kinds]doubt{background: {0.12, 0.052}, compared: {0.2, 0.12}, past: {0.25, 0.2},
		streamed: {0.3, 0.26}}[kind]
}

// The thresholds: each with its unit and what it is for.
const (
	// suddenSlow, log: the slowness that a short block bets on: half as slow again.
	suddenSlow = 0.4
	// mildSlow, log: the slowness that a long block bets on.
	mildSlow = 0.1
	// oneSlow, log: the slowness of one class beside the other that a long block bets on.
	oneSlow = 0.15
	// canarySlow, log: the slowness that a canary bets on.
	canarySlow = 0.2
	// wellSlow, log: an accused node loses below half of it.
	wellSlow = 0.3

	// oneDoubt, log: error of one class against the other.
	oneDoubt = 0.087
	// oneCarriedDoubt, log: the same, where the class spoke in an earlier block.
	oneCarriedDoubt = 0.1
	// canaryDoubt, log: error of a canary beyond its noise.
	canaryDoubt = 0.05

	// backgroundShort, log: at least that much of a background's residual counts in a short block.
	backgroundShort = 0.6
	// streamShort, log: the same of what jobs stream.
	streamShort = 1.2
	// streamLong, log: the same in a long block.
	streamLong = 0.6
	// shortWins, log wealth: most that a short block wins.
	shortWins = 4
	// shortLoses, log wealth: most that a short block loses, so that bursts add up.
	shortLoses = 0.12
	// alarmLoses, log wealth: the same of an accused node, which is to be cleared.
	alarmLoses = 0.5
	// longMost, log wealth: most that a long block wins or loses.
	longMost = 2
	// oneMost, log wealth: most that a long block of one class wins, and half of what it loses.
	oneMost = 2
	// streamCeiling, of the threshold: what jobs stream accuses nobody alone.
	streamCeiling = 0.7
	// jointCeiling, of the threshold: nor with one unlucky canary.
	jointCeiling = 0.4
	// loneCeiling, of the threshold: nor does one class of it make a suspect: a canary is sent.
	loneCeiling = 0.28
	// overThreshold, log wealth: wealth above the threshold that is kept: a healed node is to be cleared.
	overThreshold = 3
	// doubtFrom, of the threshold: wealth from which a node is in doubt.
	doubtFrom = 0.3

	// carryFor, s: for which a class that is not seen speaks through what it last showed.
	carryFor = 300
	// shownFor, s: for which a forwarder is compared with: where all wait for the slowest, others are done.
	shownFor = 30
	// amongLeast, forwarders: of each of a node's jobs that must do as it does before what it streams accuses it.
	amongLeast = 2
	// amongNear, log bytes: sizes of requests that may be compared to accuse.
	amongNear = 0.35
	// excuseNear, log bytes: and to excuse.
	excuseNear = 1
	// busyAlike, of its operations: least that a forwarder serves that is compared with: a slow one serves fewer.
	busyAlike = 0.5
	// servingAlike, times: as many requests in service: who has more serves another job's, too.
	servingAlike = 2
	// plainSlow, log: no habit of jobs is ten times as slow, so that nobody needs to do the same to accuse.
	plainSlow = 2.3
	// comparedMargin, log: by which one class may be slower than through the job's other forwarders.
	comparedMargin = 0.15
	// atPeak, of the peak: from which a node's requests may wait and take long.
	atPeak = 0.85

	// quietMost, times: as many small requests as ever while no job makes any are still the background.
	quietMost = 5
	// opsWide, log: distance of the nodes' small operations from their mean above which jobs make them.
	opsWide = 1
	// opsFar, mean distances: above the mean a node's small operations are a job's.
	opsFar = 4
	// calmCommon, log: common factor above which nobody learns and one class accuses nobody.
	calmCommon = 0.3
	// calmPools, log: the same of the mean storage pool.
	calmPools = 0.1
	// plainlyFast, log: the whole layer is by more than chance when three quarters of the witnesses are.
	plainlyFast = 0.1
	// witnesses, nodes: whose background shows how slow the back end is.
	witnesses = 4
	// youngFor, s: of a node that must have been seen before its background accuses.
	youngFor = 60
	// coldFor, s: after a start in which caches are cold and quiet rates not known.
	coldFor = 300

	// crowdShare, of the nodes: under suspicion above which canaries clear and do not accuse.
	crowdShare = 0.25
	// crowdLeast, nodes: that are no crowd, however few there are.
	crowdLeast = 2
	// canaryBusy, of the peak: load from which canaries are compared with canaries at as much load.
	canaryBusy = 0.5
	// canarySilent, s: without a canary that was judged, after which load clears whom canaries accused.
	canarySilent = 120
	// noExample, log wealth: above which a node's canaries teach nobody.
	noExample = 2
	// capFrom, bytes: requests that show what a link moves.
	capFrom = 48 << 10
	// capRead, bytes: reads of that size wait for bandwidth, not for the cost of a request.
	capRead = 192 << 10
	// capWrite, bytes: writes of that size are not small pieces of one shared file.
	capWrite = 384 << 10
	// capLeast, of the peak: a full queue that moves less waits for locks and not for the link.
	capLeast = 0.06
	// capPast, times: what a capped node moved, when it moves more the cap is gone.
	capPast = 1.3
	// capBelow, times: the same without waiting, less surely.
	capBelow = 0.8
	// capNear, log: what a link holds back differs by less from burst to burst.
	capNear = 0.06
	// capMore, times: as much without waiting, for the past to speak.
	capMore = 1.1
	// capSettled, s: of saturation after which a burst is compared with others.
	capSettled = 3
	// capByPeers, of the threshold: most that a burst wins by comparison only.
	capByPeers = 0.4
	// capStretch, times: as long as on a full healthy node requests take behind a cap.
	capStretch = 1.3
	// capSlow, log: and so much longer than the fleet needs.
	capSlow = 0.25
	// capAlike, log bytes: sizes of requests that wait for the same reason.
	capAlike = 0.5
	// capDoubt, log: error of what a saturated block says, and what it must be short of the peak by.
	capDoubt = 0.15
	// capWins, log wealth: most that a saturated block wins.
	capWins = 3
	// capLoses, log wealth: and loses.
	capLoses = 0.3
	// capGone, log wealth: the same by comparison only, and of a second that shows that the cap is gone.
	capGone = 1
	// capDoubted, log wealth: that a second without waiting loses.
	capDoubted = 0.5
	// capMoved, log: that a second speaks against a cap that moved.
	capMoved = 0.25
	// burstGap, s: without waiting that end a burst.
	burstGap = 20
	// burstEdge, s: of a burst that are only partly filled.
	burstEdge = 2
	// slowPool, log: of the worst storage pool's slowness that matters.
	slowPool = 0.2
	// threads, requests: that a forwarder serves at once.
	threads = 16.0
	// waits, s: of waiting that make a node saturated.
	waits = 1e-3

	// metaQuiet, operations/s: above which a job makes them.
	metaQuiet = 30
	// stormScatter, log: of a second's mean of metadata operations that jobs make.
	stormScatter = 0.5

	// idleLoad, of the peak: below it a node is idle.
	idleLoad = 0.02
	// canaryLoad, of the peak: load from which canaries are compared apart from those through less.
	canaryLoad = 0.15
	// calmFor, s: no request waited: then a canary did not wait, either.
	calmFor = 12
	// waitScatter, of a wait: by which a canary's differs from what the server timed.
	waitScatter = 0.25
	// waitTeach, of a canary: that its wait may be wrong by for it to teach.
	waitTeach = 0.3
	// metaBorrowed, log: by which a stat may be slower than at a level of less load.
	metaBorrowed = 0.7
	// besideFor, s: that a canary through another node is compared with while the layer is slow.
	besideFor = 60
	// besideLeast, nodes: through which such canaries went.
	besideLeast = 2
	// calmBacklog, requests: that may wait in the mean of a second: one for an instant is not a queue.
	calmBacklog = 0.5
	// idleProbeEvery, s: between canaries through one node.
	idleProbeEvery = 60
	// suspectProbeEvery, s: and through a suspect.
	suspectProbeEvery = 10
	// suspicion, log wealth: from which a node is probed as a suspect.
	suspicion = 1
	// readyAfter, canaries: of a class before their noise is measured.
	readyAfter = 10
	// judgeAfter, canaries: and before any is judged.
	judgeAfter = 40
	// mostNoise, log: one canary counts at most as noise.
	mostNoise = 2
	// wideTail, times: the noise of canaries near the usual time, above which some take long without a fault.
	wideTail = 1.5
	// tailedWins, log wealth: most that a canary wins then.
	tailedWins = 0.8
	// leastSigma, log: noise of canaries that nobody knows better.
	leastSigma = 0.08
	// canaryWins, log wealth: most that a canary wins.
	canaryWins = 6
	// canaryLoses, log wealth: and loses.
	canaryLoses = 1
	// canaryOne, log: the slowness of one class that a canary bets on.
	canaryOne = 0.35
	// canaryOneWins, log wealth: most that it wins on one class.
	canaryOneWins = 4.5
	// canaryOneLoses, log wealth: and loses.
	canaryOneLoses = 2
	// oneOfBoth, share: of the mean below which the faster class shows that only one is slow.
	oneOfBoth = 0.3
	// canaryMeta, log: the slowness of a stat that a canary bets on.
	canaryMeta = 0.8
	// canaryMetaDoubt, log: error of a canary's stat beyond its noise.
	canaryMetaDoubt = 0.3
	// canaryMetaWins, log wealth: most that it wins on a stat.
	canaryMetaWins = 3

	// absurdOps, operations/s: of a counter that was reset.
	absurdOps = 1e7
	// absurdRate, 1/s: the same, of bytes.
	absurdRate = 1e12
	// silentFor, s: without a row after which a node was restarted.
	silentFor = 20
	// fewOps, operations/s: of a class that say something of it.
	fewOps = 2
	// commonOps, operations/s: of a class that say something of the layer.
	commonOps = 5
	// smallRequest, bytes: divides the background of every node from what jobs stream.
	smallRequest = 32 << 10
	// cellLeast, s: of healthy nodes that teach what requests of a size need.
	cellLeast = 20
	// cellReach, of a half octave: to which one size speaks for another.
	cellReach = 0.6
	// cellLight, of a second: of a size between two that teaches the farther one.
	cellLight = 0.1
	// cellYoung, s: after which a long tail does not draw the mean.
	cellYoung = 50
	// sizesFrom, s: of nodes before any size of the background is unusual.
	sizesFrom = 300
	// sizesNear, log bytes: from the background's mean that are always usual.
	sizesNear = 0.15
	// sizesWide, mean distances: and so many.
	sizesWide = 3
	// visible, log: of what load shows; below it a sentence says that canaries alone have accused.
	visible = 0.1
)
