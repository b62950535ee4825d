package block

import (
	"encoding/binary"
	"math"
	"slices"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/rows"
)

// Sealed blocks: a header, then per metric a directory, an index with a record per chunk of 64
// nodes, and the columns' data. format.go has the bytes.
const (
	blockMagic   = "FWBK"
	blockVersion = 2
	blockFixed   = 40 // header before its limits and metrics
	blockMetric  = 21 // header bytes per metric
	maxLimits    = 255
	inlineBytes  = 4 // data up to this size lies in the index
)

// What a chunk says of the nodes that have no entry.
const (
	othersAbsent = iota // they have no rows
	othersZero          // they have all 120 rows, all 0
	othersMixed         // a bitmap of those that are 0 follows
	allZero             // every node of the chunk is 0; nothing follows
)

// Flags of an index entry.
const (
	entryPartial  = 1 << iota // not all 120 seconds are present: their count follows
	entryDense                // no present second is 0
	entrySingle               // one present second is not 0
	entryRaw                  // figures are float64, else integers
	entryConstant             // 120 times the same value, no data
	entryOccupied             // a limit's number and the seconds at or above it follow
	entryInline               // the data is here
)

// metricWriter collects one metric's part of a block.
type metricWriter struct {
	dir     []uint32
	index   []byte
	data    []byte
	zero    uint64 // nodes of the current chunk
	has     uint64
	entries []byte // of the current chunk
	dataAt  int    // where its data begins
}

// Writer encodes one block.
type Writer struct {
	start   int64
	id      uint64
	chunks  int
	limits  []float64
	metrics [collector.MetricCount]*metricWriter
	spare   [collector.MetricCount]*metricWriter // of the block before
	enc     column.Encoder
	scratch []byte
	out     []byte
}

// NewWriter returns a writer of a block.
func NewWriter(start int64, id uint64) *Writer {
	return &Writer{start: start, id: id}
}

// reset begins another block, in the memory of the one before.
func (w *Writer) reset(start int64, id uint64) {
	w.start, w.id, w.chunks, w.limits = start, id, 0, w.limits[:0]
	for m, mw := range w.metrics {
		if mw != nil {
			*mw = metricWriter{dir: mw.dir[:0], index: mw.index[:0], data: mw.data[:0], entries: mw.entries[:0]}
			w.metrics[m], w.spare[m] = nil, mw
		}
	}
}

// Source gives the columns of one node; c is measured, or left alone and false returned
// where the node has none. constant columns may be answered without filling c.
type Source interface {
	Metrics() []collector.Metric
	// Read returns what kind of column it is and, for a constant one, its value. One of integers may be
	// in w instead of c.
	Read(m collector.Metric, c *column.Column, w *column.Whole) (kind column.Kind, value float64)
}

// Scratch is room for one node's columns.
type Scratch struct {
	kind  [collector.MetricCount]column.Kind
	value [collector.MetricCount]float64
	cols  [collector.MetricCount]column.Column
	whole [collector.MetricCount]column.Whole
}

// relatedMetrics are the operations that a metric's value belongs to, from the catalogue. The block format depends
// on this table; changing a metric's operations needs a new version.
var relatedMetrics = func() (t [collector.MetricCount][2]collector.Metric) {
	for m := range collector.Metrics() {
		t[m] = m.Info().Of
	}
	return t
}()

// varied returns a column that others may be predicted from.
func (n *Scratch) varied(m collector.Metric) *column.Whole {
	if m == collector.MetricNone || n.kind[m] == column.None || n.kind[m] == column.Constant {
		return nil
	}
	if n.kind[m] == column.Varied {
		n.cols[m].Whole(&n.whole[m])
	}
	return &n.whole[m]
}

func (n *Scratch) base(m collector.Metric) column.Base {
	r := relatedMetrics[m]
	if first := n.varied(r[0]); first != nil {
		return column.Base{First: first, Second: n.varied(r[1])}
	}
	return column.Base{}
}

func (w *Writer) metric(m collector.Metric) *metricWriter {
	mw := w.metrics[m]
	if mw == nil {
		if mw = w.spare[m]; mw == nil {
			mw = &metricWriter{}
		}
		for range w.chunks {
			mw.dir = append(mw.dir, 0)
		}
		w.metrics[m] = mw
	}
	return mw
}

// Add takes one node of the current chunk; limit is its bytes/s for occupancy, 0 without.
func (w *Writer) Add(slot int, src Source, n *Scratch, limit float64) {
	metrics := src.Metrics()
	for _, m := range metrics {
		n.kind[m], n.value[m] = src.Read(m, &n.cols[m], &n.whole[m])
	}
	for _, m := range metrics {
		switch mw := w.metric(m); {
		case n.kind[m] == column.None:
		case n.kind[m] == column.Constant && n.value[m] == 0:
			mw.zero |= 1 << slot
		default:
			mw.has |= 1 << slot
			w.entry(mw, m, n, limit)
		}
	}
	for _, m := range metrics { // the next node may lack a metric that this one has
		n.kind[m] = column.None
	}
}

