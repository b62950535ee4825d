package aggregate

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const most = 65536 - 24

var shared = Target{Path: 7, Place: 1, User: 1, Most: most}

func newTable() *Table[int, int] { return New[int, int](2 * time.Millisecond) }

// at is a time of the tests' own clock.
func at(ms float64) time.Time { return time.Unix(1000, int64(ms*1e6)) }

func lengths(messages []Message[int, int]) (n []int) {
	for _, m := range messages {
		n = append(n, len(m.Writes))
	}
	return n
}

// Sixteen ranks write 4 KiB each, in turn along the file, in any order of arrival, each the next when the last was
// answered: nearly every message is full.
func TestStridedWritesFillMessages(t *testing.T) {
	const ranks, rounds = 16, 200
	table, random := newTable(), rand.New(rand.NewPCG(1, 2))
	next := make([]int, ranks)
	ready := random.Perm(ranks)
	var under [][]Message[int, int]
	writes, sent := 0, 0
	for now := 0.0; writes < ranks*rounds || table.Bytes() > 0; now += .01 {
		var out []Message[int, int]
		if len(ready) > 0 {
			rank := ready[0]
			ready = ready[1:]
			if next[rank] < rounds {
				block := next[rank]*ranks + rank
				next[rank]++
				writes++
				out = table.Add(at(now), shared, Write[int, int]{block, rank, int64(block) * 4096, 4096})
			}
		}
		out = append(out, table.Due(at(now))...)
		if sent += len(out); len(out) > 0 {
			under = append(under, out)
		}
		if len(ready) == 0 && len(under) > 0 {
			for _, m := range under[0] {
				if len(m.Writes) > 1 {
					table.Answered(at(now), m)
				}
				for _, w := range m.Writes {
					ready = append(ready, w.By)
				}
			}
			under = under[1:]
			random.Shuffle(len(ready), func(i, k int) { ready[i], ready[k] = ready[k], ready[i] })
		}
	}
	if sent*14 > writes {
		t.Errorf("%d writes went in %d messages, want 15 in each", writes, sent)
	}
}

// Who writes alone, or apart from the others, does not wait for ever to be found alone.
func TestWaitingThatDoesNotPayEnds(t *testing.T) {
	table := newTable()
	for i := range 100 {
		if n := len(table.Add(at(float64(i)), shared, Write[int, int]{i, 1, int64(i) * 4096, 4096})); n != 1 {
			t.Fatalf("write %d of a lone writer gives %d messages", i, n)
		}
	}
	table, waited := newTable(), 0
	for i := range 100 {
		now := float64(i) * 10
		for rank := range 2 {
			w := Write[int, int]{2*i + rank, rank, int64(rank<<30 + i*4096), 4096}
			if n := len(table.Add(at(now), shared, w)); n == 0 {
				waited++
			}
			now++
		}
		if left := table.Due(at(now + 3)); i > 2*aloneMost && len(left) > 0 {
			t.Fatalf("round %d: %d writes had to wait", i, len(left))
		}
	}
	if waited == 0 || waited > 2*aloneMost {
		t.Errorf("%d writes of two ranks with nothing in common waited, want some and at most %d", waited, 2*aloneMost)
	}
}

