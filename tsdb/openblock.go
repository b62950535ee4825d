package tsdb

import (
	"math"
	"math/bits"
	"runtime"
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

// events is a column as the list of its changes: from second secs[i] on the value is vals[i],
// until the next event. Readers see the first n entries; entries below n change only by an atomic
// store into vals.
type events struct {
	n    atomic.Int32
	secs []uint8
	vals []uint64 // float64 bits or absentBits
}

// at returns the value in force at a second.
func (e *events) at(sec int) uint64 {
	v := absentBits
	for i := range int(e.n.Load()) {
		if int(e.secs[i]) > sec {
			break
		}
		v = atomic.LoadUint64(&e.vals[i])
	}
	return v
}

// openNode is one node's rows in an open block. The DB's mutex serialises writers; readers take
// no lock.
type openNode struct {
	start  int64 // of the block, Unix seconds
	layout *layout
	rows   [2]atomic.Uint64 // bit s: the node reported second s
	cols   []atomic.Pointer[events]
	// last is the newest row by slot, and seq is odd while a writer changes it: readers copy it
	// and try again when seq moved. Writers store into it atomically and read it plainly.
	last []uint64
	seq  atomic.Uint32
	top  int // newest second with a row, -1 without; protected by the DB's mutex
	// restless has a bit for each column that changed often in the node's block before; protected by
	// the DB's mutex.
	restless uint64
}

// manyChanges in a block make a column restless: the next block gives it all its room at once.
const manyChanges = 48

// expect looks at the node's block before for columns that change often.
func (n *openNode) expect(before *openNode) {
	for slot, m := range n.layout.metrics {
		if at := before.layout.slotOf(m); at >= 0 && at < len(before.cols) {
			if e := before.cols[at].Load(); e != nil && e.n.Load() >= manyChanges {
				n.restless |= 1 << slot
			}
		}
	}
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
				return n.start + int64(top), top >= 0
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

// column writes the column's 120 values into dst, absentBits where there is none.
func (n *openNode) column(slot int, dst *[BlockSeconds]uint64) {
	// Rows first: the changes of every row that is seen are then seen too.
	rows := [2]uint64{n.rows[0].Load(), n.rows[1].Load()}
	e := n.cols[slot].Load()
	k, i, v := 0, 0, absentBits
	if e != nil {
		k = int(e.n.Load())
	}
	for s := range dst {
		for i < k && int(e.secs[i]) <= s {
			v = atomic.LoadUint64(&e.vals[i])
			i++
		}
		if rows[s>>6]>>(s&63)&1 != 0 {
			dst[s] = v
		} else {
			dst[s] = absentBits
		}
	}
}

// openBlock holds the rows of one span that are not sealed yet. There may be several: the current
// one, older ones for late rows, later ones for nodes whose clock is ahead.
type openBlock struct {
	id    uint64 // counts open blocks over the life of the store; names the instance in the log
	start int64  // Unix seconds
	nodes atomic.Pointer[[]atomic.Pointer[openNode]]
	mem   slab

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
	made.start, made.layout, made.top = b.start, l, -1
	for slot := range made.last {
		made.last[slot] = absentBits
	}
	if n != nil {
		made.top = n.top
		made.restless = n.restless
		for slot, m := range n.layout.metrics {
			made.cols[l.slot[m]].Store(n.cols[slot].Load())
			made.last[l.slot[m]] = n.last[slot]
		}
		made.rows[0].Store(n.rows[0].Load())
		made.rows[1].Store(n.rows[1].Load())
	}
	b.setNode(i, made)
	return made
}

// push records that a column has value v from second sec on; sec is not before its last event.
func (b *openBlock) push(n *openNode, slot, sec int, v uint64) {
	e := n.cols[slot].Load()
	if e == nil {
		if v != absentBits {
			n.cols[slot].Store(b.mem.single(sec, v))
		}
		return
	}
	k := int(e.n.Load())
	if int(e.secs[k-1]) == sec {
		atomic.StoreUint64(&e.vals[k-1], v)
		return
	}
	if k == len(e.vals) {
		size := min(4*k, BlockSeconds)
		if n.restless>>slot&1 != 0 {
			size = BlockSeconds
		}
		grown := b.mem.events(size)
		copy(grown.secs, e.secs)
		for i := range k {
			grown.vals[i] = atomic.LoadUint64(&e.vals[i])
		}
		grown.secs[k], grown.vals[k] = uint8(sec), v
		grown.n.Store(int32(k + 1))
		n.cols[slot].Store(grown)
		return
	}
	e.secs[k], e.vals[k] = uint8(sec), v
	e.n.Store(int32(k + 1))
}

// rewrite replaces a column's history by vals.
func (b *openBlock) rewrite(n *openNode, slot int, vals *[BlockSeconds]uint64) {
	var secs []uint8
	var out []uint64
	prev := absentBits
	for s, v := range vals {
		if v != prev && n.has(s) {
			secs, out = append(secs, uint8(s)), append(out, v)
			prev = v
		}
	}
	if len(out) == 0 {
		n.cols[slot].Store(nil)
		return
	}
	e := &events{secs: secs, vals: out}
	e.n.Store(int32(len(out)))
	n.cols[slot].Store(e)
}

// insert puts a row before rows that are there already, or changes one of them. vals[slot] is
// absentBits for a metric the row does not name.
func (b *openBlock) insert(n *openNode, sec int, vals []uint64) {
	was := n.has(sec)
	cols := make([][BlockSeconds]uint64, len(vals))
	for slot := range vals {
		n.column(slot, &cols[slot])
		if v := vals[slot]; v != absentBits || !was {
			cols[slot][sec] = v
		}
	}
	if !was {
		// The new bit is needed by rewrite and makes, for an instant, the value in force visible
		// in this second; so the columns are first rewritten on a copy.
		m := b.mem.node(len(n.cols))
		m.layout = n.layout
		m.rows[0].Store(n.rows[0].Load())
		m.rows[1].Store(n.rows[1].Load())
		m.addRow(sec)
		for slot := range vals {
			b.rewrite(m, slot, &cols[slot])
		}
		for slot := range vals {
			n.cols[slot].Store(m.cols[slot].Load())
		}
		n.addRow(sec)
		return
	}
	for slot := range vals {
		if vals[slot] != absentBits {
			b.rewrite(n, slot, &cols[slot])
		}
	}
}

// slab hands out the small pieces of an open block from large ones, so that a block is a few
// hundred objects for the garbage collector and not a million.
type slab struct {
	nodes []openNode
	cols  []atomic.Pointer[events]
	evs   []events
	secs  []uint8
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
	n.cols, n.last = take(&m.cols, cols), take(&m.vals, cols)
	return n
}

func (m *slab) events(n int) *events {
	e := &take(&m.evs, 1)[0]
	e.secs, e.vals = take(&m.secs, n), take(&m.vals, n)
	return e
}

// everySecond lets constant columns share their only second.
var everySecond = func() (s [BlockSeconds]uint8) {
	for i := range s {
		s[i] = uint8(i)
	}
	return s
}()

func (m *slab) single(sec int, v uint64) *events {
	e := &take(&m.evs, 1)[0]
	e.secs, e.vals = everySecond[sec:sec+1:sec+1], take(&m.vals, 1)
	e.vals[0] = v
	e.n.Store(1)
	return e
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
