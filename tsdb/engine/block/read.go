package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"fairway/collector"
	"fairway/collector/appendlog"
	"fairway/tsdb/engine/column"
	"fairway/tsdb/engine/rows"
)

// Entry is one node's line in the index.
type Entry struct {
	Stats    column.Stats
	Occupied int     // seconds at or above Limit, -1 where the entry does not say
	Limit    float64 // bytes/s
	kind     column.Kind
	dataAt   uint32
	dataLen  int
	inline   []byte
}

// chunk is the parsed record of 64 nodes.
type chunk struct {
	set     uint64 // nodes whose entries are parsed; the others' are those of another chunk
	entries [rows.ChunkNodes]Entry
}

// entry returns a node's entry, nil where the record has none.
func (c *chunk) entry(slot int) *Entry {
	if c.set>>slot&1 == 0 {
		return nil
	}
	return &c.entries[slot]
}

// add returns a node's empty entry.
func (c *chunk) add(slot int) *Entry {
	c.set |= 1 << slot
	e := &c.entries[slot]
	*e = Entry{}
	return e
}

var constantZero = column.Stats{Count: column.Seconds}

// frameReader reads frames; its buffers are reused, so it is for one goroutine.
type frameReader struct {
	data    []byte
	aside   []byte // a column's bytes while its related ones are read
	dec     column.Decoder
	cached  [4]cachedChunk // the newest, for queries that walk nodes or related columns
	next    int
	indexes [3]cachedIndex
	shared  *cache // nil where everything is read once
	keep    bool   // columns, too, are likely to be read again
	nextIdx int
	vouched *frameMetric // whose directory has been checked last
	related [2]column.Column
}

type cachedChunk struct {
	frame  *frame
	metric collector.Metric
	number int
	err    error
	buf    []byte
	chunk  chunk
	rest   chunkRest
}

// cachedIndex is the directory and the index of one metric, read at once where they are small.
type cachedIndex struct {
	frame  *frame
	metric collector.Metric
	bytes  []byte
}

const smallIndex = 64 << 10

// entry returns a node's line in the index. Its slices are valid until the next call.
func (r *frameReader) entry(f *frame, m collector.Metric, node int) (*Entry, error) {
	slot := node % rows.ChunkNodes
	c, err := r.chunk(f, m, node/rows.ChunkNodes, slot)
	if err != nil || c == nil {
		return nil, err
	}
	return c.entry(slot), nil
}

// chunk returns a chunk of which the entries through slot are parsed.
func (r *frameReader) chunk(f *frame, m collector.Metric, number, slot int) (*chunk, error) {
	for i := range r.cached {
		if c := &r.cached[i]; c.frame == f && c.metric == m && c.number == number {
			return c.through(slot, f)
		}
	}
	fm := f.metric(m)
	if fm == nil || number >= f.chunks {
		return nil, nil
	}
	c := &r.cached[r.next]
	r.next = (r.next + 1) % len(r.cached)
	c.frame, c.metric, c.number = f, m, number
	c.rest = chunkRest{}
	c.err = r.readChunk(f, fm, c)
	return c.through(slot, f)
}

// where names the chunk's record.
func (c *cachedChunk) where() string {
	from := c.number * rows.ChunkNodes
	return fmt.Sprintf("index of nodes %d to %d of %s", from, from+rows.ChunkNodes-1, c.metric)
}

// through parses on until slot is done.
func (c *cachedChunk) through(slot int, f *frame) (*chunk, error) {
	if c.err == nil && c.rest.has<<(rows.ChunkNodes-1-slot) != 0 {
		if err := c.rest.parse(&c.chunk, slot, f.limits); err != nil {
			c.err = fmt.Errorf("%s: %w", c.where(), err)
		}
	}
	return &c.chunk, c.err
}

