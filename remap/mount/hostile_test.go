package mount

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// hostile is a forwarder that answers with what its tamper makes of a true one's replies.
type hostile struct {
	Target
	behind string // the true one's address
	on     atomic.Bool
	tamper func(reply []byte) []byte // one message, with its size; nil: the connection ends
	loses  func(request []byte) bool // and it ends before a request arrives; nil: never
	away   atomic.Bool               // it takes no connections
}

// startHostile leads to a true forwarder, and passes its answers on as they are until it is switched on.
func startHostile(t *testing.T, behind string, tamper func(reply []byte) []byte) *hostile {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	h := &hostile{Target: Target{"hostile", l.Addr().String()}, behind: behind, tamper: tamper}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			if h.away.Load() {
				near.Close()
				continue
			}
			far, err := net.Dial("tcp4", behind)
			if err != nil {
				near.Close()
				continue
			}
			go func() {
				h.pass(far, near, func(r []byte) []byte {
					if h.loses != nil && h.loses(r) {
						return nil
					}
					return r
				})
				far.Close()
			}()
			go func() { h.pass(near, far, h.tamper); near.Close(); far.Close() }()
		}
	}()
	return h
}

// pass passes messages on, as they are or what tamper makes of them.
func (h *hostile) pass(to io.Writer, from io.Reader, tamper func([]byte) []byte) {
	in := bufio.NewReader(from)
	for {
		head, err := in.Peek(4)
		if err != nil {
			return
		}
		message := make([]byte, binary.LittleEndian.Uint32(head))
		if _, err := io.ReadFull(in, message); err != nil {
			return
		}
		if h.on.Load() {
			if message = tamper(message); message == nil {
				return
			}
		}
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}

// mountHostile mounts a directory with one file through h.
func mountHostile(t *testing.T, tamper func([]byte) []byte) (h *hostile, m *Mount, content []byte) {
	t.Helper()
	needFUSE(t)
	dir := t.TempDir()
	content = bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	for _, name := range []string{"a", "d/b"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	h = startHostile(t, startDiod(t, dir, "true").Addr, tamper)
	m, err := Start(t.Context(), Options{MountPoint: t.TempDir(), Target: h.Target, Tree: dir, ReadAhead: true,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Unmount(true) })
	return h, m, content
}

// TestHostileForwarder damages replies in every way that a connection can carry. What programs get meanwhile may be
// wrong or an error; the mount lives, keeps no memory, and serves again when the forwarder answers truly.
func TestHostileForwarder(t *testing.T) {
	var mu sync.Mutex // guards everything of the tampering; a lost connection may still be answered
	rng := rand.New(rand.NewPCG(7, 16))
	damaged, last := 0, []byte(nil)
	h, m, content := mountHostile(t, func(r []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		r, before := bytes.Clone(r), last
		last = bytes.Clone(r)
		// What ends a connection has its turn seldom: the mount waits up to 2 s before the next one.
		kind := rng.IntN(400)
		if kind >= 60 {
			return r
		}
		damaged++
		sized := func(b []byte) []byte { binary.LittleEndian.PutUint32(b, uint32(len(b))); return b }
		switch body := r[7:]; kind {
		default: // any bytes of the body
			for range 1 + len(body)/8 {
				if len(body) > 0 {
					body[rng.IntN(len(body))] = byte(rng.Uint32())
				}
			}
		case 1: // shorter
			return sized(r[:7+rng.IntN(len(body)+1)])
		case 2: // longer
			return sized(append(r, bytes.Repeat([]byte{0xff}, 1+rng.IntN(4000))...))
		case 3: // a size without limit
			binary.LittleEndian.PutUint32(r, rng.Uint32())
		case 4: // another kind
			r[4] = byte(rng.Uint32())
		case 5: // another request's
			binary.LittleEndian.PutUint16(r[5:], uint16(rng.UintN(64)))
		case 6: // twice
			return append(r, r...)
		case 7: // the answer before under this one's tag
			if before != nil {
				binary.LittleEndian.PutUint16(before[5:], binary.LittleEndian.Uint16(r[5:]))
				return before
			}
		case 8:
			return nil
		case 9: // counts and sizes as large as they can be
			for i := 0; i < len(body) && i < 8; i++ {
				body[i] = 0xff
			}
		}
		return r
	})
	point := m.opt.MountPoint
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	h.on.Store(true)
	for range 15 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		program := exec.CommandContext(ctx, "timeout", "-s", "KILL", "1", "env", "-C", point, "sh", "-c",
			`ls -lR . & stat a d/b & readlink l & cat a d/b & head -c 300000 /dev/zero >"new$$"; rm -f new*; wait`)
		program.WaitDelay = time.Second
		_ = program.Run() // what it makes of the answers is its own
		cancel()
	}
	h.on.Store(false)
	mu.Lock()
	if damaged < 10 {
		t.Errorf("%d replies were damaged", damaged)
	}
	t.Logf("%d replies were damaged", damaged)
	mu.Unlock()
	if grew := heap(); grew > before+64<<20 {
		t.Errorf("the mount's memory grew from %d to %d MB", before>>20, grew>>20)
	}
	// A reply that never ends is a forwarder that hangs, for which operations wait until their node is moved.
	within(t, "the move to a true forwarder", func() {
		if _, err := m.Remap(t.Context(), Target{"true", h.behind}, true); err != nil {
			t.Error(err)
		}
	})
	point = filepath.Join(point, "d/b")
	for range 100 {
		// Another process asks: one that waits for its own mount could not end.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		program := exec.CommandContext(ctx, "cat", point)
		program.WaitDelay = time.Second
		got, err := program.Output()
		cancel()
		if bytes.Equal(got, content) {
			return
		}
		t.Logf("%d bytes, %v", len(got), err)
		time.Sleep(100 * time.Millisecond) // attributes of before are the kernel's for a second
	}
	t.Error("no true answer came")
}

// TestDirectoryWithoutEnd lists one whose forwarder answers each request with its beginning.
func TestDirectoryWithoutEnd(t *testing.T) {
	const rreaddir = 41
	var first []byte
	h, m, _ := mountHostile(t, func(r []byte) []byte {
		if r[4] != rreaddir {
			return r
		}
		if len(first) == 0 {
			first = bytes.Clone(r)
		}
		again := bytes.Clone(first)
		copy(again[5:7], r[5:7])
		return again
	})
	h.on.Store(true)
	within(t, "the end of a listing", func() {
		_, err := os.ReadDir(m.opt.MountPoint)
		if err == nil || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("a directory without an end: %v", err)
		}
	})
}