func TestWhatEndsWaiting(t *testing.T) {
	fill := func() *Table[int, int] {
		table := newTable()
		for _, rank := range []int{5, 6, 7} { // three who write, and only the first two again
			table.Add(at(0), shared, Write[int, int]{rank, rank, int64(rank) << 20, 4096})
		}
		table.FlushWhere(func(Target) bool { return true })
		table.Add(at(1), shared, Write[int, int]{1, 5, 4096, 4096})
		if n := table.Add(at(1), shared, Write[int, int]{2, 6, 8192, 4096}); len(n) > 0 {
			t.Fatalf("%v is sent although one writer is expected", n)
		}
		return table
	}
	other := Target{Path: 8, Place: 1, User: 1, Most: most}
	for name, c := range map[string]struct {
		act  func(*Table[int, int]) []Message[int, int]
		want []int
	}{
		"the last writer": {func(x *Table[int, int]) []Message[int, int] {
			return x.Add(at(1.1), shared, Write[int, int]{3, 7, 12288, 4096})
		}, []int{3}},
		"time":          {func(x *Table[int, int]) []Message[int, int] { return x.Due(at(3)) }, []int{2}},
		"not yet":       {func(x *Table[int, int]) []Message[int, int] { return x.Due(at(2.9)) }, nil},
		"a read of it":  {func(x *Table[int, int]) []Message[int, int] { return x.Flush(7, 4000, 4097) }, []int{2}},
		"a read beside": {func(x *Table[int, int]) []Message[int, int] { return x.Flush(7, 0, 4096) }, nil},
		"another file":  {func(x *Table[int, int]) []Message[int, int] { return x.Flush(8, 0, 1<<40) }, nil},
		"overlap": {func(x *Table[int, int]) []Message[int, int] {
			return x.Add(at(1), shared, Write[int, int]{3, 5, 12000, 4096})
		}, []int{2}},
		"another's overlap": {func(x *Table[int, int]) []Message[int, int] {
			o := shared
			o.User = 2
			return x.Add(at(1), o, Write[int, int]{3, 5, 12000, 40960})
		}, []int{2, 1}},
		"large ones pass": {func(x *Table[int, int]) []Message[int, int] {
			return x.Add(at(1), shared, Write[int, int]{3, 5, 12288, 32768})
		}, []int{1}},
		"others pass": {func(x *Table[int, int]) []Message[int, int] {
			return x.Add(at(1), other, Write[int, int]{3, 5, 12288, 4096})
		}, []int{1}},
		"one of them is not wanted": {func(x *Table[int, int]) []Message[int, int] {
			if !x.Remove(shared, 4096, 1) || x.Remove(shared, 4096, 1) {
				t.Error("it is there once")
			}
			return x.Due(at(3))
		}, []int{1}},
	} {
		table := fill()
		if got := lengths(c.act(table)); !slices.Equal(got, c.want) {
			t.Errorf("%s: messages of %v writes, want %v", name, got, c.want)
		}
	}
}

// A write may wait while the message before it is on its way, for those whom its answer lets go on.
func TestTheRestWaitsForTheAnswer(t *testing.T) {
	table := newTable()
	for rank := range 16 {
		table.Add(at(0), shared, Write[int, int]{100 + rank, rank, int64(rank) << 30, 4096})
	}
	table.FlushWhere(func(Target) bool { return true })
	var sent []Message[int, int]
	for rank := range 16 {
		sent = append(sent, table.Add(at(1), shared, Write[int, int]{rank, rank, int64(rank) * 4096, 4096})...)
	}
	if got := lengths(sent); !slices.Equal(got, []int{15}) {
		t.Fatalf("messages of %v writes, want one of 15", got)
	}
	if late := table.Due(at(8)); len(late) > 0 || !table.Next().After(at(32)) {
		t.Errorf("%v went while a message was on its way", late)
	}
	table.Answered(at(9), sent[0])
	if next := table.Next(); !next.Equal(at(11)) || len(table.Due(at(11))) != 1 {
		t.Errorf("the rest is due at %v, want 2 ms behind the answer", next)
	}
}

