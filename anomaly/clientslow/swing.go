package clientslow

const (
	// horizon is the rate at which healthy seconds are smoothed to see how long what slows them lasts: about sixteen
	// seconds at work.
	horizon = 1.0 / 16
	// swingSeconds bounds over how many healthy seconds of a class a swing is learnt, ownSwing those of one node.
	swingSeconds, ownSwing = 20000, 2000
)

// swing is how healthy seconds at work hang together: what slows one often slows those after it, and then ten slow
// seconds say less than ten times what one says. Smoothed seconds that are independent keep horizon/(2-horizon) of
// their variance; what they keep beyond that is their common part, of whatever shape: noise on top of slow changes
// shows, too, which the correlation of neighbours alone hides.
type swing struct {
	Var, Smooth float64 // of seconds, and of smoothed ones
	N           float64
}

func (s *swing) teach(x, smoothed, most float64) {
	s.N = min(s.N+1, most)
	rate := 1 / s.N
	s.Var += rate * (x*x - s.Var)
	s.Smooth += rate * (smoothed*smoothed - s.Smooth)
}

// inflation is how many times as large as of independent seconds the variance of a long sum is, for a node of the
// class: (1+rho)/(1-rho) with the autocorrelation rho that would let smoothed seconds keep as much of their variance,
//
//	rho = (kept-1)/(kept+1) / (1-horizon) * N/(N+swingPrior)
//
// where independent ones keep 1. Nothing learnt is 1.
func (s *swing) inflation(own *swing) float64 {
	one := s.Var*ownSwingPrior + own.Var*own.N
	kept := (s.Smooth*ownSwingPrior+own.Smooth*own.N)*((2-horizon)/horizon) - one*swingNoise
	above, below := (kept-one)*s.N, (kept+one)*(1-horizon)*(s.N+swingPrior)
	if above <= 0 || below <= 0 {
		return 1
	}
	above = min(above, mostLasting*below)
	return (below + above) / (below - above)
}

// remember lets a healthy second of a class, x from what it is used to, teach how long such differences last. Seconds
// without work between count as if they were not there: the wealth does not see them either.
func (d *Detector) remember(s *class, c int, x, sigma float64) {
	x = max(-outlier*sigma, min(x, outlier*sigma))
	s.Lately += horizon * (x - s.Lately)
	d.Swings[c].teach(x, s.Lately, swingSeconds)
	s.Swing.teach(x, s.Lately, ownSwing)
}
