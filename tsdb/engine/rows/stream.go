package rows

import (
	"encoding/binary"
	"sync/atomic"
)

// A node's rows in an open block are one stream of bytes: of every row that differs from the one before, its second
// and then its bytes. Streams of all nodes grow together, a few bytes at a time, so they lie in cells that are
// chained: a first one of a cache line, which is enough for a node that does little, then ones of four.
const (
	cellUnit  = 64
	cellLink  = 4 // at a cell's end: the number of the next one
	firstCell = cellUnit
	nextCell  = 4 * cellUnit
	pageBytes = 1 << 16
)

type page [pageBytes]byte

// cells are the room for an open block's streams. What a cell holds is guarded as its node is.
type cells struct {
	pages atomic.Pointer[[]*page]
	used  uint32 // units
}

// stream is one node's chain.
type stream struct {
	head   uint32 // the first cell: where it begins, in units
	tail   uint32 // where the next byte goes
	bytes  uint32
	newest uint16 // bytes of the last second and row
	room   uint8  // bytes left at tail
}

// at returns the bytes of a page from a place on.
func (c *cells) at(place uint32) []byte {
	return (*c.pages.Load())[place/pageBytes][place%pageBytes:]
}

// take gives out a cell that nobody uses and returns its first unit.
func (c *cells) take(size uint32) uint32 {
	const units = pageBytes / cellUnit
	need := size / cellUnit
	if left := -c.used % units; left < need {
		c.used += left
		var pages []*page
		if old := c.pages.Load(); old != nil {
			pages = *old
		}
		// Readers hold the old slice; the place beyond its end is not theirs.
		pages = append(pages, new(page))
		c.pages.Store(&pages)
	}
	c.used += need
	return c.used - need
}

// append adds a second and its row to a stream.
func (c *cells) append(s *stream, sec int, row []byte) {
	need := 1 + len(row)
	s.newest = uint16(need)
	if need > int(s.room) {
		first := [1]byte{byte(sec)}
		c.write(s, first[:])
		c.write(s, row)
		return
	}
	cell := c.at(s.tail) // the usual row fits
	cell[0] = byte(sec)
	if words := row[:cap(row)]; need+7 <= int(s.room) && len(row)+7 <= len(words) {
		for at := 0; at < len(row); at += 8 { // what this writes beyond the row is not used yet
			binary.LittleEndian.PutUint64(cell[1+at:], binary.LittleEndian.Uint64(words[at:]))
		}
	} else {
		copy(cell[1:], row)
	}
	s.advance(need)
}

func (s *stream) advance(n int) {
	s.tail, s.room, s.bytes = s.tail+uint32(n), s.room-uint8(n), s.bytes+uint32(n)
}

func (c *cells) write(s *stream, b []byte) {
	for len(b) > 0 {
		if s.room == 0 {
			c.extend(s)
		}
		n := copy(c.at(s.tail)[:s.room], b)
		b = b[n:]
		s.advance(n)
	}
}

// last returns the newest row; what it returns is valid until the next call with scratch.
func (c *cells) last(s *stream, scratch []byte) (row, grown []byte) {
	here := nextCell - cellLink - int(s.room) // bytes in the last cell
	if s.bytes <= firstCell-cellLink {
		here = int(s.bytes)
	}
	if size := int(s.newest); size <= here {
		return c.at(s.tail - uint32(size))[1:size], scratch
	}
	scratch = c.read(s, scratch[:0])
	return scratch[len(scratch)-int(s.newest)+1:], scratch
}

// extend chains a further cell.
func (c *cells) extend(s *stream) {
	size := uint32(nextCell)
	if s.bytes == 0 {
		size = firstCell
	}
	next := c.take(size)
	if s.bytes == 0 {
		s.head = next
	} else {
		binary.LittleEndian.PutUint32(c.at(s.tail), next)
	}
	s.tail, s.room = next*cellUnit, uint8(size-cellLink)
}

// read appends a stream's bytes to dst.
func (c *cells) read(s *stream, dst []byte) []byte {
	size := uint32(firstCell)
	for left, place := s.bytes, s.head*cellUnit; left > 0; size = nextCell {
		cell := c.at(place)[:size]
		n := min(left, size-cellLink)
		dst = append(dst, cell[:n]...)
		left -= n
		place = binary.LittleEndian.Uint32(cell[size-cellLink:]) * cellUnit
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
	size, ok := Size(r.buf[r.at+1:])
	if !ok {
		return 0, nil, false
	}
	sec, row = int(r.buf[r.at]), r.buf[r.at+1:][:size]
	r.at += 1 + size
	return sec, row, true
}
