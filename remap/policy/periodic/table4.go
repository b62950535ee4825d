package periodic

import "fmt"

// Figures are the two columns of the paper's Table 4.
type Figures struct {
	SysEfficiency float64 `json:"sys_efficiency"`
	Dilation      float64 `json:"dilation"`
}

// PaperSet is a set of the paper's Table 2 with what Table 4 reports of it.
type PaperSet struct {
	Set
	MinDilation float64
	UpperBound  float64
	PerSched    Figures
	// Online has the best of each column that any of the online heuristics reached.
	Online Figures
}

// BestOnline is the best of each column that an online heuristic reaches in the longest pattern's time, as the paper
// has it.
func (p PaperSet) BestOnline() Figures {
	var best Figures
	for _, r := range Heuristics() {
		u := Online(p.Set, r, p.TMin*p.KPrime)
		best.SysEfficiency = max(best.SysEfficiency, u.SysEfficiency)
		if best.Dilation == 0 || u.Dilation < best.Dilation {
			best.Dilation = u.Dilation
		}
	}
	return best
}

// PaperSets returns the ten sets with the shortest pattern lengths that the authors chose by hand for Table 4.
func PaperSets() []PaperSet {
	rows := []PaperSet{
		paperSet(0, 10, 0, 0, 900), paperSet(0, 8, 1, 0, 16000), paperSet(0, 6, 2, 0, 16000),
		paperSet(0, 4, 3, 0, 16000), paperSet(0, 2, 0, 1, 495000), paperSet(0, 2, 4, 0, 16000),
		paperSet(1, 2, 0, 0, 4544), paperSet(0, 0, 1, 1, 495000), paperSet(0, 0, 5, 0, 16000),
		paperSet(1, 0, 1, 0, 16000),
	}
	for i, f := range [][6]float64{
		{1.777, 0.172, 0.0973, 1.896, 0.0825, 2.091},
		{1.422, 0.334, 0.290, 1.429, 0.271, 1.658},
		{1.079, 0.495, 0.480, 1.087, 0.442, 1.291},
		{1.014, 0.656, 0.647, 1.014, 0.640, 1.029},
		{1.010, 0.816, 0.815, 1.024, 0.810, 1.039},
		{1.005, 0.818, 0.814, 1.005, 0.761, 1.035},
		{1.007, 0.827, 0.824, 1.007, 0.818, 1.012},
		{1.005, 0.977, 0.976, 1.005, 0.976, 1.005},
		{1.000, 0.979, 0.979, 1.000, 0.978, 1.004},
		{1.009, 0.988, 0.986, 1.009, 0.985, 1.015},
	} {
		r := &rows[i]
		r.MinDilation, r.UpperBound = f[0], f[1]
		r.PerSched, r.Online = Figures{f[2], f[3]}, Figures{f[4], f[5]}
	}
	return rows
}

// paperSet is a set with so many of each application of Table 1, scaled to 640 processors as section 4.2 says:
// beta / 64, w * 64.
func paperSet(t1, t2, ap, pp int, tMin float64) PaperSet {
	s := Set{Procs: 640, Link: 0.01, Bandwidth: 3, KPrime: defaultKPrime, Eps: defaultEps, TMin: tMin}
	for _, kind := range []struct {
		app   App
		count int
	}{
		{App{"T1", 70 * 64, 128.2, 32768 / 64}, t1}, {App{"T2", 1.2 * 64, 235.8, 4096 / 64}, t2},
		{App{"AP", 240 * 64, 423.4, 8192 / 64}, ap}, {App{"PP", 7554 * 64, 34304, 32768 / 64}, pp},
	} {
		for n := range kind.count {
			a := kind.app
			a.Name = fmt.Sprint(a.Name, "-", n+1)
			s.Apps = append(s.Apps, a)
		}
	}
	return PaperSet{Set: s}
}
