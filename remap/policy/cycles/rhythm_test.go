package cycles

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawSignal draws a job's I/O by the second: bursts of 2 s and more, whose period and volume vary, with a line of a
// log now and then. It returns the mean period.
func drawSignal(r *rand.Rand, seconds int) (bins []float64, period float64) {
	period = math.Exp(math.Log(8) + r.Float64()*math.Log(float64(seconds)/8/8))
	burst := max(2, period*(0.02+0.5*r.Float64()))
	jitter := 0.1 * r.Float64()
	bins = make([]float64, seconds)
	n, first, last := 0, -1.0, 0.0
	for at := period * r.Float64(); at+burst < float64(seconds); at += period * (1 + jitter*(2*r.Float64()-1)) {
		rate := 1e9 * (0.8 + 0.4*r.Float64())
		for s := at; s < at+burst; s++ {
			bins[int(s)] += rate * min(1, at+burst-s)
		}
		if first < 0 {
			first = at
		}
		n, last = n+1, at
	}
	for range seconds / 20 {
		bins[r.IntN(seconds)] += 1e6
	}
	return bins, (last - first) / float64(n-1)
}

// The period of drawn signals is found with an error far below FTIO's 11 %, by what it is confident of.
func TestRhythmOfDrawnSignals(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 34))
	const drawn = 500
	confident, wrong, sum := 0, 0, 0.0
	for range drawn {
		bins, period := drawSignal(r, 600)
		got, ok := RhythmOf(bins, 1)
		if !ok || got.Confidence < Confident {
			continue
		}
		confident++
		off := math.Abs(got.PeriodSeconds/period - 1)
		sum += off
		if off > 0.11 {
			wrong++
			t.Logf("period %.1f found as %.1f, confidence %.2f", period, got.PeriodSeconds, got.Confidence)
		}
	}
	mean := sum / float64(confident)
	t.Logf("%d of %d confident, mean error %.2f %%, %d above 11 %%", confident, drawn, 100*mean, wrong)
	if confident < drawn*9/10 || mean > 0.03 || wrong > drawn/50 {
		t.Errorf("%d of %d confident, mean error %.3f, %d above 11 %%", confident, drawn, mean, wrong)
	}
}

// What comes at any time has no rhythm to be confident of, and neither has what never stops or never begins.
func TestNoRhythm(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 34))
	const drawn = 300
	confident := 0
	for range drawn {
		bins := make([]float64, 600)
		gap, burst := 8+60*r.Float64(), 2+r.IntN(10)
		for at := r.ExpFloat64() * gap; at < 600; at += r.ExpFloat64() * gap {
			for s := int(at); s < min(int(at)+burst, 600); s++ {
				bins[s] += 1e9
			}
		}
		if got, ok := RhythmOf(bins, 1); ok && got.Confidence >= Confident {
			confident++
		}
	}
	t.Logf("%d of %d random signals are confident", confident, drawn)
	if confident > drawn/50 {
		t.Errorf("%d of %d random signals are confident", confident, drawn)
	}
	steady := make([]float64, 600)
	for i := range steady {
		steady[i] = 1e9
	}
	for name, bins := range map[string][]float64{"steady": steady, "none": make([]float64, 600), "short": {1, 0, 1},
		"empty": nil} {
		if got, ok := RhythmOf(bins, 1); ok && got.Confidence >= Confident {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
