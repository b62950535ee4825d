package column

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func TestUvarintIsTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		b := binary.AppendUvarint(nil, rng.Uint64()>>rng.IntN(64))
		for range rng.IntN(9) {
			b = append(b, byte(rng.Uint32()))
		}
		if rng.IntN(10) == 0 {
			b = b[:rng.IntN(len(b))]
		}
		u, n := Uvarint(b)
		if wantU, wantN := binary.Uvarint(b); u != wantU || n != wantN {
			t.Fatalf("%x: %d of %d bytes, want %d of %d", b, u, n, wantU, wantN)
		}
	}
}
