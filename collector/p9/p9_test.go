package p9

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startDiod runs a real diod exporting a fresh directory and its control tree.
func startDiod(t testing.TB) (addr, dir string, cmd *exec.Cmd) {
	t.Helper()
	bin, err := exec.LookPath("diod")
	if err != nil {
		if bin = "/usr/sbin/diod"; !exists(bin) {
			t.Skip("no diod on this machine (Debian package diod)")
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	dir = t.TempDir()
	args := []string{"--ignore-signal=PIPE", bin, "-f", "-c", "/dev/null", "-n", "-N", "--nwthreads", "8", "-l", addr,
		"-e", dir, "-e", "ctl", "-L", filepath.Join(t.TempDir(), "log")}
	if os.Getuid() != 0 {
		args = append(args, "-u", fmt.Sprint(os.Getuid()))
	}
	cmd = exec.Command("env", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGCONT)
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 200 {
		if conn, err := net.Dial("tcp4", addr); err == nil {
			conn.Close()
			return addr, dir, cmd
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("diod does not listen on %s", addr)
	return
}

func exists(p string) bool { _, err := os.Stat(p); return err == nil }

func attach(t testing.TB, addr, tree string) *Fid {
	t.Helper()
	c, err := Dial(t.Context(), addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	f, err := c.Attach(t.Context(), tree, uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// hang stops the server and returns when every thread of it stands still.
func hang(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Process.Signal(syscall.SIGSTOP)
	for range 500 {
		still := true
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", cmd.Process.Pid))
		for _, p := range tasks {
			b, err := os.ReadFile(p)
			still = still && (err != nil || bytes.Contains(b, []byte(") T ")))
		}
		if still && len(tasks) > 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatal("the server does not stop")
}

func TestControlTree(t *testing.T) {
	addr, dir, _ := startDiod(t)
	ctl := attach(t, addr, "ctl")
	anchor := attach(t, addr, dir)
	b, err := ctl.ReadFile(t.Context(), nil, 1<<20, "tpools")
	if err != nil || !bytes.Contains(b, []byte(dir)) {
		t.Errorf("tpools: %v\n%s", err, b)
	}
	if _, err := ctl.ReadFile(t.Context(), nil, 10, "tpools"); err == nil {
		t.Error("a file above the limit was read")
	}
	if d, err := anchor.TimeGetAttr(t.Context()); err != nil || d <= 0 {
		t.Errorf("getattr took %v: %v", d, err)
	}
}

func TestFileLife(t *testing.T) {
	ctx := t.Context()
	addr, dir, _ := startDiod(t)
	root := attach(t, addr, dir)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.Mkdir(ctx, "d", 0o755, uint32(os.Getgid())))
	f, err := root.Walk(ctx, "d")
	must(err)
	must(f.Create(ctx, "a", syscall.O_RDWR, 0o644, uint32(os.Getgid())))
	data := make([]byte, 3<<20+17)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	if n, err := f.WriteAt(ctx, data, 5); n != len(data) || err != nil {
		t.Fatalf("wrote %d: %v", n, err)
	}
	must(f.Fsync(ctx, 0))
	got := make([]byte, len(data)+100)
	if n, err := f.ReadAt(ctx, got, 5); n != len(data) || err != io.EOF || !bytes.Equal(got[:n], data) {
		t.Fatalf("read %d of %d: %v", n, len(data), err)
	}
	must(f.SetAttr(ctx, SetAttr{Valid: SetSize | SetMode, Size: 7, Mode: 0o600}))
	if a, err := f.GetAttr(ctx); err != nil || a.Size != 7 || a.Mode&0o777 != 0o600 {
		t.Errorf("attributes %+v, %v", a, err)
	}
	d, err := root.Walk(ctx, "d")
	must(err)
	must(d.Rename(ctx, "a", root, "b"))
	must(f.Clunk(ctx))
	if err := d.Symlink(ctx, "s", "../b", 0); err != nil {
		t.Fatal(err)
	}
	s, err := root.Walk(ctx, "d", "s")
	must(err)
	if target, err := s.Readlink(ctx); target != "../b" || err != nil {
		t.Errorf("link to %q: %v", target, err)
	}
	if err := root.Unlink(ctx, "d", false); !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.EPERM) {
		t.Errorf("unlinking a directory: %v", err)
	}
	must(root.Unlink(ctx, "b", false))
	if _, err := root.Walk(ctx, "b"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("walk to a removed file: %v", err)
	}
	if _, err := root.Walk(ctx, "d", "none", "deeper"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("partial walk: %v", err)
	}
	if st, err := root.StatFS(ctx); err != nil || st.BlockSize == 0 || st.Blocks == 0 {
		t.Errorf("statfs %+v, %v", st, err)
	}
}

func TestReadDirInPieces(t *testing.T) {
	addr, dir, _ := startDiod(t)
	const files = 3000
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-with-a-long-name-%06d", i)), nil,
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	root := attach(t, addr, dir)
	d, err := root.Walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Open(t.Context(), syscall.O_RDONLY); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for at := uint64(0); ; {
		list, err := d.ReadDir(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			seen[e.Name] = true
		}
		at = list[len(list)-1].Offset
	}
	if len(seen) != files+2 {
		t.Errorf("%d names, want %d with . and ..", len(seen), files+2)
	}
}

// TestFidsDoNotLeak walks to files that do not exist: diod keeps the new fid of a partial walk.
func TestFidsDoNotLeak(t *testing.T) {
	addr, dir, _ := startDiod(t)
	root := attach(t, addr, dir)
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := root.Walk(t.Context(), "d", "none"); !errors.Is(err, syscall.ENOENT) {
			t.Fatal(err)
		}
	}
	f, err := root.Walk(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if f.id > 20 { // some are still being given back
		t.Errorf("fid number %d after 50 failed walks: fids leak", f.id)
	}
}

func TestKilledServer(t *testing.T) {
	addr, dir, cmd := startDiod(t)
	root := attach(t, addr, dir)
	hang(t, cmd)
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() { _, errs[i] = root.GetAttr(t.Context()) })
	}
	time.Sleep(20 * time.Millisecond)
	cmd.Process.Kill()
	wg.Wait()
	for _, err := range errs {
		var gone *TransportError
		if !errors.As(err, &gone) {
			t.Errorf("a request to a killed server gave %v", err)
		}
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			t.Errorf("a lost connection looks like the server's answer: %v", err)
		}
	}
	if _, err := root.GetAttr(t.Context()); err == nil {
		t.Error("a request on a lost connection succeeded")
	}
}

func TestHungServerCancel(t *testing.T) {
	addr, dir, cmd := startDiod(t)
	root := attach(t, addr, dir)
	hang(t, cmd)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := root.GetAttr(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a hung server gave %v", err)
	}
	cmd.Process.Signal(syscall.SIGCONT)
	for range 100 {
		if _, err := root.GetAttr(t.Context()); err != nil {
			t.Fatalf("after the server woke: %v", err)
		}
	}
}

// within fails the test when f does not return: a hang is what is tested for, not speed.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: still waiting after 20 s", what)
	}
}

// TestHungServerTakesNoMore fills the connection to a stopped server: callers still leave when their
// contexts end, and the connection is whole when the server wakes.
func TestHungServerTakesNoMore(t *testing.T) {
	addr, dir, cmd := startDiod(t)
	root := attach(t, addr, dir)
	f, err := root.Walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Create(t.Context(), "x", syscall.O_RDWR, 0o644, uint32(os.Getgid())); err != nil {
		t.Fatal(err)
	}
	hang(t, cmd)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	within(t, "writes to a stopped server", func() {
		var wg sync.WaitGroup
		for i := range int64(24) {
			wg.Go(func() {
				mine := bytes.Clone(data)
				if _, err := f.WriteAt(ctx, mine, i*int64(len(data))); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("write %d: %v", i, err)
				}
				for j := range mine { // the buffer is the caller's again: nothing of this may arrive
					mine[j] = '!'
				}
			})
		}
		wg.Wait()
	})
	cmd.Process.Signal(syscall.SIGCONT)
	got := make([]byte, 24*len(data))
	n, err := f.ReadAt(t.Context(), got, 0)
	if err != nil && err != io.EOF {
		t.Fatalf("after the server woke: %v", err)
	}
	for i, b := range got[:n] { // a write that was given up arrives whole or not at all
		if b != data[i%len(data)] && b != 0 {
			t.Fatalf("at %d: %q", i, b)
		}
	}
}

