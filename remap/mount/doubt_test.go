package mount

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestALostAnswerRepeatsNoAppend cuts the connection before the answer to an append, of one request and of several: the
// file has each byte once.
func TestALostAnswerRepeatsNoAppend(t *testing.T) {
	const written = 119 // Rwrite
	for name, c := range map[string]struct {
		flags, size, lost int // the answer to which request of a write is lost
	}{
		"a line": {os.O_WRONLY, 10, 1}, "a line of a file that is read, too": {os.O_RDWR, 10, 1},
		"the second of three requests": {os.O_WRONLY, 2500 << 10, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var answers atomic.Int64
			h, m, want := mountHostile(t, func(r []byte) []byte {
				if r[4] == written && answers.Add(1) == int64(c.lost) {
					return nil
				}
				return r
			})
			f, err := os.OpenFile(filepath.Join(m.opt.MountPoint, "a"), os.O_APPEND|c.flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			h.on.Store(true)
			for i := range 3 {
				answers.Store(0)
				more := bytes.Repeat([]byte{'0' + byte(i)}, c.size)
				if _, err := f.Write(more); err != nil {
					t.Fatal(err)
				}
				if answers.Load() < int64(c.lost) {
					t.Fatalf("%d answers: none was lost", answers.Load())
				}
				want = append(want, more...)
			}
			got, err := os.ReadFile(f.Name())
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("the file has %d bytes, want %d: %v", len(got), len(want), err)
			}
		})
	}
}

// TestWhatOthersAppendedIsNotTakenForOnesOwn: another node appends the same line, alone or with more, before the
// request of this one or after that was lost on its way: the file has both lines.
func TestWhatOthersAppendedIsNotTakenForOnesOwn(t *testing.T) {
	const write = 118 // Twrite
	for name, c := range map[string]struct {
		others string
		when   time.Duration // of now
	}{
		"and more":                     {"tick\ntock\n", 0},
		"before":                       {"tick\n", -time.Minute},
		"a moment before":              {"tick\n", -100 * time.Millisecond},
		"when this node had lost hope": {"tick\n", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			h, m, want := mountHostile(t, func(r []byte) []byte { return r })
			other, err := os.OpenFile(filepath.Join(m.opt.Tree, "a"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			var requests atomic.Int64
			h.loses = func(r []byte) bool {
				if r[4] != write || requests.Add(1) > 1 {
					return false
				}
				if _, err := other.WriteString(c.others); err != nil {
					t.Error(err)
				}
				if at := time.Now().Add(c.when); c.when != 0 {
					if err := os.Chtimes(other.Name(), time.Time{}, at); err != nil {
						t.Error(err)
					}
				}
				return true
			}
			f, err := os.OpenFile(filepath.Join(m.opt.MountPoint, "a"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			h.on.Store(true)
			if _, err := f.WriteString("tick\n"); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(other.Name())
			want = append(want, c.others+"tick\n"...)
			if n := requests.Load(); err != nil || !bytes.Equal(got, want) || n != 2 {
				t.Errorf("the file has %d bytes, want %d, after %d requests: %v", len(got), len(want), n, err)
			}
		})
	}
}

// TestAppendsGoOneByOne appends at a server that takes less at once than its messages could carry.
func TestAppendsGoOneByOne(t *testing.T) {
	const rlopen, twrite, rwrite = 13, 118, 119
	var underWay, most atomic.Int64
	h, m, want := mountHostile(t, func(r []byte) []byte {
		switch r[4] {
		case rlopen:
			binary.LittleEndian.PutUint32(r[len(r)-4:], 4096)
		case rwrite:
			underWay.Add(-1)
		}
		return r
	})
	h.loses = func(r []byte) bool {
		if r[4] == twrite {
			most.Store(max(most.Load(), underWay.Add(1)))
		}
		return false
	}
	h.on.Store(true)
	f, err := os.OpenFile(filepath.Join(m.opt.MountPoint, "a"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	more := bytes.Repeat([]byte("another one\n"), 5000)
	if _, err := f.Write(more); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(m.opt.Tree, "a"))
	if err != nil || !bytes.Equal(got, append(want, more...)) || most.Load() != 1 {
		t.Errorf("%d bytes after %d pieces at once: %v", len(got), most.Load(), err)
	}
}

// TestWhatIsThereAlready loses the request for a new name, or its answer, and lets another node make the same name
// meanwhile: it is there already, unless it was this node that made it.
func TestWhatIsThereAlready(t *testing.T) {
	const tlcreate, tsymlink, tmknod, tlink, tmkdir = 14, 16, 18, 70, 72
	for name, c := range map[string]struct {
		request byte
		do      func(dir string) error
	}{
		"create": {tlcreate, func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, "new"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			f.Close()
			return err
		}},
		"mkdir":   {tmkdir, func(dir string) error { return os.Mkdir(filepath.Join(dir, "new"), 0o755) }},
		"symlink": {tsymlink, func(dir string) error { return os.Symlink("a", filepath.Join(dir, "new")) }},
		"mknod":   {tmknod, func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "new"), 0o644) }},
		"link": {tlink, func(dir string) error {
			return os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "new"))
		}},
	} {
		for _, own := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				var lost atomic.Bool
				loses := func(r []byte, kind byte) bool { return r[4] == kind && !lost.Swap(true) }
				h, m, _ := mountHostile(t, func(r []byte) []byte {
					if own && loses(r, c.request+1) {
						return nil
					}
					return r
				})
				h.loses = func(r []byte) bool {
					if own || !loses(r, c.request) {
						return false
					}
					h.away.Store(true)
					return true
				}
				h.on.Store(true)
				done := make(chan error, 1)
				go func() { done <- c.do(m.opt.MountPoint) }()
				within(t, "the loss", func() {
					for !lost.Load() || !own && m.Report().Connected {
						time.Sleep(time.Millisecond)
					}
				})
				if !own {
					for since := time.Now(); time.Since(since) < 3*clockStep; { // of the times that files have
						time.Sleep(time.Millisecond)
					}
					if name == "link" { // not of the same file
						os.WriteFile(filepath.Join(m.opt.Tree, "new"), nil, 0o644)
					} else if err := c.do(m.opt.Tree); err != nil {
						t.Error(err)
					}
					h.away.Store(false)
				}
				within(t, "the operation", func() {
					if err := <-done; own && err != nil || !own && !errors.Is(err, syscall.EEXIST) {
						t.Errorf("made by this node %v: %v", own, err)
					}
				})
			})
		}
	}
}

// TestWhatIsGoneAlready loses the answer to a removal, and lets another node make the name anew: that stays.
func TestWhatIsGoneAlready(t *testing.T) {
	const rremove, runlinkat = 123, 77
	var lost atomic.Bool
	var m *Mount
	h, mounted, content := mountHostile(t, func(r []byte) []byte {
		if (r[4] == rremove || r[4] == runlinkat) && !lost.Swap(true) {
			if err := os.Rename(filepath.Join(m.opt.Tree, "d/b"), filepath.Join(m.opt.Tree, "a")); err != nil {
				t.Error(err)
			}
			return nil
		}
		return r
	})
	m = mounted
	h.on.Store(true)
	if err := os.Remove(filepath.Join(m.opt.MountPoint, "a")); err != nil || !lost.Load() {
		t.Errorf("the answer is lost %v: %v", lost.Load(), err)
	}
	got, err := os.ReadFile(filepath.Join(m.opt.Tree, "a"))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("the other node's file has %d bytes: %v", len(got), err)
	}
}