// small returns the directory and the index of a metric where they are small, nil where not.
func (r *frameReader) small(f *frame, fm *frameMetric) ([]byte, error) {
	size := fm.dataAt(f.chunks) - fm.at
	if size > smallIndex {
		return nil, nil
	}
	for i := range r.indexes {
		if x := &r.indexes[i]; x.frame == f && x.metric == fm.metric {
			return x.bytes, nil
		}
	}
	x := &r.indexes[r.nextIdx]
	r.nextIdx = (r.nextIdx + 1) % len(r.indexes)
	x.frame = nil
	if r.shared != nil {
		x.bytes = r.shared.get(cacheKey{f, fm, wholeIndex})
	}
	if r.shared == nil || x.bytes == nil {
		x.bytes = make([]byte, size)
		if _, err := f.file.ReadAt(x.bytes, f.offset+fm.at); err != nil {
			return nil, readError(f, err)
		}
		if r.shared != nil {
			r.shared.add(cacheKey{f, fm, wholeIndex}, x.bytes)
		}
	}
	x.frame, x.metric = f, fm.metric
	return x.bytes, nil
}

// readAt reads bytes of a metric's directory or index, at an offset from the directory's begin.
func (r *frameReader) readAt(f *frame, fm *frameMetric, dst []byte, at int64) error {
	all, err := r.small(f, fm)
	switch {
	case err != nil:
		return err
	case all != nil && at+int64(len(dst)) <= int64(len(all)):
		copy(dst, all[at:])
		return nil
	}
	if _, err := f.file.ReadAt(dst, f.offset+fm.at+at); err != nil {
		return readError(f, err)
	}
	return nil
}

func (r *frameReader) readChunk(f *frame, fm *frameMetric, c *cachedChunk) error {
	c.chunk.set = 0
	var dir [8]byte
	if err := r.readAt(f, fm, dir[:], 4*int64(c.number)); err != nil {
		return err
	}
	from, to := binary.LittleEndian.Uint32(dir[:]), binary.LittleEndian.Uint32(dir[4:])
	if from == to {
		return r.vouch(f, fm)
	}
	const largest = 4 + 1 + 16 + 10 + rows.ChunkNodes*64
	if from > to || to > fm.index || to-from > largest || to-from < 5 {
		return fmt.Errorf("%w: directory of chunk %d of %s says bytes %d to %d", errDamaged, c.number, fm.metric, from,
			to)
	}
	record, err := r.record(f, fm, c, fm.indexAt(f.chunks)-fm.at+int64(from), int(to-from))
	if err != nil {
		return err
	}
	if chunkSum(f.start, fm.metric, c.number, record[4:]) != binary.LittleEndian.Uint32(record) {
		return fmt.Errorf("%w: %s has a wrong checksum", errDamaged, c.where())
	}
	if c.rest, err = parseChunk(record[4:], &c.chunk); err != nil {
		return fmt.Errorf("%s: %w", c.where(), err)
	}
	return nil
}

// record returns bytes of the index, at an offset from the directory's begin. They stay as they are until c is read
// again, and longer where they are part of an index that is kept.
func (r *frameReader) record(f *frame, fm *frameMetric, c *cachedChunk, at int64, size int) ([]byte, error) {
	all, err := r.small(f, fm)
	switch {
	case err != nil:
		return nil, err
	case all != nil && at+int64(size) <= int64(len(all)):
		return all[at:][:size:size], nil
	}
	c.buf = slices.Grow(c.buf[:0], size)[:size]
	return c.buf, r.readAt(f, fm, c.buf, at)
}

// vouch checks the directory that says that a chunk has no rows; a record speaks for itself.
func (r *frameReader) vouch(f *frame, fm *frameMetric) error {
	if r.vouched == fm {
		return nil
	}
	size := 4 * (f.chunks + 1)
	r.data = slices.Grow(r.data[:0], size)[:size]
	if err := r.readAt(f, fm, r.data, 0); err != nil {
		return err
	}
	if appendlog.Sum(r.data) != fm.sum {
		return fmt.Errorf("%w: directory of %s has a wrong checksum", errDamaged, fm.metric)
	}
	r.vouched = fm
	return nil
}

// readError keeps the difference between a file that is gone or closed and one that is damaged.
func readError(f *frame, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the file ends inside the block", errDamaged)
	}
	return fmt.Errorf("read %s: %w", f.path, err)
}

