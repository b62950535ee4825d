// Package rows holds the rows of open blocks, and says how one is written, also in the log. The comment of tsdb/engine
// has the bytes.
package rows

import (
	"encoding/binary"
	"math"
	"math/bits"

	"fairway/collector"
)

// Limits of what the store takes in.
const (
	MaxColumns = 64      // metrics of one node; a row's changes are a 64-bit mask
	MaxNodes   = 1 << 20 // numbers that nodes can have
	MinSecond  = 0       // 1970
	MaxSecond  = 1 << 33 // the year 2242
)

// Absent marks, inside the store only, a second in which a column has no value. It is a NaN that no arithmetic makes; a
// NaN from outside never enters.
const Absent uint64 = 0x7ff4_dead_0000_0001

// mostBits is the greatest value from outside, without a sign, shifted as Bits compares it.
var mostBits = math.Float64bits(collector.MaxValue) << 1

// Bits is the store's form of a value from outside: what collector.IsValue rejects is absent, and
// there is one zero. It has no branch that depends on whether a value is 0, which nobody can foretell. Magnitudes
// of float64 are in the order of their bits, not-a-numbers come last.
func Bits(v float64) uint64 {
	bits := math.Float64bits(v)
	switch {
	case bits<<1 > mostBits:
		return Absent
	case bits == 1<<63:
		return 0
	}
	return bits
}

// A row is all values of one second of a node, complete in itself: the same bytes are in the log and in the open
// block. A byte says how many columns it has, then four bits a column say how its value is written, then the
// values follow (tsdb/engine/format.go).
const (
	codeRaw    = 8  // 8 bytes of float64; below it an integer in so many bytes
	codeAbsent = 15 // the column has no value
	MaxBytes   = 1 + MaxColumns/2 + 8*MaxColumns
	// Slack is how far beyond a row Put writes and the readers may look.
	Slack = 8
)

const maxInt = 1 << 53 // from here on neighbouring integers have one float64

// lowBytes masks the bytes of an integer of a code.
var lowBytes = [16]uint64{0, 1<<8 - 1, 1<<16 - 1, 1<<24 - 1, 1<<32 - 1, 1<<40 - 1, 1<<48 - 1, 1<<56 - 1, math.MaxUint64}

// codeSize is the number of bytes that a code is followed by.
var codeSize = [16]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8}

// Put writes a row and returns its size; dst has MaxBytes+Slack bytes.
func Put(dst []byte, slots []uint64) int {
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
		} else if v == Absent {
			size = codeAbsent
		} else {
			binary.LittleEndian.PutUint64(dst[at:], v)
			size, at = codeRaw, at+8
		}
		codes |= uint64(size) << (i & 15 * 4)
	}
	return codes, at
}

// Size returns how many bytes the row at the begin of b has; ok is false where b does not begin with a whole one.
func Size(b []byte) (size int, ok bool) {
	if len(b) == 0 || int(b[0]) > MaxColumns {
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

// rowReader walks the values of a row that Size found whole.
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
	return Absent
}

// value returns the value of one column, Absent for one that the row does not have.
func value(row []byte, slot int) uint64 {
	if slot >= int(row[0]) {
		return Absent
	}
	r := readRow(row)
	for range slot {
		r.next()
	}
	return valueOf(r.next())
}

// Values writes a row's values into dst, Absent for columns that it does not have.
func Values(row []byte, dst []uint64) {
	r := readRow(row)
	for slot := range dst {
		if slot >= int(row[0]) {
			dst[slot] = Absent
			continue
		}
		dst[slot] = valueOf(r.next())
	}
}
