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
	// At is the variable that conditions read.
	At *float64
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

	carryFor, shownFor, amongLeast, amongNear, excuseNear, busyAlike, servingAlike float64
	pastJobs, pastHabit, pastNear, poolWins, plainSlow, comparedMargin, atPeak     float64

	quietMost, opsWide, opsFar, calmCommon, calmPools, witnesses, coldFor float64

	crowdShare, crowdLeast, canaryBusy, noExample, canarySilent float64

	capFrom, capRead, capWrite, capOther, capLeast, capPast, capBelow, capNear, capMore, capSettled, capByPeers float64
	capStretch, capSlow, capFree, capAlike, capDoubt, capWins, capLoses, capGone, capDoubted, capMoved          float64
	burstGap, burstEdge, lockFrom, lockSlow, slowPool, waits                                                    float64

	metaQuiet, metaQuick, metaBlock, metaMemory, metaUsual, metaWell, metaSick, metaMost, stormScatter float64

	besideFor, besideLeast float64

	idleLoad, canaryLoad, calmFor, calmBacklog, suspicion, readyAfter, judgeAfter, mostNoise, wideTail,
	tailedWins float64
	canaryWins, canaryLoses, canaryOne, canaryOneWins, canaryOneLoses, oneOfBoth float64
	canaryMeta, canaryMetaDoubt, canaryMetaWins, leastSigma                      float64
	waitScatter, waitTeach, metaBorrowed                                         float64

	absurdOps, absurdRate, silentFor, fewOps, commonOps, smallRequest                    float64
	visible, cellLeast, cellReach, cellLight, cellYoung, sizesFrom, sizesNear, sizesWide float64
)

var never, always = math.Inf(1), math.Inf(-1)

func init() {
	for _, r := range Rules() {
		r.Restore()
	}
}

// Restore gives a rule its value.
func (r *Rule) Restore() { *r.At = r.Value }

// Ablate takes a rule out until Restore; false where the detector needs it. It is for measuring, while
// no detector runs.
func (r *Rule) Ablate() bool {
	if math.IsNaN(r.Without) {
		return false
	}
	*r.At = r.Without
	return true
}
