package tsdb

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"fairway/collector"
)

// The operations inside a log record; docs/store-format.md describes them byte by byte.
const (
	opContext = iota // choose block and second
	opSame           // consecutive nodes repeat their newest row
	opDelta          // a row as the slots that changed
	opRow            // a row in full, by metric
)

// Value codes that are not an integer difference.
const (
	valueRaw    = 1 // eight bytes follow
	valueAbsent = 3
)

// recordWriter collects the rows of one log record. It is protected by the DB's mutex.
type recordWriter struct {
	buf    []byte
	block  *openBlock // context; nil at the start of a record
	sec    int
	cursor int // the node after the last one written
	same   int // pending run of repeated rows that ends before cursor
}

func zigzag(d int64) uint64   { return uint64(d)<<1 ^ uint64(d>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func (w *recordWriter) reset() { *w = recordWriter{buf: w.buf[:0]} }

func (w *recordWriter) empty() bool { return len(w.buf) == 0 && w.same == 0 }

// flush writes the pending run; its nodes end at the cursor.
func (w *recordWriter) flush() {
	if w.same == 0 {
		return
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(w.same)<<2|opSame)
	w.same = 0
}

func (w *recordWriter) context(b *openBlock, sec int) {
	if w.block == b && w.sec == sec {
		return
	}
	w.flush()
	w.buf = append(w.buf, opContext)
	w.buf = binary.AppendUvarint(w.buf, b.id)
	w.buf = binary.AppendVarint(w.buf, b.start/BlockSeconds)
	w.buf = append(w.buf, byte(sec))
	w.block, w.sec = b, sec
}

func (w *recordWriter) head(node, op int) {
	w.flush()
	w.buf = binary.AppendUvarint(w.buf, zigzag(int64(node-w.cursor))<<2|uint64(op))
	w.cursor = node + 1
}

func (w *recordWriter) sameRow(b *openBlock, sec, node int) {
	w.context(b, sec)
	if node != w.cursor { // a jump is an empty delta; its run continues from there
		w.head(node, opDelta)
		w.buf = append(w.buf, 0)
		return
	}
	w.cursor++
	w.same++
}

func appendValue(buf []byte, base, v uint64) []byte {
	if v == absentBits {
		return append(buf, valueAbsent)
	}
	if i, ok := exactInt(v); ok {
		from, _ := exactInt(base) // 0 where the base is absent or no integer
		return binary.AppendUvarint(buf, zigzag(i-from)<<1)
	}
	return binary.LittleEndian.AppendUint64(append(buf, valueRaw), v)
}

// appendChanges writes the slots of mask, in which next differs from base.
func appendChanges(buf []byte, mask uint64, base, next []uint64) []byte {
	buf = binary.AppendUvarint(buf, mask)
	for ; mask != 0; mask &= mask - 1 {
		slot := bits.TrailingZeros64(mask)
		buf = appendValue(buf, base[slot], next[slot])
	}
	return buf
}

// deltaRow writes what appendChanges told of a row.
func (w *recordWriter) deltaRow(b *openBlock, sec, node int, changes []byte) {
	w.context(b, sec)
	w.head(node, opDelta)
	w.buf = append(w.buf, changes...)
}

// fullRow writes a row by metric.
func (w *recordWriter) fullRow(b *openBlock, sec, node int, metrics []collector.Metric, vals []uint64) {
	w.context(b, sec)
	w.head(node, opRow)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(metrics)))
	for i, m := range metrics {
		w.buf = appendValue(append(w.buf, byte(m)), absentBits, vals[i])
	}
}

// uvarint is binary.Uvarint, without a loop where eight bytes can be looked at together.
func uvarint(b []byte) (u uint64, n int) {
	if len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		if ends := ^x & 0x8080808080808080; ends != 0 {
			x &= ends ^ (ends - 1) // up to the first byte without a high bit
			x = x&0x007f007f007f007f | x>>1&0x3f803f803f803f80
			x = x&0x00003fff00003fff | x>>2&0x0fffc0000fffc000
			x = x&0x000000000fffffff | x>>4&0x00fffffff0000000
			return x, bits.TrailingZeros64(ends)>>3 + 1
		}
	}
	return binary.Uvarint(b)
}

// recordReader walks the operations of a record.
type recordReader struct {
	buf []byte
	at  int
}

func (r *recordReader) uvarint() (uint64, error) {
	if r.at < len(r.buf) && r.buf[r.at] < 0x80 {
		r.at++
		return uint64(r.buf[r.at-1]), nil
	}
	u, n := uvarint(r.buf[r.at:])
	if n <= 0 {
		return 0, fmt.Errorf("log record: bad number at byte %d of %d", r.at, len(r.buf))
	}
	r.at += n
	return u, nil
}

func (r *recordReader) byte() (byte, error) {
	if r.at >= len(r.buf) {
		return 0, fmt.Errorf("log record: ends at byte %d inside an operation", r.at)
	}
	r.at++
	return r.buf[r.at-1], nil
}

// value reads one value; relative says that it is a difference to a base the caller adds.
func (r *recordReader) value() (v uint64, diff int64, relative bool, err error) {
	u, err := r.uvarint()
	if err != nil {
		return 0, 0, false, err
	}
	switch {
	case u&1 == 0:
		return 0, unzigzag(u >> 1), true, nil
	case u == valueAbsent:
		return absentBits, 0, false, nil
	case u == valueRaw && len(r.buf)-r.at >= 8:
		r.at += 8
		return binary.LittleEndian.Uint64(r.buf[r.at-8:]), 0, false, nil
	}
	return 0, 0, false, fmt.Errorf("log record: unknown value code %d before byte %d of %d", u, r.at, len(r.buf))
}

// resolve turns what value returned into a value.
func resolve(base, v uint64, diff int64, relative bool) uint64 {
	if !relative {
		return v
	}
	from, _ := exactInt(base)
	return math.Float64bits(float64(from + diff))
}
