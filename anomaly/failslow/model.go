package failslow

import (
	"math"

	"fairway/anomaly/compare"
)

// The fleet model is a table of mean log execution times by class, request size and utilisation, each
// cell taught by the healthy seconds of the whole layer.
const (
	sizeBins = 44 // half octaves of bytes a request, from 64 B
	utilBins = 4
	// teachers is how many different nodes must have fed a cell before it is believed, where there are
	// that many: a cell of one job's nodes would learn that job's habits as the fleet's.
	teachers = 4
)

type cell struct {
	Mean  float64
	Count float64
	Who   [teachers]int32 // nodes that taught it, 1 + their index; 0 none
}

type model struct {
	Cells [2][utilBins][sizeBins]cell
	Noise [2][16]compare.Mean // absolute residuals, by class and log2 of the operations in the second
	Sizes [2]sizes
}

// sizes is how large the requests of the layer's background are, log bytes: a second whose mean is another one has
// requests of jobs in it.
type sizes struct{ Mean, Spread, Count, Ops, OpsSpread float64 }

const sizesMost = 20000 // seconds of nodes of which the newest count

// usual says that a second's mean request size is the background's, and learns of it.
func (z *sizes) usual(size, ops float64) bool {
	x := math.Log(size)
	if z.Count == 0 {
		z.Mean = x
	}
	if z.Ops == 0 { // or a state of before
		z.Ops = math.Log(ops)
	}
	off := x - z.Mean
	ok := z.Count < sizesFrom || math.Abs(off) <= max(sizesNear, sizesWide*z.Spread)
	z.Count = min(z.Count+1, sizesMost)
	z.Mean += clip(off, -0.3, 0.3) / z.Count
	z.Spread += (min(math.Abs(off), 1) - z.Spread) / z.Count
	busier := math.Log(ops) - z.Ops
	z.Ops += busier / z.Count
	z.OpsSpread += (math.Abs(busier) - z.OpsSpread) / z.Count
	return ok
}

// background says that so many small requests are no job's: those of the layer are all about as large and
// about as many.
func (z *sizes) background(ops float64) bool {
	return z.Count >= sizesFrom && z.Spread < sizesNear && z.OpsSpread < opsWide &&
		math.Log(ops)-z.Ops <= opsFar*z.OpsSpread
}

// absoluteToSigma makes a standard deviation of a normal law's mean distance.
const absoluteToSigma = 1.25

// place returns where a mean request size lies between two cells.
func place(size float64) (bin int, part float64) {
	x := 2 * (math.Log2(max(size, 64)) - 6)
	x = min(x, sizeBins-1.001)
	bin = int(x)
	return bin, x - float64(bin)
}

func utilBin(util float64) int { return min(utilBins-1, max(0, int(util*utilBins))) }

func (c *cell) known(need int) bool {
	n := 0
	for _, w := range c.Who {
		if w != 0 {
			n++
		}
	}
	return n >= need && float64(c.Count) >= cellLeast
}

// expect returns the log execution time that the fleet needs; ok is false where too few nodes have
// shown it. Where no healthy node was as little used, which is how a slow one looks whose clients wait for answers,
// the next busier ones speak: they are no faster.
func (m *model) expect(c Class, size, util float64, need int) (x float64, ok bool) {
	bin, part := place(size)
	own := utilBin(util)
	for i := range utilBins {
		u := own - i
		if u < 0 {
			u = i
		}
		a, b := &m.Cells[c][u][bin], &m.Cells[c][u][bin+1]
		switch ka, kb := a.known(need), b.known(need); {
		case ka && kb:
			return a.Mean + part*(b.Mean-a.Mean), true
		case ka && part <= cellReach:
			return a.Mean, true
		case kb && 1-part <= cellReach:
			return b.Mean, true
		}
	}
	return 0, false
}

// teach takes one healthy second of a node.
func (m *model) teach(c Class, size, util, x float64, who int) {
	bin, part := place(size)
	m.Cells[c][utilBin(util)][bin].teach(x, 1-part, who)
	m.Cells[c][utilBin(util)][bin+1].teach(x, part, who)
}

func (l *cell) teach(x, weight float64, who int) {
	if weight < cellLight {
		return
	}
	for i, w := range l.Who {
		if w == int32(who)+1 {
			break
		}
		if w == 0 {
			l.Who[i] = int32(who) + 1
			break
		}
	}
	l.Count = min(l.Count+weight, 20000)
	step := x - l.Mean
	if l.Count > cellYoung { // a long tail must not draw the mean
		step = max(-0.25, min(0.25, step))
	}
	l.Mean += step * weight / l.Count
}

// sigma is the spread of a healthy second's residual with that many operations.
func (m *model) sigma(c Class, ops float64) float64 {
	n := &m.Noise[c][noiseBin(ops)]
	prior := 0.08 + 0.9/math.Sqrt(max(ops, 1))
	return max(0.05, absoluteToSigma*(n.Mean*n.N+prior*50)/(n.N+50))
}

func noiseBin(ops float64) int { return min(15, max(0, int(math.Log2(max(ops, 1))))) }

func (m *model) teachNoise(c Class, ops, residual float64) {
	m.Noise[c][noiseBin(ops)].Teach(min(math.Abs(residual), 1), 20000, 20000)
}
