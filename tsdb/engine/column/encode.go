package column

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Whole is a column of integers that are at least 0 and below 2^53, as the encoder takes it without looking at
// each value. Seconds that are not present are 0.
type Whole struct {
	Present Mask
	Active  Mask
	Stats   Stats
	V       [Seconds]int64
}

// Measure computes Active and Stats as Column.Measure does; ok is false where the sum would not be exact.
func (c *Whole) Measure() (ok bool) {
	sum, most, least := uint64(0), uint64(0), uint64(math.MaxUint64)
	var active Mask
	for w := range active {
		word := uint64(0)
		for s, x := range c.V[w<<6 : min(w<<6+64, Seconds)] {
			u := uint64(x)
			sum += u
			most = max(most, u)
			least = min(least, u-1) // 0 counts as the greatest
			word |= (u | -u) >> 63 << s
		}
		active[w] = word
	}
	c.Active = active
	s := Stats{Count: c.Present.Count(), NonZero: active.Count(), Sum: float64(sum), Max: float64(most)}
	if s.NonZero == s.Count {
		s.Min = float64(least + 1)
	}
	c.Stats = s
	return most < 1<<53/Seconds
}

// Base is Related for the encoder: of a column of fractions only the whole part is looked at.
type Base struct{ First, Second *Whole }

func (b Base) masks() (first, either Mask) {
	if b.First == nil {
		return Mask{}, Mask{}
	}
	if b.Second == nil {
		return b.First.Active, Mask{}
	}
	return b.First.Active, b.First.Active.Or(b.Second.Active)
}

// Whole fills w with what the encoder needs of a related column.
func (c *Column) Whole(w *Whole) {
	w.Present, w.Active, w.Stats = c.Present, c.Active, c.Stats
	for s, v := range c.V {
		w.V[s] = int64(v)
	}
}

// predict fills e.diffs in the cheapest way of prediction, which it returns with what all of them add up to.
func (e *Encoder) predict(s *Stats, coded Mask, ints []int64, unit int, related *Whole) (best int, total uint64) {
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

// costRelated gathers the related values and sums the differences to a multiple of them.
func (e *Encoder) costRelated(ints []int64, coded Mask, factor int64, related *Whole) (cost uint64) {
	if coded == Full {
		return e.costAllRelated((*[Seconds]int64)(ints), factor, related)
	}
	k := 0
	for w, word := range coded {
		for ; word != 0; word &= word - 1 {
			r := related.V[w<<6+bits.TrailingZeros64(word)]
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

// costAllRelated is costRelated where every second is coded.
func (e *Encoder) costAllRelated(ints *[Seconds]int64, factor int64, related *Whole) (cost uint64) {
	const most, mostRelated = 1 << 54, 1 << 40
	outside := false
	for k, r := range related.V {
		d := ints[k] - factor*r
		outside = outside || uint64(d+most) > 2*most || uint64(r+mostRelated) > 2*mostRelated
		cost += Zigzag(d)
	}
	if outside {
		return math.MaxUint64
	}
	e.rel = related.V
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
	// Room for the longest code of each, so that no write has to look.
	dst = slices.Grow(dst, 16+len(diffs)*12)
	width := uint(bits.Len64(hi - lo))
	if width*uint(len(diffs))+8*uint((bits.Len64(lo|1)+6)/7) < uint(size) {
		w := bitWriter{buf: binary.AppendUvarint(append(dst, byte(width)), lo)}
		for _, d := range diffs {
			w.wide(d-lo, width)
		}
		w.flush()
		return w.buf, packed
	}
	return appendRice(append(dst, byte(k)), diffs, k, hi), rice
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

// appendRice writes values up to hi; dst has room for them and eight bytes more.
func appendRice(dst []byte, values []uint64, k uint, hi uint64) []byte {
	if k > 32 || hi>>k >= escapeOnes {
		w := bitWriter{buf: dst}
		for _, v := range values {
			w.rice(v, k)
		}
		w.flush()
		return w.buf
	}
	buf, at := dst[:cap(dst)], len(dst)
	acc, n := uint64(0), uint(0) // of n at most 7 bits are pending
	k &= 63
	low := uint64(1)<<k - 1
	for _, v := range values {
		q := uint(v>>k) & 63
		acc |= (uint64(1)<<q - 1 | v&low<<(q+1)) << (n & 63) // up to 57 bits
		n += q + 1 + k
		binary.LittleEndian.PutUint64(buf[at:], acc)
		at += int(n >> 3)
		acc >>= n &^ 7 & 63
		n &= 7
	}
	if n > 0 {
		at++
	}
	return buf[:at]
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
