package log

import (
	"encoding/binary"
	"slices"

	"fairway/collector"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/rows"
)

// Kind is that of an operation inside a record; tsdb/engine/format.go describes them byte by byte.
type Kind int

// The kinds of operations.
const (
	Context Kind = iota // choose block and second
	Same                // consecutive nodes repeat their newest row
	Row                 // a row by the node's columns
	Named               // a row by metric, that also makes columns
)

// Value codes of a row by metric that are not an integer.
const (
	valueRaw    = 1 // eight bytes follow
	valueAbsent = 3
)

// Writer collects the rows of one log record, behind the room for the record's head. One caller
// at a time may use it.
type Writer struct {
	buf    []byte
	block  *rows.Block // context; nil at the start of a record
	sec    int
	cursor int // the node after the last one written
	same   int // pending run of repeated rows that ends before cursor
}

// reset begins a record in a buffer of newBuffer, or in a new one.
func (w *Writer) reset(spare []byte) {
	if spare == nil {
		spare = newBuffer(4 * pageBytes)
	}
	*w = Writer{buf: spare[:recordHead]}
}

func (w *Writer) empty() bool { return len(w.buf) == recordHead && w.same == 0 }

// opRoom is more than an operation and the run and the context before it take but for a row's values.
const opRoom = 64

// room makes sure that n bytes can be appended in place: the buffer must stay where a device can read from.
func (w *Writer) room(n int) {
	if cap(w.buf)-len(w.buf) < n {
		more := newBuffer(2*cap(w.buf) + n)
		w.buf = append(more, w.buf...)
	}
}

// flush writes the pending run; its nodes end at the cursor.
func (w *Writer) flush() {
	if w.same == 0 {
		return
	}
	w.room(opRoom)
	w.buf = binary.AppendUvarint(w.buf, uint64(w.same)<<2|uint64(Same))
	w.same = 0
}

func (w *Writer) context(b *rows.Block, sec int) {
	if w.block == b && w.sec == sec {
		return
	}
	w.flush()
	w.room(opRoom)
	w.buf = append(w.buf, byte(Context))
	w.buf = binary.AppendUvarint(w.buf, b.ID)
	w.buf = binary.AppendVarint(w.buf, b.Start/column.Seconds)
	w.buf = append(w.buf, byte(sec))
	w.block, w.sec = b, sec
}

// head begins a row, for which there is room.
func (w *Writer) head(node int, op Kind) {
	w.flush()
	w.buf = binary.AppendUvarint(w.buf, column.Zigzag(int64(node-w.cursor))<<2|uint64(op))
	w.cursor = node + 1
}

// SameRow repeats a node's newest row.
func (w *Writer) SameRow(b *rows.Block, sec, node int) {
	w.context(b, sec)
	if node != w.cursor { // a jump is a row without columns; its run continues from there
		w.room(opRoom)
		w.head(node, Row)
		w.buf = append(w.buf, 0)
		return
	}
	w.cursor++
	w.same++
}

// Row writes a row by the node's columns.
func (w *Writer) Row(b *rows.Block, sec, node int, row []byte) {
	w.context(b, sec)
	w.room(opRoom + len(row))
	w.head(node, Row)
	w.buf = append(w.buf, row...)
}

func appendValue(buf []byte, v uint64) []byte {
	if v == rows.Absent {
		return append(buf, valueAbsent)
	}
	if i, ok := column.ExactInt(v); ok {
		return binary.AppendUvarint(buf, column.Zigzag(i)<<1)
	}
	return binary.LittleEndian.AppendUint64(append(buf, valueRaw), v)
}

// NamedRow writes a row by metric.
func (w *Writer) NamedRow(b *rows.Block, sec, node int, metrics []collector.Metric, vals []uint64) {
	w.context(b, sec)
	w.room(opRoom + 11*len(metrics))
	w.head(node, Named)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(metrics)))
	for i, m := range metrics {
		w.buf = appendValue(append(w.buf, byte(m)), vals[i])
	}
}

// cutRecord is the size from which a record is ended; maxRecord is far above it.
const cutRecord = 8 << 20

// Pending are records on their way into a log. One caller at a time may use it.
type Pending struct {
	Writer   *Writer  // of the record that rows are written to; nil while the log is replayed
	cut      [][]byte // finished records that the log has not taken
	spare    []byte   // a buffer for the next one; nil without
	blocks   []uint64 // blocks named by cut and the writer
	unsynced int      // bytes handed over and not yet durable
}

// Begin begins the first record.
func (p *Pending) Begin() {
	p.Writer = &Writer{}
	p.Writer.reset(nil)
}

// Note notes the block that the next rows are of.
func (p *Pending) Note(block uint64) {
	if !slices.Contains(p.blocks, block) {
		p.blocks = append(p.blocks, block)
	}
}

// Full says that the record is to be cut.
func (p *Pending) Full() bool { return len(p.Writer.buf) >= cutRecord }

// Cut ends the record, so that none grows beyond what a reader takes.
func (p *Pending) Cut() {
	p.Writer.flush()
	if p.Writer.empty() {
		return
	}
	p.unsynced += len(p.Writer.buf)
	p.cut = append(p.cut, p.Writer.buf)
	p.Writer.reset(p.spare)
	p.spare = nil
}

// Bytes returns how much is not durable.
func (p *Pending) Bytes() int { return p.unsynced + len(p.Writer.buf) }

// HandOver gives all records to the log and returns how many bytes are to be made durable.
func (p *Pending) HandOver(l *Log) (bytes int) {
	p.Cut()
	for _, rec := range p.cut {
		l.add(rec, p.blocks)
	}
	clear(p.cut)
	p.cut, p.blocks = p.cut[:0], p.blocks[:0]
	return p.unsynced
}

// Done notes that so many bytes are durable, and takes a buffer that the log needs no more.
func (p *Pending) Done(bytes int, spare []byte) {
	p.unsynced -= bytes
	if cap(spare) <= cutRecord {
		p.spare = spare
	}
}