func (w *Writer) entry(mw *metricWriter, m collector.Metric, n *Scratch, limit float64) {
	at := len(mw.entries)
	mw.entries = append(mw.entries, 0)
	flags := byte(0)
	if n.kind[m] == column.Constant {
		flags = entryConstant
		if appended, ok := appendWhole(mw.entries, n.value[m]); ok {
			mw.entries = appended
		} else {
			flags |= entryRaw
			mw.entries = appendFloat(mw.entries, n.value[m])
		}
		mw.entries[at] = flags
		return
	}
	stats := &n.cols[m].Stats
	if n.kind[m] == column.Integers {
		stats = &n.whole[m].Stats
		w.scratch = w.enc.AppendWhole(w.scratch[:0], &n.whole[m], n.base(m))
	} else {
		w.scratch = w.enc.Append(w.scratch[:0], &n.cols[m], n.base(m))
	}
	mw.entries, flags = appendStats(mw.entries, stats)
	if m == collector.ReadBytes || m == collector.WriteBytes && n.kind[collector.ReadBytes] == column.None {
		if number, seconds, ok := w.occupied(n, limit); ok {
			flags |= entryOccupied
			mw.entries = append(mw.entries, number, seconds)
		}
	}
	mw.entries = binary.AppendUvarint(mw.entries, uint64(len(w.scratch)))
	if len(w.scratch) <= inlineBytes {
		flags |= entryInline
		mw.entries = append(mw.entries, w.scratch...)
	} else {
		mw.data = append(mw.data, w.scratch...)
		mw.data = binary.LittleEndian.AppendUint32(mw.data, appendlog.Sum(w.scratch))
	}
	mw.entries[at] = flags
}

// occupied counts the seconds in which the node moved at least limit bytes; ok is false where the
// minima and maxima say as much.
func (w *Writer) occupied(n *Scratch, limit float64) (number, seconds byte, ok bool) {
	if limit <= 0 {
		return 0, 0, false
	}
	var sum column.Column
	for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes} {
		c := &n.cols[m]
		switch n.kind[m] {
		case column.None:
			continue
		case column.Constant:
			sum.Present = column.Full
			for s := range sum.V {
				sum.V[s] += n.value[m]
			}
			continue
		case column.Integers:
			sum.Present = sum.Present.Or(n.whole[m].Present)
			for s, v := range n.whole[m].V {
				sum.V[s] += float64(v)
			}
			continue
		}
		sum.Present = sum.Present.Or(c.Present)
		for s, v := range c.V {
			sum.V[s] += v
		}
	}
	count := 0
	for s, v := range sum.V {
		if v >= limit && sum.Present.Has(s) {
			count++
		}
	}
	i := slices.Index(w.limits, limit)
	if i < 0 {
		if len(w.limits) == maxLimits {
			return 0, 0, false
		}
		i = len(w.limits)
		w.limits = append(w.limits, limit)
	}
	return byte(i), byte(count), true
}

// appendStats writes a column's figures and returns the flags that say how.
func appendStats(dst []byte, s *column.Stats) ([]byte, byte) {
	flags := byte(0)
	if s.Count < column.Seconds {
		flags |= entryPartial
		dst = append(dst, byte(s.Count))
	}
	_, wholeMin := column.ExactInt(math.Float64bits(s.Min))
	_, wholeMax := column.ExactInt(math.Float64bits(s.Max))
	_, wholeSum := column.ExactInt(math.Float64bits(s.Sum))
	whole := wholeMin && wholeMax && wholeSum
	switch {
	case s.NonZero == s.Count:
		flags |= entryDense
	case s.NonZero == 1 && whole && s.Min >= 0:
		return binary.AppendUvarint(dst, uint64(s.Max)), flags | entrySingle
	default:
		dst = append(dst, byte(s.NonZero))
	}
	switch {
	case !whole || s.Min < 0:
		flags |= entryRaw
		dst = appendFloat(appendFloat(appendFloat(dst, s.Min), s.Max), s.Sum)
	case flags&entryDense != 0:
		dst = binary.AppendUvarint(dst, uint64(s.Min))
		fallthrough
	default:
		dst = binary.AppendUvarint(dst, uint64(s.Max-s.Min))
		dst = binary.AppendUvarint(dst, uint64(s.Sum))
	}
	return dst, flags
}

func appendFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

func appendWhole(dst []byte, v float64) ([]byte, bool) {
	i, ok := column.ExactInt(math.Float64bits(v))
	if !ok {
		return dst, false
	}
	return binary.AppendVarint(dst, i), true
}

