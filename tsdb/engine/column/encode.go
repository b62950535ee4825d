package column

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// predict fills e.diffs in the cheapest way of prediction, which it returns with what all of them add up to.
func (e *Encoder) predict(s *Stats, coded Mask, ints []int64, unit int, related *Column) (best int, total uint64) {
	n := len(ints)
	if n == 0 {
		return fromMean, 0
	}
	scale := scales[unit]
	mean, least, factor := s.mean(n, scale), s.leastCoded(n, scale), int64(0)
	var cost [4]uint64
	toMean, toPrevious, sum, prev := uint64(0), uint64(0), int64(0), mean
	for _, x := range ints {
		toMean += Zigzag(x - mean)
		toPrevious += Zigzag(x - prev)
		sum += x
		prev = x
	}
	cost[fromMean], cost[fromPrevious], cost[fromLeast] = toMean, toPrevious, uint64(sum-int64(n)*least)
	cost[fromRelated] = math.MaxUint64
	if related != nil {
		factor = s.factor(related.Stats, scale)
		cost[fromRelated] = e.costRelated(ints, coded, factor, related)
	}
	for p := range cost {
		if cost[p] < cost[best] {
			best = p
		}
	}
	diffs := e.diffs[:n]
	switch best {
	case fromMean:
		for i, x := range ints {
			diffs[i] = Zigzag(x - mean)
		}
	case fromPrevious:
		prev = mean
		for i, x := range ints {
			diffs[i] = Zigzag(x - prev)
			prev = x
		}
	case fromLeast:
		for i, x := range ints {
			diffs[i] = uint64(x - least)
		}
	case fromRelated:
		for i, x := range ints {
			diffs[i] = Zigzag(x - factor*e.rel[i])
		}
	}
	return best, cost[best]
}

// costRelated gathers the related values, of fractions the whole part, and sums the differences to a multiple of them.
func (e *Encoder) costRelated(ints []int64, coded Mask, factor int64, related *Column) (cost uint64) {
	k := 0
	for w, word := range coded {
		for ; word != 0; word &= word - 1 {
			r := int64(related.V[w<<6+bits.TrailingZeros64(word)])
			d := ints[k] - factor*r
			if d > 1<<54 || d < -1<<54 || r > 1<<40 || r < -1<<40 {
				return math.MaxUint64
			}
			e.rel[k] = r
			cost += Zigzag(d)
			k++
		}
	}
	return cost
}

// appendDiffs writes differences, which add up to sum, by the cheapest of nothing, Rice code and bit-packing.
func appendDiffs(dst []byte, diffs []uint64, sum uint64) (out []byte, how int) {
	if sum == 0 {
		return dst, allZero
	}
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for _, d := range diffs {
		lo, hi = min(lo, d), max(hi, d)
	}
	k, size := bestRice(diffs, sum/uint64(len(diffs)), hi)
	width := uint(bits.Len64(hi - lo))
	if width*uint(len(diffs))+8*uint((bits.Len64(lo|1)+6)/7) < uint(size) {
		w := bitWriter{buf: binary.AppendUvarint(append(dst, byte(width)), lo)}
		for _, d := range diffs {
			w.wide(d-lo, width)
		}
		w.flush()
		return w.buf, packed
	}
	w := bitWriter{buf: append(dst, byte(k))}
	for _, d := range diffs {
		w.rice(d, k)
	}
	w.flush()
	return w.buf, rice
}

// bestRice returns the parameter of the shortest Rice code, by the differences' mean and greatest, and its bits.
func bestRice(diffs []uint64, mean, hi uint64) (k uint, size int) {
	if mean > 1 {
		k = uint(bits.Len64(mean-mean>>2-mean>>4)) - 1 // log2 of about mean x ln 2
	}
	size, up := riceBits(diffs, k, hi)
	if up < size {
		k, size = k+1, up
	}
	if hi>>4 > mean { // outliers raise the mean; they are better written in full
		for less := range k {
			if n, _ := riceBits(diffs, less, hi); n < size {
				k, size = less, n
			}
		}
	}
	return k, size
}

// riceBits is the exact size of values up to hi coded with parameter k, and with k+1.
func riceBits(values []uint64, k uint, hi uint64) (size, up int) {
	k &= 63
	if hi>>k >= escapeOnes {
		return escapedBits(values, k), escapedBits(values, k+1)
	}
	high, half := uint64(0), uint64(0)
	for _, v := range values {
		q := v >> k
		high += q
		half += q >> 1
	}
	size = len(values) * (1 + int(k))
	return size + int(high), size + len(values) + int(half)
}

// escapedBits is the size where some values are so large that they are written in full.
func escapedBits(values []uint64, k uint) int {
	n := len(values) * (1 + int(k))
	for _, v := range values {
		if q := v >> k; q >= escapeOnes {
			n += escapeOnes + 64 - 1 - int(k)
		} else {
			n += int(q)
		}
	}
	return n
}

// appendFloats writes fractions as the exclusive or with the value before: a bit that says whether
// it changed, six bits each for the number of leading and trailing zeros, then the bits between.
func appendFloats(dst []byte, v *Column, coded Mask) []byte {
	w := bitWriter{buf: dst}
	prev := uint64(0)
	for s := range v.V {
		if !coded.Has(s) {
			continue
		}
		x := math.Float64bits(v.V[s])
		d := x ^ prev
		prev = x
		if d == 0 {
			w.write(0, 1)
			continue
		}
		lead, trail := uint(bits.LeadingZeros64(d)), uint(bits.TrailingZeros64(d))
		w.write(1|uint64(lead)<<1|uint64(trail)<<7, 13)
		w.wide(d>>trail, 64-lead-trail)
	}
	w.flush()
	return w.buf
}
