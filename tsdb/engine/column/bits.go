package column

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter appends fields of up to 57 bits, low bits first.
type bitWriter struct {
	buf []byte
	acc uint64
	n   uint // bits in acc, below 8 between calls
}

func (w *bitWriter) write(v uint64, width uint) {
	w.acc |= v << w.n
	w.n += width
	for w.n >= 8 {
		w.buf = append(w.buf, byte(w.acc))
		w.acc >>= 8
		w.n -= 8
	}
}

// wide writes a field of up to 64 bits.
func (w *bitWriter) wide(v uint64, width uint) {
	if width > 32 {
		w.write(v&(1<<32-1), 32)
		v >>= 32
		width -= 32
	}
	w.write(v, width)
}

func (w *bitWriter) flush() {
	if w.n > 0 {
		w.buf = append(w.buf, byte(w.acc))
		w.acc, w.n = 0, 0
	}
}

// bitReader reads what bitWriter wrote. Beyond the end it reads zeros, and pos shows it.
type bitReader struct {
	buf []byte // padded with eight bytes
	pos uint   // in bits
}

// peek returns at least 57 bits.
func (r *bitReader) peek() uint64 {
	at := r.pos >> 3
	if at+8 > uint(len(r.buf)) {
		return 0
	}
	return binary.LittleEndian.Uint64(r.buf[at:]) >> (r.pos & 7)
}

func (r *bitReader) read(width uint) uint64 {
	v := r.peek() & (1<<width - 1)
	r.pos += width
	return v
}

func (r *bitReader) wide(width uint) uint64 {
	if width <= 32 {
		return r.read(width)
	}
	lo := r.read(32)
	return lo | r.read(width-32)<<32
}

// The Rice code of a number: its high part in unary, its low k bits as they are. From escapeOnes
// ones on, the number follows in 64 bits instead.
const escapeOnes = 24

func (w *bitWriter) rice(v uint64, k uint) {
	q := v >> k
	if q >= escapeOnes {
		w.write(1<<escapeOnes-1, escapeOnes)
		w.wide(v, 64)
		return
	}
	if k <= 32 {
		w.write(1<<q-1|(v&(1<<k-1))<<(q+1), uint(q)+1+k)
		return
	}
	w.write(1<<q-1, uint(q)+1)
	w.wide(v&(1<<k-1), k)
}

func (r *bitReader) rice(k uint) uint64 {
	w := r.peek()
	q := uint(bits.TrailingZeros64(^w))
	if q >= escapeOnes {
		r.pos += escapeOnes
		return r.wide(64)
	}
	if k <= 32 {
		r.pos += q + 1 + k
		return uint64(q)<<k | w>>(q+1)&(1<<k-1)
	}
	r.pos += q + 1
	return uint64(q)<<k | r.wide(k)
}

// riceAll reads numbers one after the other, of the usual ones several from one look.
func (r *bitReader) riceAll(k uint, out []uint64) {
	if k > 24 {
		for i := range out {
			out[i] = r.rice(k)
		}
		return
	}
	low := uint64(1)<<k - 1
	for i := 0; i < len(out); {
		at := r.pos >> 3
		if at+8 > uint(len(r.buf)) {
			out[i] = r.rice(k)
			i++
			continue
		}
		used := r.pos & 7
		w := binary.LittleEndian.Uint64(r.buf[at:]) >> used
		begun := i
		for i < len(out) {
			q := uint(bits.TrailingZeros64(^w))
			size := q + 1 + k
			if q >= escapeOnes || used+size > 64 {
				break
			}
			out[i] = uint64(q)<<(k&63) | w>>((q+1)&63)&low
			w >>= size & 63
			used += size
			r.pos += size
			i++
		}
		if i == begun {
			out[i] = r.rice(k)
			i++
		}
	}
}
