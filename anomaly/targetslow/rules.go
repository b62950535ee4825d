package targetslow

import "fairway/anomaly"

// Rules are the thresholds of a detector.
type Rules struct {
	Sudden, Mild TestRules
	// FirstScatter is how far a target's ten minutes lie from its own mean before that was seen.
	FirstScatter anomaly.LogRatio
	// FewestPeers is how many other targets make a median.
	FewestPeers int
	// MostOfAPoint is what one point says at most: what is sick for good is slow all the time.
	MostOfAPoint anomaly.LogRatio
	// MostBet is the most that a block wins, and MostLoss that it loses.
	MostBet, MostLoss anomaly.LogWealth
	// DoubtFrom is the share of an alarm's wealth from which a target is in doubt.
	DoubtFrom anomaly.Share
}

// TestRules are those of one of the tests.
type TestRules struct {
	// Tolerated is the slowness that the test accepts for good; SlowBy is what it bets on beyond that.
	Tolerated, SlowBy anomaly.LogRatio
	// Doubt is the error of a block's mean beyond the noise of its points.
	Doubt anomaly.LogRatio
}

// DefaultRules are the rules that a site runs with.
func DefaultRules() Rules {
	return Rules{
		Sudden:       TestRules{Tolerated: 0.4, SlowBy: 0.15, Doubt: 0.1},
		Mild:         TestRules{Tolerated: 0.14, SlowBy: 0.06, Doubt: 0.05},
		FirstScatter: 0.2,
		FewestPeers:  3,
		MostOfAPoint: 0.6,
		MostBet:      2, MostLoss: 1,
		DoubtFrom: 0.5,
	}
}
