package tsdb

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// A node's changes in an open block are one stream of bytes: per row that differs from the one before its second,
// then what a log record says of it (opDelta: a mask and the changed values). Streams of all nodes grow
// together, a few bytes at a time, so they lie in cells of a cache line that are chained.
const (
	cellBytes = 64
	cellData  = cellBytes - 4 // then the number of the next cell
	pageCells = 1 << 10
)

type page [pageCells * cellBytes]byte

// cells are the room for an open block's streams. One writer appends; readers take no lock.
type cells struct {
	pages atomic.Pointer[[]*page]
	used  uint32
}

// stream is one node's chain.
type stream struct {
	head, tail uint32
	size       atomic.Uint32 // bytes that readers may see
}

func (s *stream) copy(from *stream) {
	s.head, s.tail = from.head, from.tail
	s.size.Store(from.size.Load())
}

func (c *cells) cell(number uint32) []byte {
	p := (*c.pages.Load())[number/pageCells]
	at := number % pageCells * cellBytes
	return p[at : at+cellBytes : at+cellBytes]
}

// take gives out a cell that nobody uses.
func (c *cells) take() uint32 {
	if c.used%pageCells == 0 {
		var pages []*page
		if old := c.pages.Load(); old != nil {
			pages = *old
		}
		// Readers hold the old slice; the place beyond its end is not theirs.
		pages = append(pages, new(page))
		c.pages.Store(&pages)
	}
	c.used++
	return c.used - 1
}

// append adds a row's second and changes to a stream.
func (c *cells) append(s *stream, sec int, body []byte) {
	size := s.size.Load()
	if at := int(size % cellData); at > 0 && at+1+len(body) <= cellData { // the usual row fits
		cell := c.cell(s.tail)
		cell[at] = byte(sec)
		copy(cell[at+1:], body)
		s.size.Store(size + 1 + uint32(len(body)))
		return
	}
	first := [1]byte{byte(sec)}
	size = c.write(s, size, first[:])
	s.size.Store(c.write(s, size, body))
}

func (c *cells) write(s *stream, size uint32, b []byte) uint32 {
	for len(b) > 0 {
		at := size % cellData
		if at == 0 {
			next := c.take()
			if size == 0 {
				s.head = next
			} else {
				binary.LittleEndian.PutUint32(c.cell(s.tail)[cellData:], next)
			}
			s.tail = next
		}
		n := copy(c.cell(s.tail)[at:cellData], b)
		b, size = b[n:], size+uint32(n)
	}
	return size
}

// read appends a stream's bytes to dst.
func (c *cells) read(s *stream, dst []byte) []byte {
	left := s.size.Load()
	if left == 0 {
		return dst // there is no head yet
	}
	for at := s.head; left > 0; {
		cell := c.cell(at)
		n := min(left, cellData)
		dst = append(dst, cell[:n]...)
		if left -= n; left > 0 {
			at = binary.LittleEndian.Uint32(cell[cellData:])
		}
	}
	return dst
}

// changeReader walks a stream's bytes, which no one but append wrote.
type changeReader struct{ recordReader }

// next begins a row; its values follow by pick or apply.
func (r *changeReader) next() (sec int, mask uint64, ok bool) {
	if r.at >= len(r.buf) {
		return 0, 0, false
	}
	sec = int(r.buf[r.at])
	r.at++
	mask, err := r.uvarint()
	return sec, mask, err == nil
}

// pick reads a row's values and returns that of a slot, which was v before.
func (r *changeReader) pick(mask uint64, slot int, v uint64) uint64 {
	for ; mask != 0; mask &= mask - 1 {
		value, diff, relative, _ := r.value()
		if bits.TrailingZeros64(mask) == slot {
			v = resolve(v, value, diff, relative)
		}
	}
	return v
}

// apply reads a row's values into the row before it.
func (r *changeReader) apply(mask uint64, row []uint64) {
	for ; mask != 0; mask &= mask - 1 {
		value, diff, relative, _ := r.value()
		slot := bits.TrailingZeros64(mask)
		row[slot] = resolve(row[slot], value, diff, relative)
	}
}
