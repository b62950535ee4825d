package rows

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"fairway/collector"
	"fairway/tsdb/engine/column"
)

// Columns shows the nodes of a closed block, one after the other, to who seals it.
type Columns struct {
	n    *Node
	rows column.Mask
	late *lateRows
	// secs are the seconds of the count rows in the stream; each row holds until the next. Row i has in a column the
	// integer ints[slot][i] or, in the columns of other, the value vals[slot][i].
	count int
	secs  [column.Seconds]uint8
	other uint64
	ints  [MaxColumns][column.Seconds]int64
	vals  [MaxColumns][column.Seconds]uint64
	buf   []byte
}

// Load reads the rows of a node; false where it has none.
func (o *Columns) Load(b *Block, node int) bool {
	n, rows := b.Node(node)
	if n == nil {
		return false
	}
	o.n, o.late, o.rows, o.count, o.other = n, n.late, *rows, 0, 0
	o.buf = slices.Grow(append(o.buf[:0], n.rows.buf...), Slack)
	columns := len(n.Layout.Metrics)
	narrowest := columns
	end := len(o.buf)
	padded := o.buf[:end+Slack] // every value can be looked at as eight bytes
	for at := 0; at < end; {
		if sec := padded[at]; o.count == 0 || o.secs[o.count-1] != sec {
			o.secs[o.count] = sec
			o.count++
		}
		row := padded[at+1:]
		narrowest = min(narrowest, int(row[0]))
		other, size := o.loadInts(row, o.count-1)
		o.other |= other
		at += 1 + size
	}
	o.other |= 1<<columns - 1<<narrowest // columns that came later than the node
	if o.late != nil {
		o.other = math.MaxUint64
	}
	if o.other != 0 {
		o.loadVals()
	}
	return true
}

// loadInts takes the integers of the row at the begin of b, which is a whole one and has eight bytes behind it. It
// returns the columns that have something else, and the row's size.
func (o *Columns) loadInts(b []byte, i int) (other uint64, size int) {
	columns := int(b[0])
	at := 1 + (columns+1)/2
	codes := uint64(0)
	for slot := range o.ints[:columns] {
		if slot&15 == 0 {
			codes = load(b, 1+slot/2)
		}
		code := codes & 15
		codes >>= 4
		o.ints[slot][i] = int64(binary.LittleEndian.Uint64(b[at:]) & lowBytes[code])
		at += int(codeSize[code])
		other |= code >> 3 << (slot & 63)
	}
	return other, at
}

// loadVals reads the rows again, for the columns that have not only integers.
func (o *Columns) loadVals() {
	var vals [MaxColumns]uint64
	columns := len(o.n.Layout.Metrics)
	i := -1
	r := streamReader{buf: o.buf}
	for sec, row, ok := r.next(); ok; sec, row, ok = r.next() {
		if i < 0 || int(o.secs[i]) != sec {
			i++
		}
		Values(row, vals[:columns])
		for slot := range columns {
			o.vals[slot][i] = vals[slot]
		}
	}
}

// Metrics returns those of the node.
func (o *Columns) Metrics() []collector.Metric { return o.n.Layout.Metrics }

// Read reads the column of a metric; one of integers is in w instead of c.
func (o *Columns) Read(m collector.Metric, c *column.Column, w *column.Whole) (column.Kind, float64) {
	slot := o.n.Layout.Slot(m)
	if o.other>>slot&1 == 0 {
		return o.readInts(slot, c, w)
	}
	if first := o.vals[slot][0]; o.late == nil && o.rows == column.Full && isConstant(o.vals[slot][:o.count]) &&
		first != Absent {
		return column.Constant, math.Float64frombits(first)
	}
	o.fill(slot, c)
	return c.Kept()
}

func isConstant[T int64 | uint64](vals []T) bool {
	for _, v := range vals {
		if v != vals[0] {
			return false
		}
	}
	return true
}

// readInts reads a column of integers. Its first row is of its first second, so every second has a value.
func (o *Columns) readInts(slot int, c *column.Column, w *column.Whole) (column.Kind, float64) {
	vals := o.ints[slot][:o.count]
	if o.rows == column.Full && isConstant(vals) {
		return column.Constant, float64(vals[0])
	}
	if o.count == column.Seconds {
		copy(w.V[:], vals)
	} else {
		o.spread(vals, w)
	}
	w.Present = o.rows
	if w.Measure() {
		return column.Integers, 0
	}
	c.Present = o.rows
	for s, v := range w.V {
		c.V[s] = float64(v)
	}
	c.Measure()
	return column.Varied, 0
}

// spread writes the value of every second, 0 where it is missing.
func (o *Columns) spread(vals []int64, w *column.Whole) {
	from, v := 0, int64(0)
	for i, next := range vals {
		to := int(o.secs[i])
		for s := from; s < to; s++ {
			w.V[s] = v
		}
		from, v = to, next
	}
	for s := from; s < column.Seconds; s++ {
		w.V[s] = v
	}
	for i, gone := range column.Full.AndNot(o.rows) {
		for ; gone != 0; gone &= gone - 1 {
			w.V[i<<6+bits.TrailingZeros64(gone)] = 0
		}
	}
}

// fill writes the column's values; seconds without one are 0.
func (o *Columns) fill(slot int, c *column.Column) {
	secs, vals := o.secs[:o.count], o.vals[slot][:o.count]
	c.Present = o.rows
	from, v := 0, Absent
	for i := 0; ; i++ {
		to := column.Seconds
		if i < len(secs) {
			to = int(secs[i])
		}
		value := 0.0
		if v != Absent {
			value = math.Float64frombits(v)
		} else {
			for s := from; s < to; s++ {
				c.Present.Clear(s)
			}
		}
		for s := from; s < to; s++ {
			c.V[s] = value
		}
		if i == len(secs) {
			break
		}
		from, v = to, vals[i]
	}
	if o.late != nil {
		o.fillLate(slot, c)
	}
	for w, gone := range column.Full.AndNot(c.Present) {
		for ; gone != 0; gone &= gone - 1 {
			c.V[w<<6+bits.TrailingZeros64(gone)] = 0
		}
	}
}

func (o *Columns) fillLate(slot int, c *column.Column) {
	for s := range o.late {
		row := o.late[s]
		if row == nil || row.mask>>slot&1 == 0 {
			continue
		}
		c.Present.Clear(s)
		if v := row.value(slot); v != Absent {
			c.V[s] = math.Float64frombits(v)
			c.Present.Set(s)
		}
	}
}
