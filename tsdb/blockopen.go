package tsdb

import (
	"math"
	"math/bits"

	"fairway/collector"
	"fairway/tsdb/column"
)

// openColumns shows the open nodes of a block, one after the other, to a blockWriter.
type openColumns struct {
	n    *openNode
	rows column.Mask
	late *lateRows
	// From second secs[slot][i] on the value is vals[slot][i], until the next of the count[slot].
	count [maxColumns]int
	secs  [maxColumns][BlockSeconds]uint8
	vals  [maxColumns][BlockSeconds]uint64
	buf   []byte
}

// load reads a node's stream.
func (o *openColumns) load(n *openNode) {
	o.n, o.late = n, n.late.Load()
	o.rows = column.Mask{n.rows[0].Load(), n.rows[1].Load()}
	clear(o.count[:])
	r := changeReader{recordReader{buf: n.block.cells.read(&n.changes, o.buf[:0])}}
	for sec, mask, ok := r.next(); ok; sec, mask, ok = r.next() {
		for ; mask != 0; mask &= mask - 1 {
			v, diff, relative, _ := r.value()
			slot := bits.TrailingZeros64(mask)
			k, before := o.count[slot], absentBits
			if k > 0 {
				before = o.vals[slot][k-1]
			}
			if k == 0 || int(o.secs[slot][k-1]) != sec {
				o.count[slot]++
				k++
			}
			o.secs[slot][k-1], o.vals[slot][k-1] = uint8(sec), resolve(before, v, diff, relative)
		}
	}
	o.buf = r.buf
}

func (o *openColumns) metrics() []collector.Metric { return o.n.layout.metrics }

func (o *openColumns) read(m collector.Metric, c *column.Column) (columnKind, float64) {
	slot := o.n.layout.slotOf(m)
	k := o.count[slot]
	if k == 0 && o.late == nil {
		return columnNone, 0
	}
	if k == 1 && o.secs[slot][0] == 0 && o.rows == column.Full && o.late == nil {
		return columnConstant, math.Float64frombits(o.vals[slot][0])
	}
	o.fill(slot, c)
	if c.Present == (column.Mask{}) {
		return columnNone, 0
	}
	c.Measure()
	if c.Stats.Count == BlockSeconds && c.Stats.Min == c.Stats.Max {
		return columnConstant, c.Stats.Min
	}
	return columnVaried, 0
}

// fill writes the column's values; seconds without one are 0.
func (o *openColumns) fill(slot int, c *column.Column) {
	secs, vals := o.secs[slot][:o.count[slot]], o.vals[slot][:o.count[slot]]
	c.Present = o.rows
	from, v := 0, absentBits
	for i := 0; ; i++ {
		to := BlockSeconds
		if i < len(secs) {
			to = int(secs[i])
		}
		value := 0.0
		if v != absentBits {
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

func (o *openColumns) fillLate(slot int, c *column.Column) {
	for s := range o.late {
		row := o.late[s].Load()
		if row == nil || row.mask>>slot&1 == 0 {
			continue
		}
		c.Present.Clear(s)
		if v := row.value(slot); v != absentBits {
			c.V[s] = math.Float64frombits(v)
			c.Present.Set(s)
		}
	}
}

// encodeBlock seals an open block that nobody writes any more; limit gives a node's bytes/s for
// occupancy, 0 where it is not known.
func encodeBlock(b *openBlock, limit func(node int) float64) []byte {
	w := newBlockWriter(b.start, b.id)
	list := *b.nodes.Load()
	var n nodeColumns
	var open openColumns
	for from := 0; from < len(list); from += chunkNodes {
		for slot := range min(chunkNodes, len(list)-from) {
			if o := list[from+slot].Load(); o != nil {
				open.load(o)
				w.add(slot, &open, &n, limit(from+slot))
			}
		}
		w.endChunk()
	}
	return w.finish()
}
