package share

import "math/bits"

// Lottery draws the job to serve next. It knows which jobs have requests waiting: tokens of idle jobs
// are not drawn, their share goes to the others as Idle says. A draw costs one walk down the tree; it
// is not safe for concurrent use.
type Lottery struct {
	levels []drum
}

// drum is one level: the columns of each row, with the weights of those with work.
type drum struct {
	row     []int32 // column -> row
	start   []int32 // row -> first of its cells
	slot    []int32 // column -> its cell
	column  []int32 // cell -> column
	working []int32 // column -> jobs below it with work (in the last level 0 or 1)
	live    []int32 // row -> columns with work
	weight  []float64
	// cell holds sums of weights, a Fenwick tree for each row, and total what they come to.
	cell, total []float64
}

// NewLottery makes a lottery over jobs, all of them idle.
func NewLottery(p Policy, jobs []Job, idle Idle) *Lottery {
	t := newTree(p, jobs)
	if idle == Flat {
		flat := matrix{row: make([]int32, len(jobs)), weight: t.product(), sum: make([]float64, 1)}
		t = tree{flat}
	}
	l := &Lottery{levels: make([]drum, len(t))}
	for i := range t {
		l.levels[i] = newDrum(&t[i])
	}
	return l
}

func newDrum(m *matrix) drum {
	n, rows := len(m.row), len(m.sum)
	d := drum{
		row: m.row, slot: make([]int32, n), column: make([]int32, n), working: make([]int32, n),
		start: make([]int32, rows+1), live: make([]int32, rows),
		weight: m.weight, cell: make([]float64, n), total: make([]float64, rows),
	}
	for _, r := range m.row {
		d.start[r+1]++
	}
	for r := range rows {
		d.start[r+1] += d.start[r]
	}
	next := append([]int32(nil), d.start...)
	for k, r := range m.row {
		d.slot[k] = next[r]
		d.column[next[r]] = int32(k)
		next[r]++
	}
	return d
}

// Work sets whether a job has requests waiting; setting the same twice changes nothing.
func (l *Lottery) Work(job int, has bool) {
	last := len(l.levels) - 1
	if (l.levels[last].working[job] > 0) == has {
		return
	}
	change := int32(1)
	if !has {
		change = -1
	}
	column := int32(job)
	for i := last; i >= 0; i-- {
		d := &l.levels[i]
		before := d.working[column] > 0
		d.working[column] += change
		if d.working[column] > 0 != before {
			d.toggle(column, has)
		}
		column = d.row[column]
	}
}

// toggle puts a column among those with work or takes it out.
func (d *drum) toggle(column int32, has bool) {
	r, change := d.row[column], int32(1)
	if !has {
		change = -1
	}
	d.add(column, float64(change)*d.weight[column])
	d.live[r] += change
	if d.live[r] == 0 { // no rounding stays behind in an empty row
		clear(d.cell[d.start[r]:d.start[r+1]])
		d.total[r] = 0
	}
}

func (d *drum) add(column int32, weight float64) {
	r := d.row[column]
	first, size := d.start[r], d.start[r+1]-d.start[r]
	for i := d.slot[column] - first + 1; i <= size; i += i & -i {
		d.cell[first+i-1] += weight
	}
	d.total[r] += weight
}

// Draw gives the job that a number u of [0,1) hits; false when no job has work.
func (l *Lottery) Draw(u float64) (job int, found bool) {
	row := int32(0)
	for i := range l.levels {
		d := &l.levels[i]
		if d.live[row] == 0 {
			return 0, false
		}
		row, u = d.pick(row, u)
	}
	return int(row), true
}

// pick finds the column of a row that u hits and where inside the column it hits, again of [0,1).
func (d *drum) pick(row int32, u float64) (column int32, inside float64) {
	first, size := d.start[row], d.start[row+1]-d.start[row]
	cells := d.cell[first : first+size]
	at, left := 0, u*d.total[row]
	for step := 1 << (bits.Len32(uint32(size)) - 1); step > 0; step >>= 1 {
		if next := at + step; next <= len(cells) && cells[next-1] <= left {
			at, left = next, left-cells[next-1]
		}
	}
	// Rounding may run over the end or hit a column without work: go to the nearest that has it.
	for at < len(cells) && d.working[d.column[int(first)+at]] == 0 {
		at++
	}
	if at == len(cells) {
		for at--; d.working[d.column[int(first)+at]] == 0; at-- {
		}
	}
	column = d.column[int(first)+at]
	return column, min(max(left/d.weight[column], 0), almost1)
}

// almost1 is the largest number below 1.
const almost1 = 1 - 1.0/(1<<53)
