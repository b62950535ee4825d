package interference

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
)

// backend is what is kept of the storage pools and of the whole layer.
type backend struct {
	usual  []float64 // of each pool, log seconds, slow mean of the calm times
	count  float64
	all    streak
	pool   streak
	which  int
	worst  float64 // ratio of the slowest pool to its usual time, smoothed
	mean   float64 // of all pools
	ratio  float64 // of the median pool, or of the layer
	smooth []float64
}

const usualFor = 3600 // seconds, time constant of what is usual

// judgeBackend names brown-outs: of all pools, or of one.
func (d *Detector) judgeBackend(layer Layer) {
	b := &d.backend
	if len(layer.Pools) == 0 {
		b.worst, b.mean, b.ratio = 1, 1, math.Sqrt(max(layer.Read, 0)*max(layer.Write, 0))
		b.all.step(d.now, b.ratio >= brownoutFrom, 10, 10)
	} else {
		d.judgePools(layer.Pools)
	}
	if b.all.open {
		d.sayBackend(anomaly.BrownoutAll, &b.all, b.ratio, "the whole back end takes")
	}
	if b.pool.open {
		d.sayBackend(anomaly.BrownoutPool, &b.pool, b.worst, fmt.Sprintf("storage pool %d takes", b.which))
	}
}

func (d *Detector) judgePools(pools []float64) {
	b := &d.backend
	if len(b.usual) != len(pools) {
		b.usual, b.smooth, b.count = make([]float64, len(pools)), make([]float64, len(pools)), 0
	}
	b.count = min(b.count+1, usualFor)
	ratios := make([]float64, len(pools))
	b.mean = 0
	for i, p := range pools {
		x := math.Log(max(p, 1e-7))
		if b.count == 1 {
			b.usual[i] = x
		}
		b.smooth[i] += (x - b.usual[i] - b.smooth[i]) / 3
		ratios[i] = math.Exp(b.smooth[i])
		b.mean += ratios[i] / float64(len(pools))
		if b.smooth[i] < math.Log(brownoutFrom)/2 {
			b.usual[i] += (x - b.usual[i]) / min(b.count, usualFor)
		}
	}
	sorted := slices.Sorted(slices.Values(ratios))
	b.ratio = sorted[len(sorted)/2]
	b.worst = sorted[len(sorted)-1]
	b.all.step(d.now, len(pools) > 1 && b.ratio >= brownoutFrom, 5, 5)
	// One pool is slow by itself while the others are not, or far slower than they are.
	single := b.worst >= brownoutFrom && b.worst >= 1.5*b.ratio || len(pools) == 1 &&
		b.worst >= brownoutFrom
	if single {
		b.which = slices.Index(ratios, b.worst)
	}
	b.pool.step(d.now, single, 5, 5)
}

// Pools is how many times their usual time the slowest storage pool and the mean pool take now, at least 1.
func (d *Detector) Pools() (worst, mean float64) {
	return max(1, d.backend.worst), max(1, d.backend.mean)
}

func (d *Detector) sayBackend(kind anomaly.Kind, s *streak, ratio float64, what string) {
	since := time.Unix(s.since, 0).UTC()
	d.verdicts = append(d.verdicts, anomaly.Verdict{
		Node: anomaly.Everywhere, Kind: kind, Level: anomaly.Alarm, Since: since,
		Confidence: min(0.99, 0.8+0.01*float64(s.on)), Score: ratio,
		Sentence: fmt.Sprintf("%s %s as long as usual, behind every forwarder alike", what,
			anomaly.Times(ratio)),
		Evidence: map[string]float64{"ratio": ratio},
	})
}
