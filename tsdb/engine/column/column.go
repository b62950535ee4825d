// Package column codes one column of the store: up to 120 seconds of one metric of one node. It
// looks at each column and takes what is smallest: nothing for a constant, zeros left out, the
// difference to a constant, to the value before, or to a multiple of another column of the node,
// Rice codes or bit-packing, and the changed bits of fractions. The comment of tsdb/engine has the bytes.
package column

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Seconds is the length of a column.
const Seconds = 120

// Mask has a bit per second.
type Mask [2]uint64

// Full is the mask of all seconds.
var Full = Mask{math.MaxUint64, 1<<(Seconds-64) - 1}

// Has says whether second s is in the mask.
func (m Mask) Has(s int) bool { return m[s>>6]>>(s&63)&1 != 0 }

// Set puts second s into the mask.
func (m *Mask) Set(s int) { m[s>>6] |= 1 << (s & 63) }

// Clear takes second s out of the mask.
func (m *Mask) Clear(s int) { m[s>>6] &^= 1 << (s & 63) }

// Count returns the number of seconds in the mask.
func (m Mask) Count() int { return bits.OnesCount64(m[0]) + bits.OnesCount64(m[1]) }

// And returns the seconds that are in both.
func (m Mask) And(o Mask) Mask { return Mask{m[0] & o[0], m[1] & o[1]} }

// Each calls visit for every second in the mask.
func (m Mask) Each(visit func(s int)) {
	for w, word := range m {
		for ; word != 0; word &= word - 1 {
			visit(w<<6 + bits.TrailingZeros64(word))
		}
	}
}

// Newest returns the latest second of a mask, -1 without one.
func (m *Mask) Newest() int {
	if hi := m[1]; hi != 0 {
		return 127 - bits.LeadingZeros64(hi)
	}
	return 63 - bits.LeadingZeros64(m[0])
}

// AndNot returns the seconds that are not in o.
func (m Mask) AndNot(o Mask) Mask { return Mask{m[0] &^ o[0], m[1] &^ o[1]} }

// Or returns the seconds that are in either.
func (m Mask) Or(o Mask) Mask { return Mask{m[0] | o[0], m[1] | o[1]} }

// Stats are what the index keeps of a column.
type Stats struct {
	Count   int // present seconds, 1..120
	NonZero int // present seconds with a value other than 0
	Min     float64
	Max     float64
	Sum     float64 // taken in order of time
}

// Column is a column in memory. Values of seconds that are not present are 0 and mean nothing.
// Active and Stats follow from the others; Measure fills them.
type Column struct {
	Present Mask
	Active  Mask // present seconds with a value other than 0
	Stats   Stats
	V       [Seconds]float64
}

// Kind is how a block keeps a column.
type Kind uint8

// The kinds of columns.
const (
	None     Kind = iota // no second is present
	Constant             // every second has one value
	Varied
	Integers // varied, in a Whole
)

// Overlay puts the present values of over in place of c's.
func (c *Column) Overlay(over *Column) {
	for s, v := range over.V {
		if over.Present.Has(s) {
			c.V[s] = v
		}
	}
	c.Present = c.Present.Or(over.Present)
}

// Measure computes Active and Stats from the values.
func (c *Column) Measure() {
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for w := range c.Present {
		active := uint64(0)
		for s, x := range c.V[w<<6 : min(w<<6+64, Seconds)] {
			u := math.Float64bits(x) &^ (1 << 63)
			active |= (u | -u) >> 63 << s
		}
		c.Active[w] = active & c.Present[w]
	}
	for w, word := range c.Active {
		for ; word != 0; word &= word - 1 {
			x := c.V[w<<6+bits.TrailingZeros64(word)]
			sum += x
			if x < least {
				least = x
			}
			if x > most {
				most = x
			}
		}
	}
	s := Stats{Count: c.Present.Count(), NonZero: c.Active.Count(), Sum: sum}
	switch {
	case s.NonZero == 0:
	case s.NonZero < s.Count:
		s.Min, s.Max = min(least, 0), max(most, 0)
	default:
		s.Min, s.Max = least, most
	}
	c.Stats = s
}

// Kept measures a column, and says how a block keeps it and the value of a constant one.
func (c *Column) Kept() (Kind, float64) {
	if c.Present == (Mask{}) {
		return None, 0
	}
	c.Measure()
	if c.Stats.Count == Seconds && c.Stats.Min == c.Stats.Max {
		return Constant, c.Stats.Min
	}
	return Varied, 0
}

// Ways to say which seconds are coded; the other present ones are 0. Bits 0-2 of the first byte.
const (
	zerosCoded  = iota // every present second is coded
	zerosAt            // up to 15 coded seconds are listed, 7 bits each
	zerosRun           // one run of coded seconds; 7 bits say where it begins
	zerosRuns          // up to 8 runs of coded seconds are listed, 14 bits each
	zerosBitmap        // 120 bits
	zerosLike          // those in which the first related column is not 0
	zerosLike2         // those in which the first or the second related column is not 0
)