// EndChunk writes every metric's record of the current chunk.
func (w *Writer) EndChunk() {
	for m, mw := range w.metrics {
		if mw == nil {
			continue
		}
		mw.dir = append(mw.dir, uint32(len(mw.index)))
		if mw.zero|mw.has == 0 {
			continue
		}
		at := len(mw.index)
		mw.index = append(mw.index, 0, 0, 0, 0)
		switch {
		case mw.zero == math.MaxUint64:
			mw.index = append(mw.index, allZero)
		case mw.zero == 0:
			mw.index = append(mw.index, othersAbsent)
		case mw.zero == ^mw.has:
			mw.index = append(mw.index, othersZero)
		default:
			mw.index = binary.LittleEndian.AppendUint64(append(mw.index, othersMixed), mw.zero)
		}
		if mw.zero != math.MaxUint64 {
			mw.index = binary.LittleEndian.AppendUint64(mw.index, mw.has)
			mw.index = binary.AppendUvarint(mw.index, uint64(mw.dataAt))
			mw.index = append(mw.index, mw.entries...)
		}
		binary.LittleEndian.PutUint32(mw.index[at:], chunkSum(w.start, collector.Metric(m), w.chunks, mw.index[at+4:]))
		mw.zero, mw.has, mw.entries, mw.dataAt = 0, 0, mw.entries[:0], len(mw.data)
	}
	w.chunks++
}

// chunkSum is the checksum of a chunk's record, which also covers the place it belongs to.
func chunkSum(start int64, m collector.Metric, chunk int, body []byte) uint32 {
	var place [13]byte
	binary.LittleEndian.PutUint64(place[:], uint64(start))
	binary.LittleEndian.PutUint32(place[8:], uint32(chunk))
	place[12] = byte(m)
	return appendlog.Sum(place[:], body)
}

// Finish returns the whole block, which is valid until the next.
func (w *Writer) Finish() []byte {
	count := 0
	size := blockFixed + 8*len(w.limits) + 4
	for _, mw := range w.metrics {
		if mw != nil {
			count++
			size += blockMetric + 4*(w.chunks+1) + len(mw.index) + len(mw.data)
		}
	}
	out := slices.Grow(w.out[:0], size)[:blockFixed]
	clear(out)
	copy(out, blockMagic)
	binary.LittleEndian.PutUint16(out[4:], blockVersion)
	binary.LittleEndian.PutUint64(out[8:], uint64(w.start))
	binary.LittleEndian.PutUint64(out[16:], w.id)
	binary.LittleEndian.PutUint64(out[24:], uint64(size))
	binary.LittleEndian.PutUint32(out[32:], uint32(w.chunks))
	binary.LittleEndian.PutUint16(out[36:], uint16(count))
	binary.LittleEndian.PutUint16(out[38:], uint16(len(w.limits)))
	for _, l := range w.limits {
		out = appendFloat(out, l)
	}
	at := blockFixed + 8*len(w.limits) + count*blockMetric + 4
	for m, mw := range w.metrics {
		if mw == nil {
			continue
		}
		out = append(out, byte(m))
		out = binary.LittleEndian.AppendUint64(out, uint64(at))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(mw.index)))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(mw.data)))
		out = binary.LittleEndian.AppendUint32(out, appendlog.Sum(mw.directory()))
		at += 4*(w.chunks+1) + len(mw.index) + len(mw.data)
	}
	out = binary.LittleEndian.AppendUint32(out, appendlog.Sum(out))
	for _, mw := range w.metrics {
		if mw == nil {
			continue
		}
		out = append(out, mw.directory()...)
		out = append(append(out, mw.index...), mw.data...)
	}
	w.out = out
	return out
}

// directory says where each chunk's record begins in the index.
func (mw *metricWriter) directory() []byte {
	out := make([]byte, 0, 4*(len(mw.dir)+1))
	for _, at := range mw.dir {
		out = binary.LittleEndian.AppendUint32(out, at)
	}
	return binary.LittleEndian.AppendUint32(out, uint32(len(mw.index)))
}

// Sealer encodes open blocks, in memory that it keeps.
type Sealer struct {
	open    rows.Columns
	columns Scratch
	writer  Writer
}

// Seal encodes an open block that nobody writes any more; limit gives a node's bytes/s for
// occupancy, 0 where it is not known. What it returns is valid until the next call.
func (s *Sealer) Seal(b *rows.Block, limit func(node int) float64) []byte {
	w := &s.writer
	w.reset(b.Start, b.ID)
	for node := range b.Nodes() {
		slot := node % rows.ChunkNodes
		if s.open.Load(b, node) {
			w.Add(slot, &s.open, &s.columns, limit(node))
		}
		if slot == rows.ChunkNodes-1 {
			w.EndChunk()
		}
	}
	return w.Finish()
}
