package targetslow

import "math"

const (
	// rememberedBlocks bounds how long ago a target's blocks shape its scatter: a day of ten minutes.
	rememberedBlocks = 144
	// peersBlocks are what a group's median scatter weighs beside the blocks of the target itself.
	peersBlocks = 4
	// outlierScatters is where a block is cut off before it teaches: a fault teaches little.
	outlierScatters = 2
	// groupBlocks bounds the blocks of which a group learns how long excursions last; before manyBlocks it is
	// taken for shorter.
	groupBlocks, manyBlocks = 1000, 50
	// mostLasting is the highest autocorrelation of neighbouring blocks that is believed.
	mostLasting = 0.9
	// mostOwn is how many times the peers' variance a target's own may count for: a fault teaches its own scatter.
	mostOwn = 1.5
	// leastScatter and leastVariance keep a target without any noise from being certain.
	leastScatter, leastVariance = 1e-2, 1e-4
)

// scatter is how a target's blocks lie about their own mean: what its work makes of it from hour to hour.
type scatter struct {
	Mean, Variance float64 // of log ratios
	Blocks         float64 // remembered
	Before         float64 // how far the block before lay from the mean
}

// lasting is how a group's neighbouring blocks hang together: a busy hour makes six of them slow, which say little
// more than one.
type lasting struct{ Variance, Covariance, Blocks float64 }

// teach lets one block's mean ratio teach the target and its group.
func (s *scatter) teach(mean, first float64, group *lasting) {
	if s.Blocks == 0 {
		s.Mean, s.Blocks = mean, 1
		return
	}

	usual := first
	if s.Blocks > outlierScatters {
		usual = max(leastScatter, math.Sqrt(s.Variance))
	}
	far := outlierScatters * usual
	off := max(-far, min(mean-s.Mean, far))

	square := off * off * s.Blocks / (s.Blocks + 1)
	s.Blocks = min(s.Blocks+1, rememberedBlocks)
	s.Variance += (square - s.Variance) / (s.Blocks - 1)
	s.Mean += off / s.Blocks

	if -far < off && off < far {
		group.teach(off, s.Before)
	}
	s.Before = off
}

func (l *lasting) teach(off, before float64) {
	l.Blocks = min(l.Blocks+1, groupBlocks)
	l.Variance += (off*off - l.Variance) / l.Blocks
	l.Covariance += (off*before - l.Covariance) / l.Blocks
}

// variance is that of a block beyond its points' noise, as part of a long sum of blocks; peers is the variance of a
// target in the median of the group.
func (s *scatter) variance(peers float64, group *lasting) float64 {
	own := max(0, s.Blocks-1)
	v := min((own*s.Variance+peersBlocks*peers)/(own+peersBlocks), mostOwn*peers)
	rho := group.Covariance / (group.Variance + leastVariance) * group.Blocks / (group.Blocks + manyBlocks)
	rho = max(0, min(rho, mostLasting))
	return v * (1 + rho) / (1 - rho)
}
