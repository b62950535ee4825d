package column

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// made returns a measured column from a value per present second; NaN is not present.
func made(value func(s int) float64) *Column {
	c := &Column{}
	for s := range c.V {
		if v := value(s); v == v {
			c.V[s] = v
			c.Present.Set(s)
		}
	}
	c.Measure()
	return c
}

func roundTrip(t *testing.T, c *Column, related Related) int {
	t.Helper()
	var e Encoder
	var d Decoder
	var back Column
	base := baseOf(related)
	data := e.Append([]byte("before"), c, base)[6:]
	if w, ok := wholeOf(c); ok {
		if w.Stats != c.Stats || w.Active != c.Active {
			t.Fatalf("as integers %+v, as floats %+v", w.Stats, c.Stats)
		}
		if again := e.AppendWhole(nil, w, base); !bytes.Equal(again, data) {
			t.Fatalf("as integers %x, as floats %x", again, data)
		}
	}
	if err := d.Decode(data, c.Stats, related, &back); err != nil {
		t.Fatalf("%v\ncolumn %v", err, c.V)
	}
	if back != *c {
		t.Fatalf("bytes %x\ngot  %v %v\nwant %v %v", data, back.Present, back.V, c.Present, c.V)
	}
	if len(data) > maxBytes {
		t.Fatalf("%d bytes, at most %d were promised", len(data), maxBytes)
	}
	return len(data)
}

func baseOf(r Related) (b Base) {
	if r.First != nil {
		b.First = &Whole{}
		r.First.Whole(b.First)
	}
	if r.Second != nil {
		b.Second = &Whole{}
		r.Second.Whole(b.Second)
	}
	return b
}

// wholeOf returns a column as integers; ok is false where it has others, or too great ones.
func wholeOf(c *Column) (w *Whole, ok bool) {
	w = &Whole{Present: c.Present}
	for s, v := range c.V {
		if v < 0 || v >= 1<<53 || v != math.Trunc(v) {
			return nil, false
		}
		w.V[s] = int64(v)
	}
	return w, w.Measure()
}

func TestRoundTripAndSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ops := made(func(s int) float64 { return float64(s % 7 * 3) })
	writes := made(func(s int) float64 { return float64(s % 5) })
	ahead := math.NaN()
	for _, c := range []struct {
		name    string
		most    int // bytes; changing it must be a decision
		related Related
		value   func(s int) float64
	}{
		{"one blip", 2, Related{}, func(s int) float64 { return pick(s == 77, 4096, 0) }},
		{"a burst of one value", 2, Related{}, func(s int) float64 { return pick(s > 30 && s < 90, 5, 0) }},
		{"a multiple of the operations", 1, Related{First: ops}, func(s int) float64 { return ops.V[s] * (1 << 20) }},
		{"a wait where there were operations", 130, Related{ops, writes},
			func(s int) float64 { return pick(ops.V[s]+writes.V[s] > 0, 300+float64(r.IntN(100)), 0) }},
		{"a ramp", 18, Related{}, func(s int) float64 { return 1e6 + float64(s)*1000 }},
		{"small counts", 40, Related{}, func(s int) float64 { return float64(r.IntN(3)) }},
		{"millionths", 135, Related{}, func(s int) float64 { return float64(300+r.IntN(100)) / 1e6 }},
		{"fractions", 1100, Related{}, func(s int) float64 { return r.Float64() }},
		{"negative", 150, Related{}, func(s int) float64 { return float64(-r.IntN(300)) }},
		{"extremes", 800, Related{}, func(s int) float64 {
			return []float64{0, 1<<53 - 1, -(1<<53 - 1), math.MaxFloat64, 5e-324, 1}[r.IntN(6)]
		}},
		{"big integers", 900, Related{}, func(s int) float64 { return float64(r.Int64N(1<<53)) - 1<<52 }},
		{"gaps", 60, Related{}, func(s int) float64 { return pick(s%3 == 0, ahead, float64(r.IntN(8))) }},
		{"only zeros with a gap", 20, Related{}, func(s int) float64 { return pick(s == 5, ahead, 0) }},
		{"one second", 20, Related{}, func(s int) float64 { return pick(s == 119, 7, ahead) }},
		{"outliers", 90, Related{}, func(s int) float64 { return pick(s%50 == 3, 1e12, float64(r.IntN(4))) }},
	} {
		if n := roundTrip(t, made(c.value), c.related); n > c.most {
			t.Errorf("%s: %d bytes, want at most %d", c.name, n, c.most)
		}
	}
}