// play does what the bytes say and checks each message, and that the file is in the end what the writes make of it in
// the order in which they came.
func play(t *testing.T, script []byte) {
	const blocks, unit = 64, 512
	table := newTable()
	targets := []Target{shared, {Path: 7, Place: 1, User: 2, Most: most}, {Path: 8, Place: 2, User: 1, Most: 4096}}
	type waiting struct {
		Write[int, int]
		to    Target
		since time.Time
	}
	wants := map[int]waiting{}
	var order []waiting
	dropped := map[int]bool{}
	got, want := map[uint64][]byte{7: make([]byte, 2*blocks*unit), 8: make([]byte, 2*blocks*unit)},
		map[uint64][]byte{7: make([]byte, 2*blocks*unit), 8: make([]byte, 2*blocks*unit)}
	put := func(file []byte, w Write[int, int]) {
		for i := range w.Length {
			file[w.Offset+int64(i)] = byte(w.ID)
		}
	}
	var under []Message[int, int]
	take := func(messages []Message[int, int]) {
		for _, m := range messages {
			bytes, end := 0, m.Writes[0].Offset
			for _, w := range m.Writes {
				had, found := wants[w.ID]
				if !found || had.Write != w || had.to != m.To {
					t.Fatalf("%+v to %+v was not waiting: %+v", w, m.To, had)
				}
				if delete(wants, w.ID); w.Offset != end {
					t.Fatalf("%+v does not begin where the one before ends", m)
				}
				end = w.end()
				bytes += w.Length
				put(got[m.To.Path], w)
			}
			if bytes > m.To.Most && len(m.Writes) > 1 {
				t.Fatalf("a message of %d bytes, at most %d go", bytes, m.To.Most)
			}
			if len(m.Writes) > 1 {
				under = append(under, m)
			}
		}
	}
	now := at(0)
	for id := 1; len(script) >= 4; id++ {
		op, a, b, c := script[0]%8, int(script[1]), int(script[2]), int(script[3])
		script = script[4:]
		switch op {
		case 0, 1, 2, 3:
			w := waiting{Write[int, int]{id, a % 5, int64(b%blocks) * unit, (1 + c%8) * unit}, targets[a/5%3], now}
			if c >= 200 {
				w.Length = (c - 190) * unit / 2
			}
			wants[id], order = w, append(order, w)
			take(table.Add(now, w.to, w.Write))
			for _, o := range wants {
				if o.ID != id && o.to.Path == w.to.Path && o.Offset < w.end() && w.Offset < o.end() {
					t.Fatalf("%+v waits although %+v, which overlaps it, came later", o, w)
				}
			}
		case 4:
			now = now.Add(time.Duration(a) * 100 * time.Microsecond)
			take(table.Due(now))
			for _, o := range wants {
				if now.Sub(o.since) > patience*table.wait {
					t.Fatalf("%+v waits since %v", o, now.Sub(o.since))
				}
			}
			if next := table.Next(); next.IsZero() != (len(wants) == 0) || !next.IsZero() && !next.After(now) {
				t.Fatalf("next is %v, now %v, with %d waiting", next, now, len(wants))
			}
		case 5:
			path, begin, end := targets[a%3].Path, int64(b%blocks)*unit, int64(b%blocks+c%9)*unit
			take(table.Flush(path, begin, end))
			for _, o := range wants {
				if o.to.Path == path && o.Offset < end && begin < o.end() {
					t.Fatalf("%+v waits after a flush of %d to %d", o, begin, end)
				}
			}
		case 6:
			if len(under) > 0 {
				table.Answered(now, under[a%len(under)])
				under = slices.Delete(under, a%len(under), a%len(under)+1)
			}
		case 7:
			if len(order) == 0 {
				continue
			}
			o := order[a%len(order)]
			_, waits := wants[o.ID]
			if table.Remove(o.to, o.Offset, o.ID) != waits {
				t.Fatalf("%+v: waits %v, remove says otherwise", o, waits)
			}
			if waits {
				dropped[o.ID] = true
				delete(wants, o.ID)
			}
		}
		bytes := 0
		for _, o := range wants {
			bytes += o.Length
		}
		if table.Bytes() != bytes {
			t.Fatalf("the table holds %d bytes, %d wait", table.Bytes(), bytes)
		}
	}
	take(table.FlushWhere(func(Target) bool { return true }))
	if len(wants) > 0 || len(table.busy) > 0 {
		t.Fatalf("%d writes never went", len(wants))
	}
	for _, o := range order {
		if !dropped[o.ID] {
			put(want[o.to.Path], o.Write)
		}
	}
	for path := range want {
		if !bytes.Equal(got[path], want[path]) {
			t.Fatalf("file %d differs from the writes in their order", path)
		}
	}
}

func TestRandomScripts(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 4*(50+random.IntN(400)))
		for i := range script {
			script[i] = byte(random.IntN(256))
		}
		play(t, script)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 1, 0, 4, 30, 0, 0})
	f.Add([]byte{0, 0, 0, 7, 1, 1, 8, 7, 2, 2, 16, 7, 7, 1, 0, 0, 5, 0, 0, 8, 6, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) { play(t, script[:min(len(script), 4000)]) })
}
