package tsdb

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"

	"fairway/collector"
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

// openNode is one node's rows in an open block. The DB's mutex serialises writers; readers take
// no lock.
type openNode struct {
	block  *openBlock
	layout *layout
	rows   [2]atomic.Uint64 // bit s: the node reported second s
	// last is the newest row by slot, and seq is odd while a writer changes it: readers copy it
	// and try again when seq moved. Writers store into it atomically and read it plainly.
	last    []uint64
	changes stream
	seq     atomic.Uint32
	// late are the rows that came after later ones; nil without any.
	late atomic.Pointer[lateRows]
}

// lateRows are values by second that count instead of what the stream says of that second.
type lateRows [BlockSeconds]atomic.Pointer[lateRow]

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

// latest copies the newest row's time (Unix seconds) and values; ok is false before the first.
func (n *openNode) latest(dst []uint64) (sec int64, ok bool) {
	for {
		seq := n.seq.Load()
		if seq&1 == 0 {
			for i := range dst {
				dst[i] = atomic.LoadUint64(&n.last[i])
			}
			top := n.newest()
			if n.seq.Load() == seq {
				return n.block.start + int64(top), top >= 0
			}
		}
		runtime.Gosched()
	}
}

// newest returns the latest second with a row, -1 without one.
func (n *openNode) newest() int {
	if hi := n.rows[1].Load(); hi != 0 {
		return 127 - bits.LeadingZeros64(hi)
	}
	return 63 - bits.LeadingZeros64(n.rows[0].Load())
}

func (n *openNode) has(sec int) bool { return n.rows[sec>>6].Load()>>(sec&63)&1 != 0 }

// addRow publishes a row whose values are in place.
func (n *openNode) addRow(sec int) {
	w := &n.rows[sec>>6]
	w.Store(w.Load() | 1<<(sec&63))
}

// column writes the column's 120 values into dst, absentBits where there is none; scratch is for its use.
func (n *openNode) column(slot int, dst *[BlockSeconds]uint64, scratch []byte) []byte {
	// Rows first: the changes of every row that is seen are then seen too.
	rows := [2]uint64{n.rows[0].Load(), n.rows[1].Load()}
	late := n.late.Load()
	r := changeReader{recordReader{buf: n.block.cells.read(&n.changes, scratch[:0])}}
	v, at := absentBits, 0
	for sec, mask, ok := r.next(); ok; sec, mask, ok = r.next() {
		for ; at < sec; at++ {
			dst[at] = v
		}
		v = r.pick(mask, slot, v)
	}
	for ; at < BlockSeconds; at++ {
		dst[at] = v
	}
	for s := range dst {
		if rows[s>>6]>>(s&63)&1 == 0 {
			dst[s] = absentBits
		} else if late != nil {
			if row := late[s].Load(); row != nil && row.mask>>slot&1 != 0 {
				dst[s] = row.value(slot)
			}
		}
	}
	return r.buf
}

// row writes the values of a second that the node reported, or -1 before the first, into dst; scratch as in column.
func (n *openNode) row(sec int, dst []uint64, scratch []byte) []byte {
	for slot := range dst {
		dst[slot] = absentBits
	}
	r := changeReader{recordReader{buf: n.block.cells.read(&n.changes, scratch[:0])}}
	for at, mask, ok := r.next(); ok && at <= sec; at, mask, ok = r.next() {
		r.apply(mask, dst)
	}
	if late := n.late.Load(); late != nil {
		if row := late[sec].Load(); row != nil {
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
	id    uint64 // counts open blocks over the life of the store; names the instance in the log
	start int64  // Unix seconds
	nodes atomic.Pointer[[]atomic.Pointer[openNode]]
	mem   slab
	cells cells

	// Protected by the DB's mutex:
	last   int64  // Unix seconds by the DB's clock of the newest append
	used   int64  // counts appends of all blocks
	round  *round // the commit of its newest row; nil where all rows are durable in the log
	closed bool   // takes no more rows: it is being sealed
}

func newOpenBlock(id uint64, start int64, nodes int) *openBlock {
	b := &openBlock{id: id, start: start}
	list := make([]atomic.Pointer[openNode], nodes)
	b.nodes.Store(&list)
	return b
}

// node returns a node's rows, nil without any.
func (b *openBlock) node(i int) *openNode {
	list := *b.nodes.Load()
	if i >= len(list) {
		return nil
	}
	return list[i].Load()
}

// setNode publishes a node's rows, making room where the node is new.
func (b *openBlock) setNode(i int, n *openNode) {
	list := *b.nodes.Load()
	if i >= len(list) {
		grown := make([]atomic.Pointer[openNode], max(i+1, 2*len(list)))
		for j := range list {
			grown[j].Store(list[j].Load())
		}
		grown[i].Store(n)
		b.nodes.Store(&grown)
		return
	}
	list[i].Store(n)
}

// ensure returns the node's rows with a column for every metric of l, making or widening them; l
// has every metric of the layout it replaces.
func (b *openBlock) ensure(i int, l *layout) *openNode {
	n := b.node(i)
	if n != nil && n.layout == l {
		return n
	}
	made := b.mem.node(len(l.metrics))
	made.block, made.layout = b, l
	for slot := range made.last {
		made.last[slot] = absentBits
	}
	if n != nil {
		copy(made.last, n.last) // l has the metrics of the layout before in the same places
		made.changes.copy(&n.changes)
		made.late.Store(n.late.Load())
		made.rows[0].Store(n.rows[0].Load())
		made.rows[1].Store(n.rows[1].Load())
	}
	b.setNode(i, made)
	return made
}

// insert puts a row before rows that are there already, or changes one of them. vals[slot] is
// absentBits for a metric the row does not name.
func (n *openNode) insert(sec int, vals []uint64) {
	late := n.late.Load()
	if late == nil {
		late = &lateRows{}
		n.late.Store(late)
	}
	row := &lateRow{mask: math.MaxUint64, vals: slices.Clone(vals)}
	if n.has(sec) {
		row.mask = 0
		before := late[sec].Load()
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
	late[sec].Store(row)
	n.addRow(sec)
}

// slab hands out the small pieces of an open block from large ones, so that a block is a few
// hundred objects for the garbage collector and not a million.
type slab struct {
	nodes []openNode
	vals  []uint64
}

const slabSize = 1 << 13

func take[T any](from *[]T, n int) []T {
	if len(*from) < n {
		*from = make([]T, max(slabSize, n))
	}
	out := (*from)[:n:n]
	*from = (*from)[n:]
	return out
}

func (m *slab) node(cols int) *openNode {
	n := &take(&m.nodes, 1)[0]
	n.last = take(&m.vals, cols)
	return n
}

// exactInt returns the integer that a value is; ok is false for a fraction, an infinity, a negative
// zero or one from 2^53 on, where float64 no longer tells neighbours apart, and i is then 0.
func exactInt(v uint64) (i int64, ok bool) {
	f := math.Float64frombits(v)
	i = int64(f)
	if math.Float64bits(float64(i)) != v || i >= 1<<53 || i <= -1<<53 {
		return 0, false
	}
	return i, true
}