// Ways to predict a value. Bits 3-4 of the first byte.
const (
	fromMean     = iota // the mean of the coded values, known from the column's figures
	fromPrevious        // the coded value before; the first's difference to the mean follows
	fromRelated         // the related column times a factor, known from both columns' sums
	fromLeast           // the minimum; differences are then not signed
)

// Ways to write the differences. Bits 5-6 of the first byte.
const (
	allZero = iota // every difference is 0; nothing follows
	rice           // a byte with the parameter, then Rice codes
	packed         // a byte with the width, the least difference, then the rest of each
	floats         // no integers: the changed bits of fractions; prediction is not used
)

// Bit 7 of the first byte: a second byte follows. Its bits 0-1 are the unit, bit 2 says that a mask
// of the present seconds follows.
const (
	extended = 0x80
	partial  = 0x04
)

// Units of the integers that are coded.
const (
	unitOne   = iota // the values are integers
	unitMicro        // millionths
	unitNano         // thousand-millionths
	unitNone         // no unit makes them integers
)

var scales = [...]float64{unitOne: 1, unitMicro: 1e6, unitNano: 1e9, unitNone: 1}

// Related are columns of the same node and span, measured, that a column may be predicted from: the
// operations that its bytes or waits belong to. Either may be nil. Decoding needs the same ones.
type Related struct{ First, Second *Column }

func (r Related) masks() (first, either Mask) {
	if r.First == nil {
		return Mask{}, Mask{}
	}
	if r.Second == nil {
		return r.First.Active, Mask{}
	}
	return r.First.Active, r.First.Active.Or(r.Second.Active)
}

// ErrCorrupt says that bytes are not a column.
var ErrCorrupt = errors.New("corrupt column")

func corrupt(what string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(what, args...))
}

// Encoder encodes columns; its scratch is reused, so it is for one goroutine.
type Encoder struct {
	ints  [Seconds]int64  // the coded values, without gaps
	rel   [Seconds]int64  // the related column's values
	diffs [Seconds]uint64 // to the prediction
}

// Append encodes c, which is measured and has at least one present second, onto dst.
func (e *Encoder) Append(dst []byte, c *Column, base Base) []byte {
	s := &c.Stats
	coded, zeros := chooseZeros(c.Active, c.Present, base)
	n, unit := e.integers(c, coded)
	if zeros >= zerosRuns && unit == unitOne && s.fewCounts() {
		coded, zeros = c.Present, zerosCoded
		n, unit = e.integers(c, coded)
	}
	if unit == unitNone {
		at := len(dst)
		dst = appendHead(dst, c.Present, coded, zeros, unit)
		dst[at] |= floats << 5
		return appendFloats(dst, c, coded)
	}
	return e.appendInts(dst, shape{c.Present, coded, zeros, unit}, s, e.ints[:n], base)
}

// AppendWhole encodes a column of integers; the bytes are those of Append of the same column.
func (e *Encoder) AppendWhole(dst []byte, c *Whole, base Base) []byte {
	coded, zeros := chooseZeros(c.Active, c.Present, base)
	if zeros >= zerosRuns && c.Stats.fewCounts() {
		coded, zeros = c.Present, zerosCoded
	}
	ints := c.V[:]
	if coded != Full {
		n := 0
		for w, word := range coded {
			for ; word != 0; word &= word - 1 {
				e.ints[n] = c.V[w<<6+bits.TrailingZeros64(word)]
				n++
			}
		}
		ints = e.ints[:n]
	}
	return e.appendInts(dst, shape{c.Present, coded, zeros, unitOne}, &c.Stats, ints, base)
}

// fewCounts says that a zero in unary costs as little as its bit in a mask.
func (s *Stats) fewCounts() bool { return s.Min >= 0 && s.Sum < float64(4*s.Count) }

// shape is what the head of a column says.
type shape struct {
	present, coded Mask
	zeros, unit    int
}

// appendInts encodes a column whose coded values are integers.
func (e *Encoder) appendInts(dst []byte, h shape, s *Stats, ints []int64, base Base) []byte {
	at := len(dst)
	dst = appendHead(dst, h.present, h.coded, h.zeros, h.unit)
	predict, total := e.predict(s, h.coded, ints, h.unit, base.First)
	diffs := e.diffs[:len(ints)]
	if predict == fromPrevious { // the first says where it begins, the others how it goes on
		dst = binary.AppendUvarint(dst, diffs[0])
		total -= diffs[0]
		diffs = diffs[1:]
	}
	dst, how := appendDiffs(dst, diffs, total)
	dst[at] |= byte(predict<<3 | how<<5)
	return dst
}

