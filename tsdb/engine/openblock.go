package engine

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"fairway/collector"
	"fairway/tsdb/engine/column"
)

// BlockSeconds is the span of a block. Blocks begin at multiples of it since the epoch.
const BlockSeconds = 120

// absentBits marks, inside the engine only, a second in which a column has no value. It is a NaN
// that no arithmetic makes; a NaN from outside never enters.
const absentBits uint64 = 0x7ff4_dead_0000_0001

// layout is the order in which a node's frames name their metrics. Nodes of one kind share one.
type layout struct {
	metrics []collector.Metric
	slot    [collector.MetricCount]int8 // position in metrics, -1 where missing
}

func newLayout(metrics []collector.Metric) *layout {
	l := &layout{metrics: metrics}
	for i := range l.slot {
		l.slot[i] = -1
	}
	for i, m := range metrics {
		l.slot[m] = int8(i)
	}
	return l
}

func (l *layout) slotOf(m collector.Metric) int {
	if int(m) >= len(l.slot) {
		return -1
	}
	return int(l.slot[m])
}

// openNode is one node's rows in an open block. The lock of the node's nodeChunk guards it until its block is
// closed; then nothing changes any more.
type openNode struct {
	layout *layout // nil before the first row
	rows   stream
	// late are the rows that came after later ones; nil without any.
	late *lateRows
}

// openChunk is the part of a block that 64 nodes have.
type openChunk struct {
	nodes [chunkNodes]openNode
	rows  [chunkNodes]column.Mask // the seconds that each node reported
}

// size is how many places for nodes there are, none without a chunk.
func (c *openChunk) size() int {
	if c == nil {
		return 0
	}
	return chunkNodes
}

// lateRows are values by second that count instead of what the stream says of that second. A row that stands in
// it does not change.
type lateRows [BlockSeconds]*lateRow

// lateRow holds the values of the slots in mask; a slot beyond vals is absent.
type lateRow struct {
	mask uint64
	vals []uint64
}

func (r *lateRow) value(slot int) uint64 {
	if slot < len(r.vals) {
		return r.vals[slot]
	}
	return absentBits
}

// newestOf returns the latest second of a mask, -1 without one.
func newestOf(rows *column.Mask) int {
	if hi := rows[1]; hi != 0 {
		return 127 - bits.LeadingZeros64(hi)
	}
	return 63 - bits.LeadingZeros64(rows[0])
}

// copied is what a reader takes of a node while it holds the lock.
type copied struct {
	stream streamReader
	rows   column.Mask
	late   *lateRows
}

// copy takes the rows of a node; false where it has none of metric m.
func (b *openBlock) copy(c *nodeChunk, node int, m collector.Metric, dst *copied) (slot int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, rows := b.node(node)
	if n == nil {
		return 0, false
	}
	if slot = n.layout.slotOf(m); slot < 0 {
		return 0, false
	}
	dst.stream = streamReader{buf: b.cells.read(&n.rows, dst.stream.buf[:0])}
	dst.rows, dst.late = *rows, nil
	if n.late != nil {
		late := *n.late
		dst.late = &late
	}
	return slot, true
}

// has says whether a node has a column of metric m.
func (b *openBlock) has(c *nodeChunk, node int, m collector.Metric) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := b.node(node)
	return n != nil && n.layout.slotOf(m) >= 0
}

// column writes the column's 120 values into dst, absentBits where a value is missing.
func (c *copied) column(slot int, dst *[BlockSeconds]uint64) {
	v, at := absentBits, 0
	for sec, row, ok := c.stream.next(); ok; sec, row, ok = c.stream.next() {
		for ; at < sec; at++ {
			dst[at] = v
		}
		v = rowValue(row, slot)
	}
	for ; at < BlockSeconds; at++ {
		dst[at] = v
	}
	for s := range dst {
		if !c.rows.Has(s) {
			dst[s] = absentBits
		} else if c.late != nil {
			if row := c.late[s]; row != nil && row.mask>>slot&1 != 0 {
				dst[s] = row.value(slot)
			}
		}
	}
}

