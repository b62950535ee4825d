package column

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Zigzag turns a difference into a number without a sign, small where the difference is.
func Zigzag(d int64) uint64 { return uint64(d)<<1 ^ uint64(d>>63) }

// Unzigzag turns what Zigzag returned back.
func Unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// ExactInt returns the integer that the bits of a value are; ok is false for a fraction, an infinity, a negative zero
// or one from 2^53 on, where neighbouring integers have one float64, and i is then 0.
func ExactInt(v uint64) (i int64, ok bool) {
	f := math.Float64frombits(v)
	i = int64(f)
	if math.Float64bits(float64(i)) != v || i >= 1<<53 || i <= -1<<53 {
		return 0, false
	}
	return i, true
}

// Uvarint is binary.Uvarint, without a loop where eight bytes can be looked at together.
func Uvarint(b []byte) (u uint64, n int) {
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
