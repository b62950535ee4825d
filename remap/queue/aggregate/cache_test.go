package aggregate

import (
	"bytes"
	"testing"
	"time"
)

// script is a Cache with a file of version 0, 1, ... in which every byte is the version's number.
type script struct {
	t       *testing.T
	c       *Cache[int]
	now     time.Time
	version byte
	begun   map[string]*Fetch[int]
	data    map[string][]byte
}

func newScript(t *testing.T) *script {
	return &script{t: t, c: NewCache[int](1 << 16), now: time.Unix(1000, 0), begun: map[string]*Fetch[int]{},
		data: map[string][]byte{}}
}

const path = 7

// open is a reader from now on.
func (s *script) open() Reader { return Reader{Path: path, Place: 1, Opened: s.c.Tick()} }

// ask begins a read of what r wants under a name; serve has the server do it, keep ends it.
func (s *script) ask(name string, r Reader) { s.begun[name] = s.c.Ask(s.now, r, 0, 1000, 8000) }
func (s *script) send(name string)          { s.c.Sent(s.now, s.begun[name]) }
func (s *script) serve(name string)         { s.data[name] = bytes.Repeat([]byte{s.version}, 1000) }
func (s *script) keep(name string)          { s.c.Done(s.now, s.begun[name], s.data[name]) }

func (s *script) read(name string, r Reader) {
	s.ask(name, r)
	s.send(name)
	s.serve(name)
	s.keep(name)
}

// found is the version that is kept for r, -1: none.
func (s *script) found(r Reader) int {
	if b := s.c.Find(s.now, r, 100, 500, nil); len(b) > 0 {
		return int(b[0][0])
	}
	return -1
}

// What is read ahead for whom: small pieces behind small pieces.
func TestWhatIsReadAhead(t *testing.T) {
	s := newScript(t)
	r := s.open()
	for _, c := range []struct {
		offset int64
		n      int
		want   int64
	}{{0, 1000, 1000}, {1000, 1000, 9000}, {5000, 1000, 6000}, {6000, 3000, 12000}, {20000, 8000, 28000},
		{28000, 384, 28384}, {28384, 384, 28384 + 7680}, {0, 1000, 1000}} {
		g := s.c.Ask(s.now, r, c.offset, c.n, 8000)
		if g.End != c.want || g.Ahead() != (g.End > c.offset+int64(c.n)) {
			t.Errorf("%d bytes at %d: it reads up to %d, want %d", c.n, c.offset, g.End, c.want)
		}
		s.c.Lost(g)
	}
}

// Large reads of a file that one reads alone are nobody else's affair, until another comes, and a while after the last.
func TestLargeReadsOfOneReader(t *testing.T) {
	s := newScript(t)
	a, b := s.open(), s.open()
	read := func(r Reader, n int, want bool) {
		t.Helper()
		if got := s.c.Pass(s.now, r, 0, n, 8000); got != want {
			t.Errorf("a read of %d bytes by reader %d at %v passes %v", n, r.Opened, s.now.Unix(), got)
		}
		if !want {
			s.c.Lost(s.c.Ask(s.now, r, 0, n, 8000))
		}
	}
	read(a, 8000, false) // the first
	read(a, 8000, true)
	read(a, 4000, false) // small
	read(a, 4001, true)
	read(b, 8000, false)
	read(b, 8000, false)
	read(a, 8000, false)
	s.now = s.now.Add(KeepFor + 1)
	read(a, 8000, true)
	read(b, 8000, false)
	if n := s.c.Counts(); n.Misses != 9 || n.Hits != 0 {
		t.Errorf("%+v", n)
	}
}

func (s *script) joins(r Reader) bool { return s.c.Join(s.now, r, 100, 500) != nil }

