package engine

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"

	"fairway/collector"
)

// A row is all values of one second of a node, complete in itself: the same bytes are in the log and in the open
// block. A byte says how many columns it has, then four bits a column say how its value is written, then the
// values follow (format.go).
const (
	codeRaw    = 8  // 8 bytes of float64; below it an integer in so many bytes
	codeAbsent = 15 // the column has no value
	maxRow     = 1 + maxColumns/2 + 8*maxColumns
	// rowSlack is how far beyond a row putRow writes and the readers may look.
	rowSlack = 8
)

const maxInt = 1 << 53 // from here on neighbouring integers have one float64

// lowBytes masks the bytes of an integer of a code.
var lowBytes = [16]uint64{0, 1<<8 - 1, 1<<16 - 1, 1<<24 - 1, 1<<32 - 1, 1<<40 - 1, 1<<48 - 1, 1<<56 - 1, math.MaxUint64}

// codeSize is the number of bytes that a code is followed by.
var codeSize = [16]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8}

// putRow writes a row and returns its size; dst has maxRow+rowSlack bytes.
func putRow(dst []byte, slots []uint64) int {
	dst[0] = byte(len(slots))
	codesAt, valuesAt := 1, 1+(len(slots)+1)/2
	at := valuesAt
	for len(slots) > 16 {
		codes := uint64(0)
		codes, at = putValues(dst, at, slots[:16])
		binary.LittleEndian.PutUint64(dst[codesAt:], codes)
		slots, codesAt = slots[16:], codesAt+8
	}
	codes, end := putValues(dst, at, slots)
	for ; codesAt < valuesAt; codesAt++ {
		dst[codesAt] = byte(codes)
		codes >>= 8
	}
	return end
}

// putValues writes up to 16 values from a place on and returns their codes and the place behind them.
func putValues(dst []byte, at int, slots []uint64) (codes uint64, end int) {
	for i, v := range slots {
		f := math.Float64frombits(v)
		n := int64(f)
		size := (71 - uint(bits.LeadingZeros64(uint64(n)))) >> 3
		if float64(n) == f && uint64(n) < maxInt {
			binary.LittleEndian.PutUint64(dst[at:], uint64(n))
			at += int(size)
		} else if v == absentBits {
			size = codeAbsent
		} else {
			binary.LittleEndian.PutUint64(dst[at:], v)
			size, at = codeRaw, at+8
		}
		codes |= uint64(size) << (i & 15 * 4)
	}
	return codes, at
}

// rowSize returns how many bytes the row at the begin of b has; ok is false where b does not begin with a whole one.
func rowSize(b []byte) (size int, ok bool) {
	if len(b) == 0 || int(b[0]) > maxColumns {
		return 0, false
	}
	cols := int(b[0])
	size = 1 + (cols+1)/2
	if size > len(b) {
		return 0, false
	}
	for at := 1; cols > 0; at, cols = at+8, cols-16 {
		codes := load(b, at)
		if cols < 16 {
			if cols&1 != 0 && codes>>(4*cols)&15 != 0 {
				return 0, false
			}
			codes &= 1<<(4*cols) - 1
		}
		const ones = 0x0101010101010101
		even, odd := codes&(15*ones), codes>>4&(15*ones)
		even &^= (even + 0x71*ones) & (0x80 * ones) >> 7 * 15 // absent has no bytes
		odd &^= (odd + 0x71*ones) & (0x80 * ones) >> 7 * 15
		if ((even+0x77*ones)|(odd+0x77*ones))&(0x80*ones) != 0 {
			return 0, false
		}
		size += int((even + odd) * ones >> 56)
	}
	return size, size <= len(b)
}

// load returns the eight bytes from at on, zeros beyond the end.
func load(b []byte, at int) uint64 {
	if at+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[at:])
	}
	var word [8]byte
	copy(word[:], b[at:])
	return binary.LittleEndian.Uint64(word[:])
}

// rowReader walks the values of a row that rowSize found whole.
type rowReader struct {
	row   []byte
	codes uint64
	slot  int
	at    int
}

func readRow(row []byte) rowReader { return rowReader{row: row, at: 1 + (int(row[0])+1)/2} }

// next returns the value of the next column and its code.
func (r *rowReader) next() (v uint64, code int) {
	if r.slot&15 == 0 {
		r.codes = load(r.row, 1+r.slot/2)
	}
	code = int(r.codes & 15)
	r.codes >>= 4
	r.slot++
	v = load(r.row, r.at) & lowBytes[code]
	r.at += int(codeSize[code])
	return v, code
}

// valueOf turns what next returned into a value.
func valueOf(v uint64, code int) uint64 {
	switch {
	case code < codeRaw:
		return math.Float64bits(float64(v))
	case code == codeRaw:
		return v
	}
	return absentBits
}

// rowValue returns the value of one column, absentBits for one that the row does not have.
func rowValue(row []byte, slot int) uint64 {
	if slot >= int(row[0]) {
		return absentBits
	}
	r := readRow(row)
	for range slot {
		r.next()
	}
	return valueOf(r.next())
}

// rowValues writes a row's values into dst, absentBits for columns that it does not have.
func rowValues(row []byte, dst []uint64) {
	r := readRow(row)
	for slot := range dst {
		if slot >= int(row[0]) {
			dst[slot] = absentBits
			continue
		}
		dst[slot] = valueOf(r.next())
	}
}

// relatedMetrics are the operations that a metric's value belongs to, from the catalogue. The block format depends
// on this table; changing a metric's operations needs a new version.
var relatedMetrics = func() (t [collector.MetricCount][2]collector.Metric) {
	for m := range collector.Metrics() {
		t[m] = m.Info().Of
	}
	return t
}()

// nodeChunk is what 64 nodes have side by side: the row of each that was written last, so that a repeated one is known
// at once. Its lock also guards these nodes in every open block. It is held for as long as it takes to copy: by a
// writer for its rows of the chunk, by a reader for what it asks for.
type nodeChunk struct {
	mu      sync.Mutex
	blocks  [chunkNodes]uint64  // the id of the open block that the row is the newest of
	layouts [chunkNodes]*layout // nil before the first row
	width   int                 // columns that a row has room for
	vals    []float64           // not a number where a value is missing
}

// show keeps the newest row of n in its block. The caller holds the lock.
func (c *nodeChunk) show(b *openBlock, n *openNode, node int, slots []uint64) {
	k := node % chunkNodes
	if c.blocks[k] != b.id || c.layouts[k] != n.layout {
		c.blocks[k], c.layouts[k] = b.id, n.layout
		c.widen(len(slots))
	}
	row := c.row(k, len(slots))
	for i, v := range slots {
		row[i] = math.Float64frombits(v)
	}
}

// row returns a node's row.
func (c *nodeChunk) row(k, columns int) []float64 { return c.vals[k*c.width:][:columns] }

func (c *nodeChunk) widen(columns int) {
	if columns <= c.width {
		return
	}
	vals := make([]float64, chunkNodes*columns)
	for k := range chunkNodes {
		copy(vals[k*columns:], c.vals[k*c.width:][:c.width])
	}
	c.width, c.vals = columns, vals
}
