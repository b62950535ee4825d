package share

import "slices"

// Idle says where the share of a job without enough work goes.
type Idle string

// The two ways of opportunity fairness.
const (
	// Inside gives it to the other jobs of the same user first, then of the same group, then to all:
	// no entity loses its share while any of its jobs has work.
	Inside Idle = "inside"
	// Flat gives it to all jobs with work in proportion to their shares, as a worker does that draws
	// again when the job it drew has no request.
	Flat Idle = "flat"
)

// Demand is a job's work: what it would take of the capacity if it were alone. Unlimited demand is
// math.Inf(1), no work is 0.

// Allocate divides capacity among jobs by a policy when each can take no more than its demand, in the
// unit of both: max-min fair filling, level by level. Whoever wants less than his share gets what he
// wants; the rest is divided among the others by their weights.
func Allocate(p Policy, jobs []Job, demand []float64, capacity float64, idle Idle) []float64 {
	if len(jobs) == 0 {
		return nil
	}
	t := newTree(p, jobs)
	if idle == Flat {
		return fill(capacity, t.product(), demand)
	}
	wants := t.demands(demand)
	got := []float64{capacity}
	for i := range t {
		got = t[i].fillRows(got, wants[i])
	}
	return got
}

// demands adds the jobs' demands up the tree: one slice of columns for each level.
func (t tree) demands(jobs []float64) [][]float64 {
	wants := make([][]float64, len(t))
	wants[len(t)-1] = jobs
	for i := len(t) - 1; i > 0; i-- {
		wants[i-1] = make([]float64, len(t[i].sum))
		for k, d := range wants[i] {
			wants[i-1][t[i].row[k]] += d
		}
	}
	return wants
}

// fillRows divides what each row got among its columns.
func (m *matrix) fillRows(got, wants []float64) []float64 {
	out := make([]float64, len(m.row))
	for r, columns := range m.columns() {
		weight, want := make([]float64, len(columns)), make([]float64, len(columns))
		for i, k := range columns {
			weight[i], want[i] = m.weight[k], wants[k]
		}
		for i, x := range fill(got[r], weight, want) {
			out[columns[i]] = x
		}
	}
	return out
}

// columns lists each row's columns.
func (m *matrix) columns() [][]int32 {
	of := make([][]int32, len(m.sum))
	for k, r := range m.row {
		of[r] = append(of[r], int32(k))
	}
	return of
}

// fill divides capacity by weight among takers that want no more than want: those who want least for
// their weight are served first, so what they leave is known before the others share it.
func fill(capacity float64, weight, want []float64) []float64 {
	order := make([]int, len(weight))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := want[a]*weight[b], want[b]*weight[a]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	// Sums from the far end: what is left to share by does not lose digits to subtraction.
	left := make([]float64, len(order)+1)
	for i := len(order) - 1; i >= 0; i-- {
		left[i] = left[i+1] + weight[order[i]]
	}
	got := make([]float64, len(weight))
	for i, k := range order {
		if left[i] > 0 {
			got[k] = min(want[k], capacity*weight[k]/left[i])
		}
		capacity = max(capacity-got[k], 0)
	}
	return got
}
