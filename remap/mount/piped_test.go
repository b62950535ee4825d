package mount

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestLargeReads reads with more programs than there are pipes, at any place and size.
func TestLargeReads(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	want := append(randomFile(t, dir, 30), "the end"...)
	if err := os.WriteFile(filepath.Join(dir, "f"), want, 0o644); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range uint64(2 * maxPipes) {
		f := openFile(t, m, os.O_RDWR) // not read ahead
		random := rand.New(rand.NewPCG(1, i))
		wg.Go(func() {
			for range 20 {
				off, size := random.IntN(len(want)), pipeFrom/2+random.IntN(3<<20)
				got := make([]byte, size)
				n, err := f.ReadAt(got, int64(off))
				if err != nil && (err != io.EOF || off+size <= len(want)) ||
					!bytes.Equal(got[:n], want[off:min(off+size, len(want))]) {
					t.Errorf("%d bytes at %d: %d bytes, not what is in the file: %v", size, off, n, err)
				}
			}
		})
	}
	wg.Wait()
	p := &m.pipes
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		t.Error("nothing was read through a pipe")
	}
}

// TestLargeReadsThroughForcedRemap has reads in flight at a forwarder that hangs: another answers them.
func TestLargeReadsThroughForcedRemap(t *testing.T) {
	m, dir, fwd := startMount(t, 2)
	want := randomFile(t, dir, 30)
	f := openFile(t, m, os.O_RDWR)
	for i := range 6 {
		from, to := &fwd[i%2], &fwd[(i+1)%2]
		from.hang(t)
		got, done := make([]byte, len(want)), make(chan struct{})
		go func() {
			defer close(done)
			if n, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes, or others than are there: %v", n, len(want), err)
			}
		}()
		awaitWaiting(t, m)
		if _, err := m.Remap(t.Context(), to.Target, true); err != nil {
			t.Fatal(err)
		}
		within(t, "a read off a hung forwarder", func() { <-done })
		from.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// TestLargeReadFails: the caller's error is the read's own, here that of a file that a remap has lost.
func TestLargeReadFails(t *testing.T) {
	m, dir, fwd := startMount(t, 2)
	randomFile(t, dir, 10)
	f := openFile(t, m, os.O_RDWR)
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if r, err := m.Remap(t.Context(), fwd[1].Target, false); err != nil || r.LostFiles != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if n, err := f.ReadAt(make([]byte, 1<<20), 0); n != 0 || !errors.Is(err, syscall.ESTALE) {
		t.Errorf("reading a lost file: %d bytes, %v", n, err)
	}
}

// TestLargeReadAhead: a large block is read ahead into a pipe, the short one at the end into memory, and
// the pipes come back.
func TestLargeReadAhead(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	const size = 1 << 20
	want := append(randomFile(t, dir, 3*size/aheadBlock), "the end"...)
	if err := os.WriteFile(filepath.Join(dir, "f"), want, 0o644); err != nil {
		t.Fatal(err)
	}
	f := openFile(t, m, os.O_RDONLY)
	r := onlyReader(t, m)
	for i, piped := range []bool{2: true, 3: false} {
		if i >= aheadStreak {
			b := awaitBlock(t, r, int64(i*size))
			if <-b.ready; (b.pipe != nil) != piped || b.err != nil {
				t.Errorf("before read %d: in a pipe %t, %v", i, b.pipe != nil, b.err)
			}
		}
		got, rest := make([]byte, size), want[i*size:]
		rest = rest[:min(size, len(rest))]
		if n, err := f.ReadAt(got, int64(i*size)); !bytes.Equal(got[:n], rest) || err != nil && err != io.EOF {
			t.Errorf("read %d: %d bytes, not what is in the file: %v", i, n, err)
		}
	}
	f.Close()
	awaitPipes(t, m)
}

// awaitPipes waits until all that was taken for reads has been given back.
func awaitPipes(t *testing.T, m *Mount) {
	t.Helper()
	within(t, "the pipes' and blocks' return", func() {
		for whole := false; !whole; time.Sleep(time.Millisecond) {
			m.pipes.mu.Lock()
			whole = m.pipes.made > 0 && len(m.pipes.idle) == m.pipes.made && m.blocks.out.Load() == 0
			m.pipes.mu.Unlock()
		}
	})
}
