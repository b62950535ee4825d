package collector

import (
	"bytes"
	"slices"
	"testing"
)

func TestFields(t *testing.T) {
	for _, line := range []string{"", " ", "a", " a  b\t", "a\r\nb\v\fc", "a\x00b \xff", "\n\n1 2"} {
		got, want := Fields(nil, []byte(line)), bytes.Fields([]byte(line))
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	var room [4][]byte
	line := []byte("read_bytes 9 samples")
	if n := testing.AllocsPerRun(100, func() { Fields(room[:0], line) }); n > 0 {
		t.Errorf("%v allocations a line, want 0", n)
	}
}
