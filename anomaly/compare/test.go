package compare

import (
	"math"
	"time"
)

// Test is a betting e-process: a wealth that is bet again and again against an observation being healthy. It
// is multiplied by a factor whose mean is at most 1 while that is so, and begins again at 1 when it falls below. By
// Ville's inequality for e-detectors (Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential
// change detection") the mean time until the wealth of what is healthy passes a threshold is at least that many bets.
type Test struct {
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
func (t *Test) Bet(now int64, log, most float64) {
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
