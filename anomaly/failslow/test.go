package failslow

import (
	"math"
	"time"
)

// The sequential tests of a node.
const (
	sudden   = iota // both classes, blocks of 5 s: dead slow, lossy, in bursts
	mild            // both classes, blocks of 10 s, and canaries: a little slower, or more and more
	capped          // saturated at less than its peak
	readSlow        // reads alone
	writeSlow
	metaSlow
	canary
	joint // the bets of sudden and those on canaries, one after the other
	testCount
)

// SequentialTest is a betting e-process: a wealth that is bet again and again against an observation being healthy. It
// is multiplied by a factor whose mean is at most 1 while that is so, and begins again at 1 when it falls below. By
// Ville's inequality for e-detectors (Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential
// change detection") the mean time until the wealth of what is healthy passes a threshold is at least that many bets.
// Forwarders by their own clock, forwarders by their clients' and storage targets are judged by it alike.
type SequentialTest struct {
	Log   float64 // of the wealth
	Start int64   // when it last left 1
}

// Threshold is the log wealth at which a test accuses, for a false alarm once in every on average: of so many tests
// that bet once in an interval.
func Threshold(every, interval time.Duration, tests int) float64 {
	const least = 10 // wealth: less is not evidence, however often one may err
	return math.Log(max(float64(tests)*every.Seconds()/interval.Seconds(), least))
}

// Bet multiplies the wealth, which it does not raise above most.
func (t *SequentialTest) Bet(now int64, log, most float64) {
	if t.Log <= 0 {
		t.Log = 0
		if log > 0 {
			t.Start = now
		}
	}
	t.Log = max(0, min(t.Log+log, max(t.Log, most)))
}

// Against is the log of a bet that a residual of log time with that variance has mean delta and not
// zero or less: the likelihood ratio of two normal laws.
func Against(residual, variance, delta float64) float64 {
	return (delta*residual - delta*delta/2) / variance
}

// floorFee is what a bet (Against) that never loses more than least must pay each time, log, so that the mean of its
// factor stays at most 1 while the residuals have that variance about zero: the mean of max(e^bet, e^least) for a
// normal bet.
func floorFee(variance, doubt, delta, least float64) float64 {
	all := variance + doubt
	m, s := -delta*delta/2/all, delta*math.Sqrt(variance)/all
	below := 0.5 * math.Erfc((m-least)/s/math.Sqrt2)
	above := 0.5 * math.Erfc((least-m-s*s)/s/math.Sqrt2)
	return math.Log(max(1, math.Exp(least)*below+math.Exp(m+s*s/2)*above))
}

func clip(x, low, high float64) float64 { return math.Max(low, math.Min(high, x)) }