// TestReadFileHonoursItsDeadline reads from a server that stops answering in the middle.
func TestReadFileHonoursItsDeadline(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		for _, answer := range []string{"\x65\xff\xff\x00\x20\x00\x00\x08\x009P2000.L",
			"\x69TT" + strings.Repeat("\x00", 13), "\x6fTT\x01\x00" + strings.Repeat("\x00", 13)} {
			ask := make([]byte, 4)
			io.ReadFull(far, ask)
			ask = append(ask, make([]byte, ask[0]-4)...)
			io.ReadFull(far, ask[4:])
			reply := append([]byte{byte(len(answer) + 4), 0, 0, 0}, answer...)
			copy(reply[5:7], ask[5:7])
			far.Write(reply)
		}
		io.Copy(io.Discard, far)
	}()
	within(t, "a server that answers only the walk", func() {
		c, err := NewClient(t.Context(), near, "pipe", 8192)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		root, err := c.Attach(t.Context(), "ctl", 0)
		if err != nil {
			t.Error(err)
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := root.ReadFile(ctx, nil, 100, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
	})
}

// TestCancelledWalksGiveTheirFidsBack asks the server itself how many fids it holds.
func TestCancelledWalksGiveTheirFidsBack(t *testing.T) {
	addr, dir, cmd := startDiod(t)
	root, ctl := attach(t, addr, dir), attach(t, addr, "ctl")
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	hang(t, cmd)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := root.Walk(ctx, "d"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("walk: %v", err)
		}
		cancel()
	}
	cmd.Process.Signal(syscall.SIGCONT)
	var pools []byte
	for range 200 {
		var err error
		if pools, err = ctl.ReadFile(t.Context(), nil, 1<<20, "tpools"); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(pools) {
			if f := bytes.Fields(line); len(f) > 2 && string(f[0]) == dir && string(f[2]) == "1" {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the server holds more than the root's fid of %s:\n%s", dir, pools)
}

func TestConcurrentFiles(t *testing.T) {
	addr, dir, _ := startDiod(t)
	root := attach(t, addr, dir)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			f, err := root.Walk(t.Context())
			if err == nil {
				err = f.Create(t.Context(), fmt.Sprint(i), syscall.O_RDWR, 0o644, uint32(os.Getgid()))
			}
			if err != nil {
				t.Error(err)
				return
			}
			want := bytes.Repeat([]byte{byte(i)}, 200_000)
			got := make([]byte, len(want))
			if _, err := f.WriteAt(t.Context(), want, 0); err != nil {
				t.Error(err)
			}
			if _, err := f.ReadAt(t.Context(), got, 0); err != nil || !bytes.Equal(got, want) {
				t.Errorf("file %d: wrong content, %v", i, err)
			}
			f.Clunk(t.Context())
		})
	}
	wg.Wait()
}

