package periodic

import "math"

// Pattern is a schedule of length T, to be repeated.
type Pattern struct {
	T float64 `json:"T"` // seconds
	// SysEfficiency is the part of the machine that computes (equation 1 with 3), 0..1.
	SysEfficiency float64 `json:"sys_efficiency"`
	// Dilation is the largest slowdown of an application against running alone (equation 2), >= 1.
	Dilation float64 `json:"dilation"`
	// UpperBound (equation 5) and KnapsackBound bound SysEfficiency.
	UpperBound    float64  `json:"upper_bound"`
	KnapsackBound float64  `json:"knapsack_bound"`
	Apps          []Placed `json:"apps"`
}

// Placed is one application's part of a pattern, its instances in order of time, the first being the
// one whose I/O the pattern began with.
type Placed struct {
	Name string `json:"name"`
	// Dilation is this application's own.
	Dilation  float64    `json:"dilation"`
	Instances []Instance `json:"instances"`
}

// Instance computes from InitW on, for w seconds, and then does its I/O. Times are of [0, T]; the
// computation and the list of intervals may run over the end of the pattern to its beginning.
type Instance struct {
	InitW float64    `json:"init_w"`
	IO    []Interval `json:"io"`
}

// Interval is I/O from a start to an end (seconds) at one bandwidth (GB/s, of the whole application).
type Interval [3]float64

// Bandwidth is the application's mean bandwidth, GB/s, in each of so many equal parts of the pattern's
// length (seconds), as a drawing needs it.
func (p *Placed) Bandwidth(length float64, parts int) []float64 {
	out, width := make([]float64, parts), length/float64(parts)
	for _, in := range p.Instances {
		for _, x := range in.IO {
			for c := int(x[0] / width); c < parts && float64(c)*width < x[1]; c++ {
				from, to := max(x[0], float64(c)*width), min(x[1], float64(c+1)*width)
				out[c] += x[2] * max(to-from, 0) / width
			}
		}
	}
	return out
}

// pattern is what the builder made last, which it must have recorded.
func (b *builder) pattern() Pattern {
	p := Pattern{T: b.t, UpperBound: b.set.UpperBound(), KnapsackBound: b.set.KnapsackBound()}
	work := 0.0
	for i := range b.apps {
		a := &b.apps[i]
		placed := Placed{Name: b.set.Apps[i].Name, Dilation: max(b.t/(float64(a.n)*a.cycle), 1)}
		for k, pieces := range a.io {
			before := a.io[(k+len(a.io)-1)%len(a.io)]
			in := Instance{InitW: math.Mod(before[len(before)-1].to, b.t)}
			for _, x := range pieces {
				in.IO = appendIO(in.IO, x)
			}
			placed.Instances = append(placed.Instances, in)
		}
		work += b.set.Apps[i].Procs * a.work * float64(a.n)
		p.Dilation = max(p.Dilation, placed.Dilation)
		p.Apps = append(p.Apps, placed)
	}
	p.SysEfficiency = work / (b.set.Procs * b.t)
	return p
}

// appendIO adds a piece, joined to the one before where they touch at the same bandwidth.
func appendIO(io []Interval, x piece) []Interval {
	if n := len(io); n > 0 && io[n-1][1] == x.from && io[n-1][2] == x.rate {
		io[n-1][1] = x.to
		return io
	}
	return append(io, Interval{x.from, x.to, x.rate})
}