// Where the answer to Tgetattr has the file's number, and its mode.
const (
	rgetattr     = 25
	attrNumberAt = 20
	attrModeAt   = 28
)

// TestImpossibleAnswers gets attributes that no file can have, or that lead in a circle: they are errors of who asked.
func TestImpossibleAnswers(t *testing.T) {
	const tmkdir, rwalk = 72, 111
	le := binary.LittleEndian
	var made atomic.Bool
	for name, c := range map[string]struct {
		tamper func(r []byte)
		do     func(at string) error
		want   error
	}{
		"a number that no file has": {func(r []byte) {
			if r[4] == rgetattr {
				le.PutUint64(r[attrNumberAt:], 1<<64-1)
			}
		}, func(at string) error { _, err := os.Stat(at + "/d/b"); return err }, syscall.EIO},
		"a new directory that is a file": {func(r []byte) {
			if r[4] == rgetattr && made.Load() {
				le.PutUint32(r[attrModeAt:], syscall.S_IFREG|0o644)
			}
		}, func(at string) error { return os.Mkdir(at+"/new", 0o755) }, syscall.EEXIST}, // the kernel looks again
		"a directory inside itself": {func(r []byte) {
			switch {
			case r[4] == rgetattr && le.Uint32(r[attrModeAt:])&syscall.S_IFMT == syscall.S_IFDIR:
				le.PutUint64(r[attrNumberAt:], 4242)
			case r[4] == rwalk && len(r) > 9 && r[len(r)-13]&0x80 != 0:
				le.PutUint64(r[len(r)-8:], 4242)
			}
		}, func(at string) error { _, err := os.Stat(at + "/d/e"); return err }, syscall.ELOOP},
	} {
		t.Run(name, func(t *testing.T) {
			made.Store(false)
			h, m, _ := mountHostile(t, func(r []byte) []byte { c.tamper(r); return r })
			h.loses = func(r []byte) bool {
				if r[4] == tmkdir {
					made.Store(true)
				}
				return false
			}
			if err := os.Mkdir(filepath.Join(m.opt.Tree, "d/e"), 0o755); err != nil {
				t.Fatal(err)
			}
			h.on.Store(true)
			within(t, "the answer", func() {
				if err := c.do(m.opt.MountPoint); !errors.Is(err, c.want) {
					t.Errorf("it is answered with %v, want %v", err, c.want)
				}
			})
			h.on.Store(false)
			within(t, "a true answer", func() {
				run(t, m.opt.MountPoint, "sh", "-ec", "stat d d/b >/dev/null; mkdir d/n; test -d d/n")
			})
		})
	}
}