// FuzzServer plays a server that answers anything: no panic, no hang, no unbounded memory.
func FuzzServer(f *testing.F) {
	f.Add(
		[]byte(
			"\x15\x00\x00\x00\x65\xff\xff\x00\x20\x00\x00\x08\x009P2000.L\x0b\x00\x00\x00\x07\x00\x00\x02\x00\x00\x00"))
	f.Add(
		[]byte(
			"\x15\x00\x00\x00e\xff\xff\x00 \x00\x00\b\x009P2000.L\x14\x00\x00\x00i\x00\x00\x80\x00\x00\x00\x00" +
				"\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff\x65\xff\xff"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		near, far := net.Pipe()
		go func() {
			go io.Copy(io.Discard, far)
			far.Write(answer)
			far.Close()
		}()
		ctx := context.Background()
		c, err := NewClient(ctx, near, "fuzz", 8192)
		if err != nil {
			near.Close()
			return
		}
		defer c.Close()
		root, err := c.Attach(ctx, "x", 0)
		if err != nil {
			return
		}
		root.ReadFile(ctx, nil, 1000, "a")
		root.ReadDir(ctx, 0)
		root.GetAttr(ctx)
	})
}

func FuzzDirents(f *testing.F) {
	f.Add([]byte("\x80\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x04\x01\x00a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := dirents(b)
		if err == nil && len(list)*24 > len(b) {
			t.Errorf("%d entries out of %d bytes", len(list), len(b))
		}
	})
}

func BenchmarkWrite(b *testing.B) { benchmarkIO(b, (*Fid).WriteAt) }
func BenchmarkRead(b *testing.B)  { benchmarkIO(b, (*Fid).ReadAt) }

func benchmarkIO(b *testing.B, op func(*Fid, context.Context, []byte, int64) (int, error)) {
	addr, dir, _ := startDiod(b)
	f := attach(b, addr, dir)
	if err := f.Create(b.Context(), "x", syscall.O_RDWR, 0o644, 0); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	f.WriteAt(b.Context(), buf, 0)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := op(f, b.Context(), buf, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetAttr(b *testing.B) {
	addr, dir, _ := startDiod(b)
	f := attach(b, addr, dir)
	for b.Loop() {
		if _, err := f.GetAttr(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