// chunkParser walks the bytes of a chunk's record; bad is set once they make no sense.
type chunkParser struct {
	buf []byte
	bad bool
}

func (p *chunkParser) take(n int) []byte {
	if n < 0 || n > len(p.buf) {
		p.bad = true
		return make([]byte, 8)[:min(max(n, 0), 8)]
	}
	b := p.buf[:n]
	p.buf = p.buf[n:]
	return b
}

func (p *chunkParser) uvarint() uint64 {
	if len(p.buf) > 0 && p.buf[0] < 0x80 {
		u := p.buf[0]
		p.buf = p.buf[1:]
		return uint64(u)
	}
	u, n := column.Uvarint(p.buf)
	if n <= 0 {
		p.bad = true
		return 0
	}
	p.buf = p.buf[n:]
	return u
}

func (p *chunkParser) u64() uint64    { return binary.LittleEndian.Uint64(p.take(8)) }
func (p *chunkParser) float() float64 { return math.Float64frombits(p.u64()) }

// chunkRest is the part of a chunk's record that is not parsed yet.
type chunkRest struct {
	p      chunkParser
	has    uint64 // nodes whose entries follow
	dataAt uint64 // where the next one's data begins
}

// parseChunk reads what a record says of all nodes; the entries follow one by one.
func parseChunk(b []byte, c *chunk) (chunkRest, error) {
	rest := chunkRest{p: chunkParser{buf: b}}
	p := &rest.p
	kind := p.take(1)[0]
	zero := uint64(math.MaxUint64)
	if kind == othersMixed {
		zero = p.u64()
	}
	if kind != allZero {
		rest.has = p.u64()
	}
	switch kind {
	case othersAbsent:
		zero = 0
	case othersZero:
		zero = ^rest.has
	case othersMixed, allZero:
	default:
		return chunkRest{}, fmt.Errorf("%w: chunk kind %d", errDamaged, kind)
	}
	for z := zero &^ rest.has; z != 0; z &= z - 1 {
		e := c.add(bits.TrailingZeros64(z))
		e.kind, e.Stats, e.Occupied = column.Constant, constantZero, -1
	}
	if rest.has != 0 {
		rest.dataAt = p.uvarint()
	}
	if p.bad {
		c.set = 0
		return chunkRest{}, fmt.Errorf("%w: an index of %d bytes ends in its head", errDamaged, len(b))
	}
	return rest, nil
}

// parse reads entries through slot.
func (r *chunkRest) parse(c *chunk, slot int, limits []float64) error {
	for ; r.has<<(rows.ChunkNodes-1-slot) != 0 && !r.p.bad; r.has &= r.has - 1 {
		e := c.add(bits.TrailingZeros64(r.has))
		r.p.entry(e, limits)
		if e.kind == column.Varied && e.inline == nil {
			e.dataAt = uint32(r.dataAt)
			r.dataAt += uint64(e.dataLen) + 4
		}
	}
	if r.p.bad || r.dataAt > math.MaxUint32 {
		c.set = 0
		return fmt.Errorf("%w: an index ends inside an entry", errDamaged)
	}
	return nil
}

func (p *chunkParser) entry(e *Entry, limits []float64) {
	flags := p.take(1)[0]
	e.Occupied = -1
	if flags&entryConstant != 0 {
		e.kind = column.Constant
		v := 0.0
		if flags&entryRaw != 0 {
			v = p.float()
		} else {
			u := p.uvarint()
			v = float64(column.Unzigzag(u))
		}
		e.Stats = column.Stats{Count: column.Seconds, NonZero: column.Seconds, Min: v, Max: v}
		for range column.Seconds { // as Measure takes the sum
			e.Stats.Sum += v
		}
		return
	}
	e.kind = column.Varied
	p.stats(&e.Stats, flags)
	if flags&entryOccupied != 0 {
		b := p.take(2)
		if int(b[0]) >= len(limits) || int(b[1]) > column.Seconds {
			p.bad = true
			return
		}
		e.Limit, e.Occupied = limits[b[0]], int(b[1])
	}
	size := p.uvarint()
	if size == 0 || size > 4096 {
		p.bad = true
		return
	}
	e.dataLen = int(size)
	if flags&entryInline != 0 {
		e.inline = p.take(e.dataLen)
	}
}

