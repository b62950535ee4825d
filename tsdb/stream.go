package tsdb

import (
	"encoding/binary"
	"sync/atomic"
)

// A node's rows in an open block are one stream of bytes: of every row that differs from the one before, its second
// and then its bytes. Streams of all nodes grow together, a few bytes at a time, so they lie in cells of a
// cache line that are chained.
const (
	cellBytes = 64
	cellData  = cellBytes - 4 // then the number of the next cell
	pageCells = 1 << 10
)

type page [pageCells * cellBytes]byte

// cells are the room for an open block's streams. What a cell holds is guarded as its node is.
type cells struct {
	pages atomic.Pointer[[]*page]
	used  uint32
}

// stream is one node's chain.
type stream struct {
	head, tail uint32
	size       uint32 // bytes
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

// append adds a second and its row to a stream.
func (c *cells) append(s *stream, sec int, row []byte) {
	if at := int(s.size % cellData); at > 0 && at+1+len(row) <= cellData { // the usual row fits
		cell := c.cell(s.tail)
		cell[at] = byte(sec)
		copy(cell[at+1:], row)
		s.size += 1 + uint32(len(row))
		return
	}
	first := [1]byte{byte(sec)}
	c.write(s, first[:])
	c.write(s, row)
}

func (c *cells) write(s *stream, b []byte) {
	for len(b) > 0 {
		at := s.size % cellData
		if at == 0 {
			next := c.take()
			if s.size == 0 {
				s.head = next
			} else {
				binary.LittleEndian.PutUint32(c.cell(s.tail)[cellData:], next)
			}
			s.tail = next
		}
		n := copy(c.cell(s.tail)[at:cellData], b)
		b = b[n:]
		s.size += uint32(n)
	}
}

// read appends a stream's bytes to dst.
func (c *cells) read(s *stream, dst []byte) []byte {
	left := s.size
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

// streamReader walks a stream's bytes, which no one but append wrote.
type streamReader struct {
	buf []byte
	at  int
}

// next returns the next second and its row, ok false at the end.
func (r *streamReader) next() (sec int, row []byte, ok bool) {
	if r.at+1 >= len(r.buf) {
		return 0, nil, false
	}
	size, ok := rowSize(r.buf[r.at+1:])
	if !ok {
		return 0, nil, false
	}
	sec, row = int(r.buf[r.at]), r.buf[r.at+1:][:size]
	r.at += 1 + size
	return sec, row, true
}
