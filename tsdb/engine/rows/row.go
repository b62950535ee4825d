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

// Put writes a row and returns its size; dst has MaxBytes+Slack bytes.
func Put(dst []byte, slots []uint64) int {
	dst[0] = byte(len(slots))
	at := 1 + (len(slots)+1)/2
	clear(dst[1:at])
	for i, v := range slots {
		f := math.Float64frombits(v)
		n := int64(f)
		code, size := codeAbsent, 0
		if float64(n) == f && uint64(n) < maxInt {
			code = (71 - bits.LeadingZeros64(uint64(n))) >> 3
			size = code
			binary.LittleEndian.PutUint64(dst[at:], uint64(n))
		} else if v != Absent {
			code, size = codeRaw, 8
			binary.LittleEndian.PutUint64(dst[at:], v)
		}
		dst[1+i/2] |= byte(code << (i & 1 * 4))
		at += size
	}
	return at
}

// Size returns how many bytes the row at the begin of b has; ok is false where b does not begin with a whole one.
func Size(b []byte) (size int, ok bool) {
	if len(b) == 0 || int(b[0]) > MaxColumns {
		return 0, false
	}
	columns := int(b[0])
	size = 1 + (columns+1)/2
	if size > len(b) {
		return 0, false
	}
	for i, pair := range b[1:size] {
		for _, code := range [2]byte{pair & 15, pair >> 4} {
			switch {
			case code <= codeRaw:
				size += int(code)
			case code != codeAbsent:
				return 0, false
			}
		}
		if 2*i+1 == columns && pair>>4 != 0 {
			return 0, false
		}
	}
	return size, size <= len(b)
}

// rowReader walks the values of a row that Size found whole.
type rowReader struct {
	row      []byte
	slot, at int
}

func readRow(row []byte) rowReader { return rowReader{row: row, at: 1 + (int(row[0])+1)/2} }

// next returns the value of the next column.
func (r *rowReader) next() uint64 {
	code := int(r.row[1+r.slot/2] >> (r.slot & 1 * 4) & 15)
	r.slot++
	if code == codeAbsent {
		return Absent
	}
	var word [8]byte
	copy(word[:], r.row[r.at:r.at+code])
	r.at += code
	v := binary.LittleEndian.Uint64(word[:])
	if code < codeRaw {
		v = math.Float64bits(float64(v))
	}
	return v
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
	return r.next()
}

// Values writes a row's values into dst, Absent for columns that it does not have.
func Values(row []byte, dst []uint64) {
	r := readRow(row)
	for slot := range dst {
		if slot >= int(row[0]) {
			dst[slot] = Absent
			continue
		}
		dst[slot] = r.next()
	}
}
