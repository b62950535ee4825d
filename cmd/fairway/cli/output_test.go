package cli

import (
	"bytes"
	"testing"
)

func TestCharactersMayArriveInParts(t *testing.T) {
	var out bytes.Buffer
	p := Plain(&out)
	for _, b := range []byte("ä\u009b\tb\xff\n") {
		if n, err := p.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if out.String() != "ä?\tb?\n" {
		t.Errorf("%q", out.String())
	}
}
