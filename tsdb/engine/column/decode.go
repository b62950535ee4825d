package column

import (
	"math"
	"math/bits"
)

// maxBytes is the largest a column can be.
const maxBytes = 2 + 15 + 15 + 1 + 10 + Seconds*12

// Decoder decodes columns; its scratch is reused, so it is for one goroutine.
type Decoder struct {
	padded []byte
	diffs  [Seconds]uint64
}

// Needs says which related columns Decode will look at: of the others a reader can spare the decoding.
func Needs(data []byte) (first, second bool) {
	if len(data) == 0 {
		return false, false
	}
	zeros, predict, how := int(data[0]&7), int(data[0]>>3&3), int(data[0]>>5&3)
	second = zeros == zerosLike2
	return second || zeros == zerosLike || predict == fromRelated && how != floats, second
}

// Decode reads a column that Encoder.Append wrote with the same figures and related columns. Bytes
// that are no column, or one with other figures, give ErrCorrupt; it never reads beyond them and
// allocates no more than a column needs.
func (d *Decoder) Decode(data []byte, s Stats, related Related, v *Column) error {
	if len(data) < 1 || len(data) > maxBytes {
		return corrupt("%d bytes, a column has 1 to %d", len(data), maxBytes)
	}
	*v = Column{Present: Full}
	d.padded = append(append(d.padded[:0], data...), 0, 0, 0, 0, 0, 0, 0, 0)
	r := bitReader{buf: d.padded, pos: 8}
	head, unit := data[0], unitOne
	if head&extended != 0 {
		second := r.read(8)
		unit = int(second & 3)
		if second&partial != 0 {
			v.Present = Mask{r.wide(64), r.wide(Seconds - 64)}
		}
	}
	coded, err := readZeros(&r, int(head&7), s, v.Present, related)
	if err != nil {
		return err
	}
	r.pos = (r.pos + 7) &^ 7
	if how := int(head >> 5 & 3); how == floats {
		readFloats(&r, coded, v)
	} else {
		n := coded.Count()
		diffs := d.diffs[:n]
		if int(head>>3&3) == fromPrevious && n > 0 {
			if diffs[0], err = r.uvarint(); err != nil {
				return err
			}
			diffs = diffs[1:]
		}
		if err := readDiffs(&r, how, diffs); err != nil {
			return err
		}
		if err := d.addUp(int(head>>3&3), &s, n, unit, coded, related.First, v); err != nil {
			return err
		}
	}
	if r.pos > uint(len(data))*8 {
		return corrupt("%d bytes end inside a value", len(data))
	}
	if v.Measure(); v.Stats != s {
		return corrupt("its figures are %+v, the index has %+v", v.Stats, s)
	}
	return nil
}

func readZeros(r *bitReader, how int, s Stats, present Mask, related Related) (Mask, error) {
	var m Mask
	switch how {
	case zerosCoded:
		return present, nil
	case zerosRun:
		if err := m.setRun(int(r.read(7)), s.NonZero); err != nil {
			return m, err
		}
	case zerosAt:
		for range s.NonZero {
			if err := m.setRun(int(r.read(7)), 1); err != nil {
				return m, err
			}
		}
	case zerosRuns:
		for range r.read(3) + 1 {
			if err := m.setRun(int(r.read(7)), int(r.read(7))); err != nil {
				return m, err
			}
		}
	case zerosBitmap:
		m = Mask{r.wide(64), r.wide(Seconds - 64)}
	case zerosLike:
		m, _ = related.masks()
	case zerosLike2:
		_, m = related.masks()
	default:
		return m, corrupt("zero code %d", how)
	}
	return m.And(present), nil
}

func (m *Mask) setRun(from, n int) error {
	if from+n > Seconds {
		return corrupt("seconds %d to %d", from, from+n)
	}
	for s := from; s < from+n; s++ {
		m.Set(s)
	}
	return nil
}

// addUp turns differences into values.
func (d *Decoder) addUp(predict int, s *Stats, n, unit int, coded Mask, related, v *Column) error {
	if n == 0 {
		return nil
	}
	scale, base := scales[unit], int64(0)
	switch predict {
	case fromMean, fromPrevious:
		base = s.mean(n, scale)
	case fromLeast:
		base = s.leastCoded(n, scale)
	case fromRelated:
		if related == nil {
			return corrupt("its related column is missing")
		}
		base = s.factor(related.Stats, scale)
	}
	diffs := d.diffs[:n]
	switch predict { // they are turned into values in place
	case fromMean:
		for k, u := range diffs {
			diffs[k] = uint64(Unzigzag(u) + base)
		}
	case fromPrevious:
		for k, u := range diffs {
			base += Unzigzag(u)
			diffs[k] = uint64(base)
		}
	case fromLeast:
		for k, u := range diffs {
			diffs[k] = u + uint64(base)
		}
	case fromRelated:
		for k, u := range diffs {
			diffs[k] = uint64(Unzigzag(u))
		}
	}
	if predict == fromRelated {
		k := 0
		for w, word := range coded {
			for ; word != 0; word &= word - 1 {
				diffs[k] += uint64(base * int64(related.V[w<<6+bits.TrailingZeros64(word)]))
				k++
			}
		}
	}
	if coded == Full && scale == 1 {
		for k, u := range diffs {
			v.V[k] = float64(int64(u))
		}
		return nil
	}
	k := 0
	for w, word := range coded {
		for ; word != 0; word &= word - 1 {
			v.V[w<<6+bits.TrailingZeros64(word)] = fromInt(int64(diffs[k]), scale)
			k++
		}
	}
	return nil
}

func readDiffs(r *bitReader, how int, diffs []uint64) error {
	if how == allZero {
		clear(diffs)
		return nil
	}
	width := uint(r.read(8))
	if width > 63 {
		return corrupt("width %d", width)
	}
	if how == rice {
		r.riceAll(width, diffs)
		return nil
	}
	lo, err := r.uvarint()
	if err != nil {
		return err
	}
	for i := range diffs {
		diffs[i] = lo + r.wide(width)
	}
	return nil
}

// uvarint reads a number that begins at a byte.
func (r *bitReader) uvarint() (uint64, error) {
	u, size := uint64(0), 0
	if at := r.pos >> 3; at < uint(len(r.buf)) {
		u, size = Uvarint(r.buf[at:])
	}
	if size <= 0 {
		return 0, corrupt("ends inside a number")
	}
	r.pos += uint(size) * 8
	return u, nil
}

func readFloats(r *bitReader, coded Mask, v *Column) {
	prev := uint64(0)
	for s := range v.V {
		if !coded.Has(s) {
			continue
		}
		if r.read(1) != 0 {
			lead, trail := uint(r.read(6)), uint(r.read(6))
			if lead+trail < 64 {
				prev ^= r.wide(64-lead-trail) << trail
			}
		}
		v.V[s] = math.Float64frombits(prev)
	}
}
