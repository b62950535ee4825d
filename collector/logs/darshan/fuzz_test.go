package darshan

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// FuzzRead: no log makes the reader crash, hang or hold more memory than its bounds.
func FuzzRead(f *testing.F) {
	for _, version := range []string{"3.00", "3.21", "3.41"} {
		for _, comp := range []Compression{Zlib, None} {
			f.Add(sampleLog(version, binary.LittleEndian, comp).encode(f))
		}
		f.Add(sampleLog(version, binary.BigEndian, None).encode(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		log, err := Read(bytes.NewReader(b), int64(len(b)))
		if log == nil && err == nil {
			t.Fatal("neither log nor error")
		}
		r, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		_ = PrintCounters(io.Discard, r)
		if log != nil {
			for i := range log.Files {
				log.Files[i].OSTs()
			}
			log.Notes()
		}
	})
}
