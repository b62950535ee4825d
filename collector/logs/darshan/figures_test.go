package darshan

import (
	"encoding/binary"
	"testing"
)

// TestStreamsAreKnownByTheirIDs: anonymised logs hide their names.
func TestStreamsAreKnownByTheirIDs(t *testing.T) {
	for _, f := range []File{{ID: stdinID}, {ID: stdoutID, Name: "3710437467"}, {ID: stderrID, Name: "/mnt/598"},
		{ID: 7, Name: "<STDOUT>"}} {
		if !f.Pseudo() {
			t.Errorf("%+v: want a stream", f)
		}
	}
	if (&File{ID: 7, Name: "/STDOUT"}).Pseudo() {
		t.Error("a file is a stream")
	}
}

// TestSmallIsBelow1MiB: the runtime's bins are closed above.
func TestSmallIsBelow1MiB(t *testing.T) {
	for _, c := range []struct {
		reads, writes, exact, smallReads, smallWrites int64
	}{
		{100, 0, 100, 0, 0}, {100, 0, 40, 60, 0}, {60, 40, 100, 0, 0}, {60, 40, 50, 30, 20}, {100, 0, 0, 100, 0},
		{100, 0, 900, 0, 0},
	} {
		o := IO{oneMiB: c.exact}
		o.SizeRead[4], o.SizeWrite[4], o.SizeWrite[5] = c.reads, c.writes, 1000
		if r, w := o.SmallReads(), o.SmallWrites(); r != c.smallReads || w != c.smallWrites {
			t.Errorf("%+v: %d and %d", c, r, w)
		}
	}
	if n := exactly1MiB([]int64{512, 1 << 20, 47008, 0, 9, 70, 5, 0}); n != 70 {
		t.Errorf("%d of 1 MiB", n)
	}
}

// TestWhoMovedTheBytes: all ranks open a shared file, few may use it.
func TestWhoMovedTheBytes(t *testing.T) {
	for name, c := range map[string]struct {
		bytes, fast, slow int64
		variance          float64
		want              int64
	}{
		"all alike":               {640, 10, 10, 0, 64},
		"one, the slowest":        {640, 0, 640, 6300, 1},
		"one, by the bytes alone": {640, 0, 640, 0, 1},
		"half of them":            {640, 0, 20, 100, 32},
		"not recorded":            {640, NotRecorded, NotRecorded, NotRecorded, NotRecorded},
		"nobody":                  {0, 0, 0, 0, 0},
	} {
		o := IO{Shared: true, BytesWritten: c.bytes, byRank: bytesByRank{c.fast, c.slow, c.variance}}
		if o.setMovers(64); o.Movers != c.want {
			t.Errorf("%s: %d, want %d", name, o.Movers, c.want)
		}
	}
}

// TestTheSlowestRanksTime: records of all ranks hold sums, and the slowest one's time.
func TestTheSlowestRanksTime(t *testing.T) {
	shared := IO{ReadSeconds: 30, WriteSeconds: 60, MetaSeconds: 10}
	shared.setRank(-1, 5, []int64{1, 0, 2, 0}, 0)
	if shared.SlowestRead != 1.5 || shared.SlowestWrite != 3 || shared.SlowestMeta != .5 || shared.Slowest != 2 {
		t.Errorf("%+v", shared)
	}
	bad := IO{WriteSeconds: -1923.7, MetaSeconds: 2}
	bad.setRank(-1, 0, []int64{0, 0, 0, 0}, 0)
	if bad.SlowestWrite != 0 || bad.SlowestMeta != 2 {
		t.Errorf("%+v", bad)
	}
	var two IO
	for rank, seconds := range []float64{4, 7, 5} {
		one := IO{WriteSeconds: seconds}
		if one.setRank(int64(rank), 0, nil, 0); rank == 0 {
			two = one
		} else {
			two.merge(&one)
		}
	}
	if two.Slowest != 1 || two.SlowestWrite != 7 || two.WriteSeconds != 16 {
		t.Errorf("%+v", two)
	}
}

// TestWhenFilesWereInUse joins the traced calls of all ranks.
func TestWhenFilesWereInUse(t *testing.T) {
	l := &testLog{version: "3.41", order: binary.LittleEndian, text: "app"}
	trace := func(rank uint64, calls ...float64) []byte {
		b := append(l.ints(9, rank, 0), append(make([]byte, 64), l.ints(uint64(len(calls)/2), 0)...)...)
		for i := 0; i < len(calls); i += 2 {
			b = append(append(b, l.ints(0, 1)...), l.floats(calls[i], calls[i+1])...)
		}
		return b
	}
	l.modules = []testModule{{slot: int(DXTPOSIX), version: 1,
		records: append(trace(0, 1, 2, 5, 6, 8, 7, -1, 3), trace(1, 1.5, 3, 9, 9.5)...)}}
	log, err := readBytes(t, l.encode(t))
	if err != nil {
		t.Fatal(err)
	}
	a := log.Files[0].DXTPOSIX
	if a.Writes != 6 || a.Reads != 0 || len(a.Write) != 3 || a.Write[0] != (Interval{1, 3}) ||
		a.Write[1] != (Interval{5, 6}) || a.Write[2] != (Interval{9, 9.5}) {
		t.Errorf("%+v", a)
	}
}
