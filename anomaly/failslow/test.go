package failslow

import "math"

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

// floorFee is what a bet that never loses more than least must pay each time, log, so that the mean of its factor stays
// at most 1 while the residuals have that variance about zero: the mean of max(e^bet, e^least) for a normal bet.
func floorFee(variance, doubt, delta, least float64) float64 {
	all := variance + doubt
	m, s := -delta*delta/2/all, delta*math.Sqrt(variance)/all
	below := 0.5 * math.Erfc((m-least)/s/math.Sqrt2)
	above := 0.5 * math.Erfc((least-m-s*s)/s/math.Sqrt2)
	return math.Log(max(1, math.Exp(least)*below+math.Exp(m+s*s/2)*above))
}

func clip(x, low, high float64) float64 { return math.Max(low, math.Min(high, x)) }