func pick(first bool, a, b float64) float64 {
	if first {
		return a
	}
	return b
}

func TestAChangedByteIsNoColumn(t *testing.T) {
	var e Encoder
	var d Decoder
	c := made(func(s int) float64 { return pick(s%4 == 0, float64(s*s), 0) })
	data := e.Append(nil, c, Base{})
	wrong := 0
	for i := range data {
		for bit := range 8 {
			bad := append([]byte(nil), data...)
			bad[i] ^= 1 << bit
			var back Column
			switch err := d.Decode(bad, c.Stats, Related{}, &back); {
			case err == nil && back != *c:
				wrong++ // a swap that keeps every figure; the block's checksum is there for it
			case err != nil && !errors.Is(err, ErrCorrupt):
				t.Errorf("byte %d bit %d: %v", i, bit, err)
			}
		}
	}
	if wrong > len(data) {
		t.Errorf("%d of %d changed bits went unnoticed", wrong, 8*len(data))
	}
}

// columnOf builds a column from fuzz bytes: a mode, then values of its size.
func columnOf(data []byte) *Column {
	if len(data) == 0 {
		return nil
	}
	mode, data := data[0], data[1:]
	size := []int{1, 2, 4, 8}[mode&3]
	return made(func(s int) float64 {
		if len(data) < size {
			return pick(s == 0 || mode&4 != 0, 0, math.NaN())
		}
		var b [8]byte
		copy(b[:], data[:size])
		data = data[size:]
		v := float64(int64(binary.LittleEndian.Uint64(b[:])))
		if mode&8 != 0 && size == 8 {
			v = math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
		}
		if mode&16 != 0 {
			v /= 1e6
		}
		if v-v != 0 || v == 0 {
			return pick(v == 0, 0, math.NaN())
		}
		return v
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\x00hello, hello, hello"), []byte("\x01abc"), []byte{})
	f.Add([]byte("\x0bfractions-of-something-else-entirely"), []byte{}, []byte{})
	f.Add([]byte("\x15micros micros micros"), []byte("\x05aaaaaaaaaaaaaaaa"), []byte("\x04b"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		col, first, second := columnOf(a), columnOf(b), columnOf(c)
		if col == nil {
			return
		}
		if first == nil {
			second = nil
		}
		roundTrip(t, col, Related{first, second})
	})
}

func FuzzDecode(f *testing.F) {
	var e Encoder
	for _, v := range []func(int) float64{
		func(s int) float64 { return float64(s % 9) },
		func(s int) float64 { return float64(s) / 7 },
		func(s int) float64 { return pick(s%10 == 0, float64(s), 0) },
	} {
		c := made(v)
		f.Add(e.Append(nil, c, Base{}), uint8(c.Stats.Count), uint8(c.Stats.NonZero), c.Stats.Min, c.Stats.Max,
			c.Stats.Sum)
	}
	f.Fuzz(func(t *testing.T, data []byte, count, nonZero uint8, least, most, sum float64) {
		var d Decoder
		var c Column
		rel := made(func(s int) float64 { return float64(s % 3) })
		s := Stats{int(count), int(nonZero), least, most, sum}
		err := d.Decode(data, s, Related{First: rel}, &c)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if err == nil && c.Stats != s {
			t.Fatalf("accepted figures %+v for %+v", s, c.Stats)
		}
	})
}
