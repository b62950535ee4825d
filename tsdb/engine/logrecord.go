package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"fairway/collector"
)

// The operations inside a log record; format.go describes them byte by byte.
const (
	opContext = iota // choose block and second
	opSame           // consecutive nodes repeat their newest row
	opRow            // a row by the node's columns
	opNamed          // a row by metric, that also makes columns
)

// Value codes of a row by metric that are not an integer.
const (
	valueRaw    = 1 // eight bytes follow
	valueAbsent = 3
)

// recordWriter collects the rows of one log record, behind the room for the record's head. It is protected by the
// head's lock.
type recordWriter struct {
	buf    []byte
	block  *openBlock // context; nil at the start of a record
	sec    int
	cursor int // the node after the last one written
	same   int // pending run of repeated rows that ends before cursor
}

func zigzag(d int64) uint64   { return uint64(d)<<1 ^ uint64(d>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// reset begins a record in a buffer of logBuffer, or in a new one.
func (w *recordWriter) reset(spare []byte) {
	if spare == nil {
		spare = logBuffer(4 * logPage)
	}
	*w = recordWriter{buf: spare[:recordHead]}
}

func (w *recordWriter) empty() bool { return len(w.buf) == recordHead && w.same == 0 }

// opRoom is more than an operation and the run and the context before it take but for a row's values.
const opRoom = 64

// room makes sure that n bytes can be appended in place: the buffer must stay where a device can read from.
func (w *recordWriter) room(n int) {
	if cap(w.buf)-len(w.buf) < n {
		more := logBuffer(2*cap(w.buf) + n)
		w.buf = append(more, w.buf...)
	}
}

// flush writes the pending run; its nodes end at the cursor.
func (w *recordWriter) flush() {
	if w.same == 0 {
		return
	}
	w.room(opRoom)
	w.buf = binary.AppendUvarint(w.buf, uint64(w.same)<<2|opSame)
	w.same = 0
}

func (w *recordWriter) context(b *openBlock, sec int) {
	if w.block == b && w.sec == sec {
		return
	}
	w.flush()
	w.room(opRoom)
	w.buf = append(w.buf, opContext)
	w.buf = binary.AppendUvarint(w.buf, b.id)
	w.buf = binary.AppendVarint(w.buf, b.start/BlockSeconds)
	w.buf = append(w.buf, byte(sec))
	w.block, w.sec = b, sec
}

// head begins a row, for which there is room.
func (w *recordWriter) head(node, op int) {
	w.flush()
	w.buf = binary.AppendUvarint(w.buf, zigzag(int64(node-w.cursor))<<2|uint64(op))
	w.cursor = node + 1
}

func (w *recordWriter) sameRow(b *openBlock, sec, node int) {
	w.context(b, sec)
	if node != w.cursor { // a jump is a row without columns; its run continues from there
		w.room(opRoom)
		w.head(node, opRow)
		w.buf = append(w.buf, 0)
		return
	}
	w.cursor++
	w.same++
}

// row writes a row by the node's columns and returns its bytes, which are valid until the next call.
func (w *recordWriter) row(b *openBlock, sec, node int, slots []uint64) []byte {
	w.context(b, sec)
	w.room(opRoom + maxRow + rowSlack)
	if node == w.cursor && w.same == 0 { // as head writes it
		w.buf = append(w.buf, opRow)
		w.cursor = node + 1
	} else {
		w.head(node, opRow)
	}
	at := len(w.buf)
	w.buf = w.buf[:at+putRow(w.buf[at:cap(w.buf)], slots)]
	return w.buf[at:]
}

func appendValue(buf []byte, v uint64) []byte {
	if v == absentBits {
		return append(buf, valueAbsent)
	}
	if i, ok := exactInt(v); ok {
		return binary.AppendUvarint(buf, zigzag(i)<<1)
	}
	return binary.LittleEndian.AppendUint64(append(buf, valueRaw), v)
}

// namedRow writes a row by metric.
func (w *recordWriter) namedRow(b *openBlock, sec, node int, metrics []collector.Metric, vals []uint64) {
	w.context(b, sec)
	w.room(opRoom + 11*len(metrics))
	w.head(node, opNamed)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(metrics)))
	for i, m := range metrics {
		w.buf = appendValue(append(w.buf, byte(m)), vals[i])
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

// value reads one value.
func (r *recordReader) value() (uint64, error) {
	u, err := r.uvarint()
	if err != nil {
		return 0, err
	}
	switch {
	case u&1 == 0:
		return math.Float64bits(float64(unzigzag(u >> 1))), nil
	case u == valueAbsent:
		return absentBits, nil
	case u == valueRaw && len(r.buf)-r.at >= 8:
		r.at += 8
		return binary.LittleEndian.Uint64(r.buf[r.at-8:]), nil
	}
	return 0, fmt.Errorf("log record: unknown value code %d before byte %d of %d", u, r.at, len(r.buf))
}

// row reads a row by columns.
func (r *recordReader) row() ([]byte, error) {
	size, ok := rowSize(r.buf[r.at:])
	if !ok {
		return nil, fmt.Errorf("log record: no row at byte %d of %d", r.at, len(r.buf))
	}
	r.at += size
	return r.buf[r.at-size : r.at], nil
}
