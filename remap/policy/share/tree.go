package share

// Job is one job with work on the server, or that may have it.
type Job struct {
	Name     string
	User     string
	Group    string
	Size     float64 // compute nodes
	Priority float64
}

// matrix is one transition matrix (section 3, equation 1). Each column, an entity of this level, has
// one entry that is not zero: in the row of the entity that contains it. So a matrix is kept as that
// row and a weight for each column; the entry is the weight over the row's sum.
type matrix struct {
	row    []int32
	weight []float64
	sum    []float64 // of the weights, for each row
}

func (m *matrix) entry(column int) float64 { return m.weight[column] / m.sum[m.row[column]] }

// tree is a policy over some jobs: the matrices from the outside in. The columns of the last one are
// the jobs in their order.
type tree []matrix

// newTree builds the matrices; a job's path of names is its place in them.
func newTree(p Policy, jobs []Job) tree {
	t := make(tree, len(p))
	row := make([]int32, len(jobs)) // each job's entity in the level above
	rows := 1
	for i, level := range p[:len(p)-1] {
		rows = t[i].group(level, jobs, row, rows)
	}
	last := &t[len(p)-1]
	last.row, last.weight, last.sum = row, make([]float64, len(jobs)), make([]float64, rows)
	for j, job := range jobs {
		last.weight[j] = weigh(p[len(p)-1], job)
		last.sum[row[j]] += last.weight[j]
	}
	return t
}

// group makes the columns of an even level: one for each name inside each row. It moves each job's
// row on to its column and returns how many columns there are.
func (m *matrix) group(level Level, jobs []Job, row []int32, rows int) int {
	type entity struct {
		row  int32
		name string
	}
	seen := make(map[entity]int32, rows)
	m.sum = make([]float64, rows)
	for j, job := range jobs {
		e := entity{row[j], job.User}
		if level == Group {
			e.name = job.Group
		}
		column, found := seen[e]
		if !found {
			column = int32(len(m.row))
			seen[e] = column
			m.row = append(m.row, e.row)
			m.weight = append(m.weight, 1)
			m.sum[e.row]++
		}
		row[j] = column
	}
	return len(m.row)
}

func weigh(level Level, j Job) float64 {
	switch level {
	case Size:
		return j.Size
	case Priority:
		return j.Priority
	}
	return 1
}

// product multiplies the matrices: each job's share.
func (t tree) product() []float64 {
	above := []float64{1}
	for i := range t {
		m := &t[i]
		here := make([]float64, len(m.row))
		for k := range here {
			here[k] = above[m.row[k]] * m.entry(k)
		}
		above = here
	}
	return above
}

// Shares are the jobs' shares under a policy, 0..1, in the jobs' order; they add up to 1 when there
// is a job. Sizes and priorities that the policy divides by must be positive.
func Shares(p Policy, jobs []Job) []float64 {
	if len(jobs) == 0 {
		return nil
	}
	return newTree(p, jobs).product()
}

// Segments lays shares end to end over [0,1]: job i owns [cut[i], cut[i+1]), the last one up to and
// with 1.
func Segments(shares []float64) []float64 {
	cut := make([]float64, len(shares)+1)
	var sum, lost float64 // compensated, so that 10,000 jobs do not add up their rounding
	for i, s := range shares {
		y := s - lost
		next := sum + y
		lost = (next - sum) - y
		sum = next
		cut[i+1] = sum
	}
	// Idle jobs behind the last share keep an empty segment at 1.
	for i := len(shares); i > 0; i-- {
		cut[i] = 1
		if shares[i-1] > 0 {
			break
		}
	}
	return cut
}
