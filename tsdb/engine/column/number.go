package column

import "math"

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
