package darshan

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"math"
	"os/exec"
	"testing"
)

// testLog is a log to write: the encoder is the format once more, from the writer's side.
type testLog struct {
	version string
	order   binary.AppendByteOrder
	comp    Compression
	partial uint64
	names   []testName
	modules []testModule
	text    string // command line and mounts
	// head is the job as the format has it: user, times, processes, job ID; nil is one of its own.
	head []uint64
	// padding is how many zeros some runtimes leave behind the header.
	padding int
}

type testName struct {
	id   uint64
	path string
}

// testModule is one module's region; slot is the number in the log's own version.
type testModule struct {
	slot    int
	version uint32
	records []byte
	// streams cuts the region into that many compressed streams.
	streams int
}

func (l *testLog) large() bool { return l.version == "3.41" }

// encode writes the log: header, job, names, modules.
func (l *testLog) encode(t testing.TB) []byte {
	t.Helper()
	o := l.order
	head, slots := smallHeader, 16
	if l.large() {
		head, slots = largeHeader, moduleCount
	}
	body := append(make([]byte, l.padding), l.region(t, l.job(), 1)...)
	type place struct{ off, n int }
	put := func(b []byte) place {
		p := place{head + len(body), len(b)}
		body = append(body, b...)
		return p
	}
	names := put(l.region(t, l.nameTable(), 1))
	places, versions := make([]place, slots), make([]uint32, slots)
	for _, m := range l.modules {
		places[m.slot], versions[m.slot] = put(l.region(t, m.records, max(m.streams, 1))), m.version
	}
	b := append([]byte(l.version), make([]byte, 8-len(l.version))...)
	b = o.AppendUint64(b, magic)
	b = append(b, byte(l.comp), 0, 0, 0)
	if l.large() {
		b = o.AppendUint64(append(b, 0, 0, 0, 0), l.partial)
	} else {
		b = o.AppendUint32(b, uint32(l.partial))
	}
	for _, p := range append([]place{names}, places...) {
		b = o.AppendUint64(o.AppendUint64(b, uint64(p.off)), uint64(p.n))
	}
	for _, v := range versions {
		b = o.AppendUint32(b, v)
	}
	if len(b) != head {
		t.Fatalf("header of %d bytes", len(b))
	}
	return append(b, body...)
}

func (l *testLog) job() []byte {
	values := []uint64{1001, 1700000000, 1700000009, 4, 4242}
	if l.large() {
		values = []uint64{1001, 1700000000, 250000000, 1700000009, 750000000, 4, 4242}
	}
	if l.head != nil {
		values = l.head
	}
	b := l.ints(values...)
	notes := make([]byte, 1024)
	copy(notes, "lib_ver=3.x\nh=a=1;b=2\n")
	return append(append(b, notes...), l.text+"\x00"...)
}

func (l *testLog) nameTable() []byte {
	var b []byte
	for _, n := range l.names {
		b = l.order.AppendUint64(b, n.id)
		if l.version == "3.00" {
			b = append(l.order.AppendUint32(b, uint32(len(n.path))), n.path...)
		} else {
			b = append(append(b, n.path...), 0)
		}
	}
	return b
}

func (l *testLog) region(t testing.TB, b []byte, streams int) []byte {
	t.Helper()
	var out []byte
	for i := range streams {
		piece := b[len(b)*i/streams : len(b)*(i+1)/streams]
		switch l.comp {
		case None:
			out = append(out, piece...)
		case Bzip2:
			out = append(out, bzip2Compress(t, piece)...)
		default:
			var z bytes.Buffer
			w := zlib.NewWriter(&z)
			w.Write(piece)
			w.Close()
			out = append(out, z.Bytes()...)
		}
	}
	return out
}

func bzip2Compress(t testing.TB, b []byte) []byte {
	t.Helper()
	path, err := exec.LookPath("bzip2")
	if err != nil {
		t.Skip("no bzip2 command to write a log with")
	}
	c := exec.Command(path, "-c")
	c.Stdin = bytes.NewReader(b)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ints and floats append numbers in the log's byte order.
func (l *testLog) ints(v ...uint64) []byte {
	var b []byte
	for _, n := range v {
		b = l.order.AppendUint64(b, n)
	}
	return b
}

func (l *testLog) floats(v ...float64) []byte {
	var b []byte
	for _, f := range v {
		b = l.order.AppendUint64(b, math.Float64bits(f))
	}
	return b
}

// fixedRecord writes a record of n integers 100, 101, ... and m floats 0.5, 1.5, ...
func (l *testLog) fixedRecord(id uint64, rank int64, n, m int) []byte {
	b := l.ints(id, uint64(rank))
	for i := range n {
		b = append(b, l.ints(uint64(100+i))...)
	}
	for i := range m {
		b = append(b, l.floats(float64(i)+0.5)...)
	}
	return b
}
