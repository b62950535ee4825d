package cycles

import (
	"math"
	"math/cmplx"
)

// Rhythm is the period of a signal, found by frequency analysis while it goes on, after FTIO (Tarraf et al.,
// arXiv 2306.08601): its power spectrum says how it repeats, and its confidence how much of it does.
type Rhythm struct {
	PeriodSeconds float64 `json:"period_seconds"`
	// Confidence is 0..1: the mean of how alike the signal is one period later, and of the part of its power that
	// lies at the period's frequency and its multiples.
	Confidence float64 `json:"confidence"`
}

// Confident is the least confidence of a rhythm that a pattern is made of; FTIO calls a lower one moderate.
const Confident = 0.6

// cyclesSeen is the least number of periods that a signal must hold: fewer repeat by chance.
const cyclesSeen = 4

// drift is how far a period may wander from one cycle to the next, as a part of it.
const drift = 0.08

// RhythmOf finds the period of a signal of equal bins, of at least 2 of them; false where it holds too little.
//
// The spectrum's inverse is the autocorrelation. Its first high peak is the period: the spectrum of short bursts alone
// has its peaks at all multiples of the frequency.
func RhythmOf(bins []float64, binSeconds float64) (Rhythm, bool) {
	n := len(bins)
	size := 1
	for size < 2*n {
		size *= 2
	}
	signal, mean := make([]complex128, size), 0.0
	for _, v := range bins {
		mean += v / float64(max(n, 1))
	}
	for i, v := range bins {
		signal[i] = complex(v-mean, 0)
	}
	transform(signal)
	power := make([]float64, size/2)
	for i, v := range signal {
		p := real(v)*real(v) + imag(v)*imag(v)
		if i < len(power) {
			power[i] = p
		}
		signal[i] = complex(p, 0)
	}
	transform(signal) // a spectrum of power is even: forward is as good as back
	if n < 4*cyclesSeen || real(signal[0]) <= 0 {
		return Rhythm{}, false
	}

	alike := newLikeness(signal[:n])
	lag, most := alike.firstPeak()
	if lag == 0 {
		return Rhythm{}, false
	}
	period := alike.centre(lag)
	share := combShare(power, float64(size)/period, float64(size)/float64(n))
	return Rhythm{PeriodSeconds: period * binSeconds, Confidence: (most + share) / 2}, true
}

// likeness is how alike a signal is to itself some bins later, 1 for itself, summed from the first bin on.
type likeness struct {
	at  []float64
	sum []float64 // before each bin
}

func newLikeness(correlation []complex128) likeness {
	n := len(correlation)
	l := likeness{at: make([]float64, n), sum: make([]float64, n+1)}
	for i, v := range correlation {
		// Fewer bins meet the longer the lag.
		l.at[i] = real(v) / real(correlation[0]) * float64(n) / float64(n-i)
		l.sum[i+1] = l.sum[i] + l.at[i]
	}
	return l
}

// around is the likeness at a lag, taken over what a period may drift, beside the same about no lag.
func (l *likeness) around(lag int) float64 {
	h := l.reach(lag)
	own := 2*l.sum[h+1] - l.at[0]
	if own <= 0 {
		return 0
	}
	return (l.sum[min(lag+h+1, len(l.at))] - l.sum[max(lag-h, 0)]) / own
}

func (l *likeness) reach(lag int) int { return int(math.Round(drift * float64(lag))) }

// firstPeak is the shortest lag at which the signal is nearly as alike as anywhere; 0 for none.
func (l *likeness) firstPeak() (lag int, most float64) {
	const nearly = 0.6
	end := len(l.at) / cyclesSeen
	score := make([]float64, end+1)
	down := false // behind the burst itself
	for i := 2; i <= end; i++ {
		down = down || l.at[i] <= 0
		if down {
			score[i] = min(l.around(i), 1)
			most = max(most, score[i])
		}
	}
	for i := 2; i < end; i++ {
		if score[i] > 0 && score[i] >= nearly*most && score[i] >= score[i-1] && score[i] >= score[i+1] {
			best := i // the top of this hill
			for k := i; k <= min(end, i+max(2, 2*l.reach(i))); k++ {
				if score[k] > score[best] {
					best = k
				}
			}
			return best, score[best]
		}
	}
	return 0, 0
}

// centre is a peak's mean lag, between bins.
func (l *likeness) centre(lag int) float64 {
	weight, sum := 0.0, 0.0
	h := max(l.reach(lag), 1)
	for i := max(lag-h, 0); i <= min(lag+h, len(l.at)-1); i++ {
		if v := l.at[i]; v > 0 {
			weight += v
			sum += v * float64(i)
		}
	}
	if weight == 0 {
		return float64(lag)
	}
	return sum / weight
}

// combShare is the part of the power at a frequency and its multiples, each as wide as a signal of that length shows
// it and a period may drift.
func combShare(power []float64, frequency, width float64) float64 {
	all, at := 0.0, 0.0
	for i, p := range power[1:] {
		f := float64(i + 1)
		all += p
		k := math.Round(f / frequency)
		if k >= 1 && math.Abs(f-k*frequency) <= max(width, min(drift*f, frequency/4)) {
			at += p
		}
	}
	if all == 0 {
		return 0
	}
	return at / all
}

// transform is the discrete Fourier transform in place, of a length that is a power of two.
func transform(x []complex128) {
	n := len(x)
	for i, j := 1, 0; i < n; i++ {
		bit := n >> 1
		for ; j&bit != 0; bit >>= 1 {
			j ^= bit
		}
		j ^= bit
		if i < j {
			x[i], x[j] = x[j], x[i]
		}
	}
	for size := 2; size <= n; size *= 2 {
		root := cmplx.Rect(1, -2*math.Pi/float64(size))
		for from := 0; from < n; from += size {
			w := complex(1, 0)
			for k := range size / 2 {
				a, b := x[from+k], w*x[from+k+size/2]
				x[from+k], x[from+k+size/2] = a+b, a-b
				w *= root
			}
		}
	}
}