// Whom an answer serves: who opened before it was asked for, until the file changes here or a second has gone.
func TestWhomAnAnswerServes(t *testing.T) {
	for name, want := range map[string]func(s *script, a, b Reader) bool{
		"one who has opened": func(s *script, a, b Reader) bool {
			s.read("1", a)
			return s.found(b) == 0
		},
		"not who opened later": func(s *script, a, b Reader) bool {
			s.read("1", a)
			return s.found(s.open()) == -1
		},
		"under way, who has opened": func(s *script, a, b Reader) bool {
			s.ask("1", a)
			s.send("1")
			return s.joins(b)
		},
		"under way, not who opened later": func(s *script, a, b Reader) bool {
			s.ask("1", a)
			s.send("1")
			return !s.joins(s.open())
		},
		"not sent yet, who opened later": func(s *script, a, b Reader) bool {
			s.ask("1", a)
			return s.joins(s.open())
		},
		"not another place": func(s *script, a, b Reader) bool {
			s.read("1", a)
			b.Place = 2
			s.ask("2", a)
			return s.found(b) == -1 && !s.joins(b)
		},
		"not behind a change": func(s *script, a, b Reader) bool {
			s.read("1", a)
			s.c.Change(path, true)
			during := s.found(b)
			s.c.Changed(s.now, path, true, true)
			return during == -1 && s.found(b) == -1
		},
		"not behind a change of who knows what": func(s *script, a, b Reader) bool {
			s.read("1", a)
			s.c.Change(0, false)
			s.c.Changed(s.now, 0, false, true)
			return s.found(b) == -1
		},
		"sent before a change that comes first": func(s *script, a, b Reader) bool {
			s.ask("1", a)
			s.send("1")
			s.serve("1")
			s.c.Change(path, true)
			joins := s.joins(b)
			s.c.Changed(s.now, path, true, true)
			joins = joins || s.joins(b)
			s.keep("1")
			return !joins && s.found(b) == -1
		},
		"sent while a change is under way": func(s *script, a, b Reader) bool {
			s.c.Change(path, true)
			s.read("1", a)
			during := s.found(b)
			s.ask("2", a)
			s.send("2")
			s.serve("2")
			s.c.Changed(s.now, path, true, true)
			joins := s.joins(b)
			s.keep("2")
			return during == -1 && !joins && s.found(b) == -1
		},
		"sent while who knows what changes": func(s *script, a, b Reader) bool {
			s.c.Change(0, false)
			s.read("1", a)
			s.c.Changed(s.now, 0, false, true)
			return s.found(b) == -1
		},
		"sent behind a change": func(s *script, a, b Reader) bool {
			s.c.Change(path, true)
			s.ask("1", a)
			s.version++
			s.c.Changed(s.now, path, true, true)
			joins := s.joins(b)
			s.send("1")
			s.serve("1")
			s.keep("1")
			return joins && s.found(b) == 1
		},
		"for as long as one that was given up may still be made": func(s *script, a, b Reader) bool {
			s.c.Change(path, true)
			s.c.Changed(s.now, path, true, false)
			s.read("1", a)
			s.ask("2", a)
			s.send("2")
			during := s.found(b) == -1 && !s.joins(b)
			s.now = s.now.Add(lateFor - KeepFor/2)
			s.ask("3", a)
			s.send("3")
			s.serve("3")
			s.now = s.now.Add(KeepFor)
			s.keep("3")
			during = during && s.found(b) == -1
			for _, r := range []Reader{a, b, a} {
				s.read("4", r)
			}
			return during && s.found(b) == 0
		},
		"another file's change": func(s *script, a, b Reader) bool {
			s.read("1", a)
			s.c.Change(path+1, true)
			s.c.Changed(s.now, path+1, true, true)
			return s.found(b) == 0
		},
		"the newer of two": func(s *script, a, b Reader) bool {
			s.ask("1", a)
			s.send("1")
			s.serve("1")
			s.version++
			s.read("2", b)
			s.keep("1")
			return s.found(b) == 1
		},
		"for a second": func(s *script, a, b Reader) bool {
			s.read("1", a)
			s.now = s.now.Add(KeepFor)
			before := s.found(b)
			s.now = s.now.Add(1)
			return before == 0 && s.found(b) == -1
		},
		"for a second under way": func(s *script, a, b Reader) bool {
			s.ask("1", a)
			s.send("1")
			s.now = s.now.Add(KeepFor + 1)
			joins := s.joins(b)
			s.serve("1")
			s.keep("1")
			return !joins && s.found(b) == -1
		},
		"while it is seen alike": func(s *script, a, b Reader) bool {
			s.c.Seen(path, "x")
			s.read("1", a)
			s.c.Seen(path, "x")
			return s.found(b) == 0
		},
		"not once it was seen otherwise": func(s *script, a, b Reader) bool {
			s.c.Seen(path, "x")
			s.ask("1", a)
			s.read("2", a)
			s.c.Seen(path, "y")
			return s.found(b) == -1
		},
		"nobody where it was given up": func(s *script, a, b Reader) bool {
			s.ask("1", a)
			s.send("1")
			s.serve("1")
			s.c.Lost(s.begun["1"])
			joins := s.joins(b)
			s.keep("1")
			return !joins && s.found(b) == -1
		},
	} {
		s := newScript(t)
		a, b := s.open(), s.open()
		for _, r := range []Reader{a, b, a} { // they take turns
			s.read("before", r)
		}
		s.c.Seen(path, "x")
		if s.found(a) != -1 {
			t.Fatal("something is kept at the beginning")
		}
		if !want(s, a, b) {
			t.Errorf("%s: not so", name)
		}
		s.c.Sweep(s.now.Add(3 * KeepFor))
		if s.c.Bytes() != 0 {
			t.Errorf("%s: %d bytes are left", name, s.c.Bytes())
		}
	}
}
