package failslow

import "math"

// The sequential tests of a node. Each keeps the logarithm of a capital that is bet against the node's
// health: it is multiplied by a factor whose mean is at most 1 while the node is healthy, and begins
// again at 1 when it falls below. By Ville's inequality for e-detectors (Shin, Ramdas and Rinaldo,
// "E-detectors: a nonparametric framework for sequential change detection") the mean time until the
// capital of a healthy node passes 1/alpha is at least 1/alpha bets.
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

// Test is one capital.
type Test struct {
	Log   float64
	Start int64 // when it last left 1
}

// Bet multiplies the capital, which it does not raise above most.
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
