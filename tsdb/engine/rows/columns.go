package rows

import (
	"math"
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
	// value vals[slot][i].
	count int
	secs  [column.Seconds]uint8
	vals  [MaxColumns][column.Seconds]uint64
}

// Load reads the rows of a node; false where it has none.
func (o *Columns) Load(b *Block, node int) bool {
	n, rows := b.Node(node)
	if n == nil {
		return false
	}
	o.n, o.late, o.rows, o.count = n, n.late, *rows, 0
	var vals [MaxColumns]uint64
	columns := len(n.Layout.Metrics)
	r := streamReader{buf: n.rows.buf}
	for sec, row, ok := r.next(); ok; sec, row, ok = r.next() {
		if o.count == 0 || int(o.secs[o.count-1]) != sec {
			o.secs[o.count] = uint8(sec)
			o.count++
		}
		Values(row, vals[:columns])
		for slot := range columns {
			o.vals[slot][o.count-1] = vals[slot]
		}
	}
	return true
}

// Metrics returns those of the node.
func (o *Columns) Metrics() []collector.Metric { return o.n.Layout.Metrics }

// Read reads the column of a metric.
func (o *Columns) Read(m collector.Metric, c *column.Column) (column.Kind, float64) {
	slot := o.n.Layout.Slot(m)
	first := o.vals[slot][0]
	if o.late == nil && o.rows == column.Full && first != Absent &&
		!slices.ContainsFunc(o.vals[slot][:o.count], func(v uint64) bool { return v != first }) {
		return column.Constant, math.Float64frombits(first)
	}
	o.fill(slot, c)
	return c.MeasureKind()
}

// fill writes the column's values; seconds without one are 0.
func (o *Columns) fill(slot int, c *column.Column) {
	c.Present = column.Mask{}
	v, next := Absent, 0
	for s := range c.V {
		if next < o.count && int(o.secs[next]) == s {
			v = o.vals[slot][next]
			next++
		}
		now := v
		if o.late != nil && o.late[s] != nil && o.late[s].mask>>slot&1 != 0 {
			now = o.late[s].value(slot)
		}
		c.V[s] = 0
		if now != Absent && o.rows.Has(s) {
			c.V[s] = math.Float64frombits(now)
			c.Present.Set(s)
		}
	}
}
