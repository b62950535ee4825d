package engine

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync"

	"fairway/collector"
	"fairway/tsdb/engine/column"
)

// openColumns shows the open nodes of a block, one after the other, to a blockWriter.
type openColumns struct {
	n    *openNode
	rows column.Mask
	late *lateRows
	// secs are the seconds of the count rows in the stream; each row holds until the next. Row i has in a column the
	// integer ints[slot][i] or, in the columns of other, the value vals[slot][i].
	count int
	secs  [BlockSeconds]uint8
	other uint64
	ints  [maxColumns][BlockSeconds]int64
	vals  [maxColumns][BlockSeconds]uint64
	buf   []byte
}

// load reads the rows of a node of a closed block.
func (o *openColumns) load(b *openBlock, n *openNode, rows column.Mask) {
	o.n, o.late, o.rows, o.count, o.other = n, n.late, rows, 0, 0
	o.buf = slices.Grow(b.cells.read(&n.rows, o.buf[:0]), rowSlack)
	columns := len(n.layout.metrics)
	narrowest := columns
	end := len(o.buf)
	padded := o.buf[:end+rowSlack] // every value can be looked at as eight bytes
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
}

// loadInts takes the integers of the row at the begin of b, which is a whole one and has eight bytes behind it. It
// returns the columns that have something else, and the row's size.
func (o *openColumns) loadInts(b []byte, i int) (other uint64, size int) {
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
func (o *openColumns) loadVals() {
	var vals [maxColumns]uint64
	columns := len(o.n.layout.metrics)
	i := -1
	r := streamReader{buf: o.buf}
	for sec, row, ok := r.next(); ok; sec, row, ok = r.next() {
		if i < 0 || int(o.secs[i]) != sec {
			i++
		}
		rowValues(row, vals[:columns])
		for slot := range columns {
			o.vals[slot][i] = vals[slot]
		}
	}
}

func (o *openColumns) metrics() []collector.Metric { return o.n.layout.metrics }

func (o *openColumns) read(m collector.Metric, c *column.Column, w *column.Whole) (columnKind, float64) {
	slot := o.n.layout.slotOf(m)
	if o.other>>slot&1 == 0 {
		return o.readInts(slot, c, w)
	}
	if first := o.vals[slot][0]; o.late == nil && o.rows == column.Full && isConstant(o.vals[slot][:o.count]) &&
		first != absentBits {
		return columnConstant, math.Float64frombits(first)
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

func isConstant[T int64 | uint64](vals []T) bool {
	for _, v := range vals {
		if v != vals[0] {
			return false
		}
	}
	return true
}

// readInts reads a column of integers. Its first row is of its first second, so every second has a value.
func (o *openColumns) readInts(slot int, c *column.Column, w *column.Whole) (columnKind, float64) {
	vals := o.ints[slot][:o.count]
	if o.rows == column.Full && isConstant(vals) {
		return columnConstant, float64(vals[0])
	}
	if o.count == BlockSeconds {
		copy(w.V[:], vals)
	} else {
		o.spread(vals, w)
	}
	w.Present = o.rows
	if w.Measure() {
		return columnWhole, 0
	}
	c.Present = o.rows
	for s, v := range w.V {
		c.V[s] = float64(v)
	}
	c.Measure()
	return columnVaried, 0
}

// spread writes the value of every second, 0 where it is missing.
func (o *openColumns) spread(vals []int64, w *column.Whole) {
	from, v := 0, int64(0)
	for i, next := range vals {
		to := int(o.secs[i])
		for s := from; s < to; s++ {
			w.V[s] = v
		}
		from, v = to, next
	}
	for s := from; s < BlockSeconds; s++ {
		w.V[s] = v
	}
	for i, gone := range column.Full.AndNot(o.rows) {
		for ; gone != 0; gone &= gone - 1 {
			w.V[i<<6+bits.TrailingZeros64(gone)] = 0
		}
	}
}

// fill writes the column's values; seconds without one are 0.
func (o *openColumns) fill(slot int, c *column.Column) {
	secs, vals := o.secs[:o.count], o.vals[slot][:o.count]
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
		row := o.late[s]
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
// occupancy, 0 where it is not known. What it returns is valid until the next call with s.
func encodeBlock(b *openBlock, limit func(node int) float64, s *sealScratch) []byte {
	w := &s.writer
	w.reset(b.start, b.id)
	for i, chunk := range *b.chunks.Load() {
		for slot := range chunk.size() {
			if n := &chunk.nodes[slot]; n.layout != nil {
				s.open.load(b, n, chunk.rows[slot])
				w.add(slot, &s.open, &s.columns, limit(i*chunkNodes+slot))
			}
		}
		w.endChunk()
	}
	return w.finish()
}

// sealScratch is what the sealer needs for every block.
type sealScratch struct {
	open    openColumns
	columns nodeColumns
	writer  blockWriter
}

// indexCacheBytes is how much of the blocks' indexes stays in memory: of 240 forwarders some days of a metric.
const indexCacheBytes = 16 << 20

// indexCache keeps directories and indexes that were read, as they are in the file, and the columns of who asks for
// few nodes: what a page asks for it asks for again a second later. They are in two halves; when the younger one is
// full it becomes the older one.
type indexCache struct {
	mu         sync.Mutex
	young, old map[indexKey][]byte
	bytes      int // of young
}

type indexKey struct {
	frame  *frame
	metric *frameMetric
	dataAt int64 // where the column's bytes begin in the data, or wholeIndex
}

const (
	wholeIndex = -1
	// cacheEntry is about what an entry takes beside its bytes.
	cacheEntry = 128
)

// get returns what is kept, nil where nothing is.
func (c *indexCache) get(k indexKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.young[k]; b != nil {
		return b
	}
	b := c.old[k]
	if b != nil {
		c.put(k, b)
	}
	return b
}

func (c *indexCache) add(k indexKey, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(k, b)
}

func (c *indexCache) put(k indexKey, b []byte) {
	if c.young == nil || c.bytes+len(b)+cacheEntry > indexCacheBytes/2 {
		c.young, c.old, c.bytes = map[indexKey][]byte{}, c.young, 0
	}
	c.young[k] = b
	c.bytes += len(b) + cacheEntry
}

// clear lets go of everything, and so of files that are removed.
func (c *indexCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.bytes = nil, nil, 0
}
