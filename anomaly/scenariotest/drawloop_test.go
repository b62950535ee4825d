package scenariotest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// DrawLoops makes a scenario of jobs that wait for answers: an hour of steady streams, checkpoints with barriers,
// lockstep programs that read and write, small requests on some of the pools, beside some open arrivals.
func DrawLoops(seed uint64, nodes int) *Scenario {
	r := rand.New(rand.NewPCG(seed, 0x100b))
	s := draw(r, &Scenario{Seed: seed, Nodes: nodes, Seconds: 3600})
	s.Reserve = 0
	s.Quiet = []float64{0.01, 0.5, 0.99}[r.IntN(3)]
	keep := nodes / (4 + r.IntN(12))
	r.Shuffle(len(s.Jobs), func(i, k int) { s.Jobs[i], s.Jobs[k] = s.Jobs[k], s.Jobs[i] })
	s.Jobs = s.Jobs[:keep]
	crowded := 2 + r.IntN(4) // forwarders' worth of nodes to a loop
	for i := range max(2, nodes/crowded) {
		s.Loops = append(s.Loops, drawLoop(r, s, i))
	}
	for i := range s.Faults {
		s.Faults[i].loop(r)
	}
	s.Brownouts = append(s.Brownouts[:1], drawBrownouts(r)...)
	return s
}

// loop turns some of the usual faults into those that only closed loops show.
func (f *Fault) loop(r *rand.Rand) {
	switch r.IntN(8) {
	case 0:
		f.Kind, f.Severity = "write_slow", 0.1+0.2*r.Float64()
	case 1:
		f.Kind, f.Severity = "times", 1.5+8*r.Float64()*r.Float64()
	case 2:
		f.Kind, f.Severity = "client_link", 0.04+0.1*r.Float64()
	}
}

func drawBrownouts(r *rand.Rand) (out []Brownout) {
	for range 2 + r.IntN(3) {
		at := 900 + r.IntN(2300)
		first, wide, times := r.IntN(poolSet), 1+r.IntN(3), 1.8+3*r.Float64()
		for k := range wide {
			out = append(out, Brownout{Pool: (first + k) % poolSet, Start: at, End: min(3550, at+60+r.IntN(600)),
				Times: times})
		}
	}
	return out
}

// drawPools are some of the pools that a job's files lie on: one, some neighbours, or all.
func drawPools(r *rand.Rand) (out []int) {
	first, wide := r.IntN(poolSet), []int{1, 2, poolSet / 2, poolSet}[r.IntN(4)]
	for k := range wide {
		out = append(out, (first+k)%poolSet)
	}
	return out
}

var loopSizes = []float64{4e3, 16e3, 32e3, 64e3, 128e3, 256e3, 512e3, 1e6}

func drawLoop(r *rand.Rand, s *Scenario, i int) Loop {
	j := Loop{ID: fmt.Sprintf("c%04d", i), End: s.Seconds, Count: 1 + r.IntN(min(12, s.Nodes)), Pools: drawPools(r),
		Cost: math.Exp(0.2 * r.NormFloat64())}
	if r.IntN(6) == 0 {
		j.Count = 1
	}
	j.First = r.IntN(s.Nodes - j.Count + 1)
	if r.IntN(2) == 0 {
		j.Start = r.IntN(2600)
		j.End = min(s.Seconds, j.Start+300+r.IntN(3000))
	}
	j.UnderWay = float64((1 + r.IntN(16)) * (1 << r.IntN(5)))
	size := loopSizes[r.IntN(len(loopSizes))]
	j.Size = [2]float64{size, size}
	if r.IntN(3) == 0 {
		j.Size[1] = loopSizes[r.IntN(len(loopSizes))]
	}
	j.Reads = []float64{0, 1, 0.5, 0.8, 0.3}[r.IntN(5)]
	j.Think = []float64{0, 1e-3, 10e-3}[r.IntN(3)]
	switch r.IntN(6) {
	case 0: // steady
	case 1, 2: // checkpoints: each forwarder moves as much, and all wait
		j.Reads = []float64{0, 0, 0.5}[r.IntN(3)]
		j.Bytes, j.Compute = peak*float64(2+r.IntN(15)), 20+r.IntN(200)
	case 3: // of one file: writes wait for its locks
		j.Reads, j.Cost = 0, j.Cost*(2+6*r.Float64())
		j.Bytes, j.Compute = peak*float64(1+r.IntN(5)), 20+r.IntN(200)
	case 4:
		j.Lockstep, j.Reads = true, []float64{0.5, 0.7, 1}[r.IntN(3)]
	case 5: // small requests all the time, of few processes
		size = loopSizes[r.IntN(3)]
		j.Size, j.UnderWay, j.Think = [2]float64{size, size}, float64(1+r.IntN(8)), 5e-3
		if len(j.Pools) == poolSet && r.IntN(2) == 0 {
			j.Pools = j.Pools[:poolSet/2]
		}
	}
	j.Pools = slices.Clip(j.Pools)
	return j
}
