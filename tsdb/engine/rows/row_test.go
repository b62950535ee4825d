package rows

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRowsAreReadAsWritten: a row of any values is found whole, and cut short it is found to be no row.
func TestRowsAreReadAsWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	values := []func() uint64{
		func() uint64 { return Absent },
		func() uint64 { return 0 },
		func() uint64 { return math.Float64bits(rng.NormFloat64()) },
		func() uint64 { return math.Float64bits(-float64(rng.IntN(9) + 1)) },
		func() uint64 { return math.Float64bits(float64(rng.Uint64() >> rng.IntN(64))) },
		func() uint64 { return math.Float64bits(1<<53 - float64(rng.IntN(3))) },
	}
	for range 100_000 {
		slots := make([]uint64, rng.IntN(MaxColumns+1))
		for i := range slots {
			slots[i] = values[rng.IntN(len(values))]()
		}
		var dst [MaxBytes + Slack]byte
		row := dst[:Put(dst[:], slots)]
		if size, ok := Size(row); !ok || size != len(row) {
			t.Fatalf("%x: size %d %v, want %d", row, size, ok, len(row))
		}
		if cut := rng.IntN(len(row)); len(row) > 1 && cut > 0 {
			if _, ok := Size(row[:cut:cut]); ok {
				t.Fatalf("%x cut to %d bytes is a row", row, cut)
			}
		}
		back := make([]uint64, len(slots)+1)
		if Values(row, back); !slices.Equal(back[:len(slots)], slots) || back[len(slots)] != Absent {
			t.Fatalf("%x: got %x, want %x", row, back, slots)
		}
		if slot := rng.IntN(len(slots) + 1); value(row, slot) != back[slot] {
			t.Fatalf("%x: column %d is %x, want %x", row, slot, value(row, slot), back[slot])
		}
	}
}