// appendHead writes the first byte without prediction and code, and what follows it but for the values.
func appendHead(dst []byte, present, coded Mask, zeros, unit int) []byte {
	at := len(dst)
	dst = append(dst, byte(zeros))
	if unit != unitOne || present != Full {
		dst[at] |= extended
		dst = append(dst, byte(unit))
		if present != Full {
			dst[at+1] |= partial
		}
	}
	if present != Full || zeros != zerosCoded && zeros < zerosLike {
		dst = appendMasks(dst, present, coded, zeros)
	}
	return dst
}

// mean is the prediction of fromMean, in units.
func (s *Stats) mean(coded int, scale float64) int64 {
	return whole(s.Sum * scale / float64(coded))
}

// leastCoded is the prediction of fromLeast, in units, where coded seconds are coded: the minimum,
// but of values that are left out because they are 0.
func (s *Stats) leastCoded(coded int, scale float64) int64 {
	if least := whole(s.Min * scale); coded == s.Count || least < 0 {
		return least
	}
	return 0
}

// factor is fromRelated's, in units per related one.
func (s *Stats) factor(related Stats, scale float64) int64 { return whole(s.Sum * scale / related.Sum) }

// whole rounds to an integer, to 0 what has no sensible one.
func whole(x float64) int64 {
	if x != x || x > 1<<53 || x < -1<<53 {
		return 0
	}
	return int64(math.Round(x))
}

// chooseZeros picks the cheapest way to leave zeros out.
func chooseZeros(nz, present Mask, base Base) (coded Mask, how int) {
	if nz == present {
		return present, zerosCoded
	}
	n := nz.Count()
	first, either := base.masks()
	switch {
	case first != Mask{} && nz.AndNot(first) == Mask{} && first.And(present).Count() <= n+n/8+2:
		return first.And(present), zerosLike
	case either != Mask{} && nz.AndNot(either) == Mask{} && either.And(present).Count() <= n+n/8+2:
		return either.And(present), zerosLike2
	case n*8 >= present.Count()*7:
		return present, zerosCoded
	default:
		switch runs := nz.runs(); {
		case runs == 1:
			return nz, zerosRun
		case n <= 2*runs && n <= 15:
			return nz, zerosAt
		case runs <= 8:
			return nz, zerosRuns
		}
		return nz, zerosBitmap
	}
}

// runs counts the runs of seconds.
func (m Mask) runs() int {
	return bits.OnesCount64(m[0]&^(m[0]<<1)) + bits.OnesCount64(m[1]&^(m[1]<<1|m[0]>>63))
}

type run struct{ from, len int }

func maskRuns(m Mask) []run {
	var out []run
	for s := 0; s < Seconds; s++ {
		if !m.Has(s) {
			continue
		}
		from := s
		for s < Seconds && m.Has(s) {
			s++
		}
		out = append(out, run{from, s - from})
	}
	return out
}

func appendMasks(dst []byte, present, coded Mask, zeros int) []byte {
	w := bitWriter{buf: dst}
	if present != Full {
		w.wide(present[0], 64)
		w.wide(present[1], Seconds-64)
	}
	switch zeros {
	case zerosRun:
		w.write(uint64(maskRuns(coded)[0].from), 7)
	case zerosAt:
		for _, r := range maskRuns(coded) {
			for i := range r.len {
				w.write(uint64(r.from+i), 7)
			}
		}
	case zerosRuns:
		runs := maskRuns(coded)
		w.write(uint64(len(runs)-1), 3)
		for _, r := range runs {
			w.write(uint64(r.from)|uint64(r.len)<<7, 14)
		}
	case zerosBitmap:
		w.wide(coded[0], 64)
		w.wide(coded[1], Seconds-64)
	}
	w.flush()
	return w.buf
}

// integers fills e.ints with the coded values as integers of the coarsest unit that keeps all of
// them exact.
func (e *Encoder) integers(v *Column, coded Mask) (n, unit int) {
	for unit = unitOne; unit < unitNone; unit++ {
		var ok bool
		if n, ok = e.scaled(v, coded, scales[unit]); ok {
			return n, unit
		}
	}
	return 0, unitNone
}

func (e *Encoder) scaled(v *Column, coded Mask, scale float64) (n int, ok bool) {
	const limit = 1 << 53
	for w, word := range coded {
		for ; word != 0; word &= word - 1 {
			x := v.V[w<<6+bits.TrailingZeros64(word)]
			i := int64(x)
			if scale != 1 {
				i = int64(math.Round(x * scale))
			}
			if math.Float64bits(fromInt(i, scale)) != math.Float64bits(x) || i >= limit || i <= -limit {
				return 0, false
			}
			e.ints[n] = i
			n++
		}
	}
	return n, true
}

// fromInt is the value that an integer stands for.
func fromInt(i int64, scale float64) float64 {
	if scale == 1 {
		return float64(i)
	}
	return float64(i) / scale
}