func (p *chunkParser) stats(s *column.Stats, flags byte) {
	s.Count = column.Seconds
	if flags&entryPartial != 0 {
		s.Count = int(p.take(1)[0])
	}
	switch {
	case flags&entrySingle != 0:
		s.NonZero = 1
		s.Max = float64(p.uvarint())
		s.Sum = s.Max
		return
	case flags&entryDense != 0:
		s.NonZero = s.Count
	default:
		s.NonZero = int(p.take(1)[0])
	}
	if s.Count > column.Seconds || s.NonZero > s.Count {
		p.bad = true
	}
	if flags&entryRaw != 0 {
		s.Min, s.Max, s.Sum = p.float(), p.float(), p.float()
		return
	}
	if flags&entryDense != 0 {
		s.Min = float64(p.uvarint())
	}
	s.Max = s.Min + float64(p.uvarint())
	s.Sum = float64(p.uvarint())
}

// column reads a node's column; ok is false where it has no row in the frame.
func (r *frameReader) column(f *frame, m collector.Metric, node int, c *column.Column) (ok bool, err error) {
	e, err := r.entry(f, m, node)
	if e == nil || err != nil {
		return false, err
	}
	if e.kind == column.Constant {
		c.Present, c.Stats, c.Active = column.Full, e.Stats, column.Full
		if e.Stats.Min == 0 {
			c.Active = column.Mask{}
		}
		for s := range c.V {
			c.V[s] = e.Stats.Min
		}
		return true, nil
	}
	stats, data, err := e.Stats, e.inline, error(nil)
	if data == nil {
		if data, err = r.readData(f, m, e); err != nil {
			return false, fmt.Errorf("node %d of %s: %w", node, m, err)
		}
	}
	related := column.Related{}
	if first, second := column.Needs(data); first && relatedMetrics[m][0] != collector.MetricNone {
		// The related column uses the same buffers, so this one's bytes are set aside.
		r.aside = append(r.aside[:0], data...)
		data = r.aside
		if related.First, err = r.relatedColumn(f, relatedMetrics[m][0], node, &r.related[0]); err != nil {
			return false, err
		}
		if second && related.First != nil && relatedMetrics[m][1] != collector.MetricNone {
			if related.Second, err = r.relatedColumn(f, relatedMetrics[m][1], node, &r.related[1]); err != nil {
				return false, err
			}
		}
	}
	if err := r.dec.Decode(data, stats, related, c); err != nil {
		return false, fmt.Errorf("%w: node %d of %s: %w", errDamaged, node, m, err)
	}
	return true, nil
}

// relatedColumn reads a column that another one is predicted from; nil where it is constant or absent.
func (r *frameReader) relatedColumn(f *frame, m collector.Metric, node int, c *column.Column) (*column.Column, error) {
	e, err := r.entry(f, m, node)
	if e == nil || err != nil || e.kind != column.Varied {
		return nil, err
	}
	if _, err := r.column(f, m, node, c); err != nil {
		return nil, err
	}
	return c, nil
}

func (r *frameReader) readData(f *frame, m collector.Metric, e *Entry) ([]byte, error) {
	fm := f.metric(m)
	if int64(e.dataAt)+int64(e.dataLen)+4 > int64(fm.dataBytes) {
		return nil, fmt.Errorf("%w: its data lies outside the block", errDamaged)
	}
	key := cacheKey{f, fm, int64(e.dataAt)}
	if r.shared != nil && r.keep {
		if data := r.shared.get(key); data != nil {
			return data, nil
		}
	}
	r.data = slices.Grow(r.data[:0], e.dataLen+4)[:e.dataLen+4]
	if _, err := f.file.ReadAt(r.data, f.offset+fm.dataAt(f.chunks)+int64(e.dataAt)); err != nil {
		return nil, readError(f, err)
	}
	data, err := checkedData(r.data)
	if err == nil && r.shared != nil && r.keep {
		r.shared.add(key, slices.Clone(data))
	}
	return data, err
}