// row writes the values of a second that the node reported, or -1 before the first, into dst; it returns scratch.
func (b *openBlock) row(n *openNode, sec int, dst []uint64, scratch []byte) []byte {
	for slot := range dst {
		dst[slot] = absentBits
	}
	r := streamReader{buf: b.cells.read(&n.rows, scratch[:0])}
	var newest []byte
	for at, row, ok := r.next(); ok && at <= sec; at, row, ok = r.next() {
		newest = row
	}
	if newest != nil {
		rowValues(newest, dst)
	}
	if n.late != nil && sec >= 0 {
		if row := n.late[sec]; row != nil {
			for slot := range dst {
				if row.mask>>slot&1 != 0 {
					dst[slot] = row.value(slot)
				}
			}
		}
	}
	return r.buf
}

// openBlock holds the rows of one span that are not sealed yet. There may be several: the current
// one, older ones for late rows, later ones for nodes whose clock is ahead.
type openBlock struct {
	id     uint64                       // counts open blocks over the life of the store; names the instance in the log
	start  int64                        // Unix seconds
	chunks atomic.Pointer[[]*openChunk] // by node number / 64; an element is nil where no node has rows
	cells  cells

	// The head's lock guards what follows:
	last   int64  // Unix seconds by the DB's clock of the newest append
	used   int64  // counts appends of all blocks
	round  *round // the commit of its newest row; nil where all rows are durable in the log
	closed bool   // takes no more rows: it is being sealed
}

func newOpenBlock(id uint64, start int64) *openBlock {
	b := &openBlock{id: id, start: start}
	b.chunks.Store(&[]*openChunk{})
	return b
}

// node returns a node's rows and the seconds they are of, nil without any.
func (b *openBlock) node(i int) (*openNode, *column.Mask) {
	list := *b.chunks.Load()
	if i/chunkNodes >= len(list) {
		return nil, nil
	}
	c := list[i/chunkNodes]
	if c == nil {
		return nil, nil
	}
	if n := &c.nodes[i%chunkNodes]; n.layout != nil {
		return n, &c.rows[i%chunkNodes]
	}
	return nil, nil
}

// chunk returns a node's chunk, made where it is new: a block of a few late rows must not cost what one of the whole
// machine does.
func (b *openBlock) chunk(i int) *openChunk {
	list := *b.chunks.Load()
	if i/chunkNodes < len(list) && list[i/chunkNodes] != nil {
		return list[i/chunkNodes]
	}
	list = append(make([]*openChunk, 0, max(len(list), i/chunkNodes+1)), list...)
	for i/chunkNodes >= len(list) {
		list = append(list, nil)
	}
	list[i/chunkNodes] = &openChunk{}
	b.chunks.Store(&list)
	return list[i/chunkNodes]
}

// ensure returns the node's rows with a column for every metric of l, making or widening them; l begins with the
// layout it replaces. The caller holds the lock of the node's nodeChunk.
func (b *openBlock) ensure(i int, l *layout) (*openNode, *column.Mask) {
	c := b.chunk(i)
	n := &c.nodes[i%chunkNodes]
	n.layout = l
	return n, &c.rows[i%chunkNodes]
}

// insert puts a row before rows that are there already, or changes one of them. vals[slot] is
// absentBits for a metric the row does not name.
func (n *openNode) insert(rows *column.Mask, sec int, vals []uint64) {
	if n.late == nil {
		n.late = &lateRows{}
	}
	row := &lateRow{mask: math.MaxUint64, vals: slices.Clone(vals)}
	if rows.Has(sec) {
		row.mask = 0
		before := n.late[sec]
		for slot, v := range vals {
			switch {
			case v != absentBits:
				row.mask |= 1 << slot
			case before != nil && before.mask>>slot&1 != 0:
				row.mask |= 1 << slot
				row.vals[slot] = before.value(slot)
			}
		}
	}
	n.late[sec] = row
	rows.Set(sec)
}

// exactInt returns the integer that a value is; ok is false for a fraction, an infinity, a negative
// zero or one from 2^53 on, where neighbouring integers have one float64, and i is then 0.
func exactInt(v uint64) (i int64, ok bool) {
	f := math.Float64frombits(v)
	i = int64(f)
	if math.Float64bits(float64(i)) != v || i >= 1<<53 || i <= -1<<53 {
		return 0, false
	}
	return i, true
}
