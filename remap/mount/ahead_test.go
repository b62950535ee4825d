package mount

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const aheadBlock = 128 << 10

// randomFile writes n blocks behind the mounts' backs.
func randomFile(t *testing.T, dir string, n int) []byte {
	t.Helper()
	data := make([]byte, n*aheadBlock)
	rand.NewChaCha8([32]byte{1}).Read(data)
	if err := os.WriteFile(filepath.Join(dir, "f"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return data
}

func openFile(t *testing.T, m *Mount, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(m.opt.MountPoint, "f"), flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// onlyReader is what follows the reads of the one open file.
func onlyReader(t *testing.T, m *Mount) *reader {
	t.Helper()
	m.link.mu.Lock()
	defer m.link.mu.Unlock()
	for h := range m.link.handles {
		return h.reader
	}
	t.Fatal("no open file")
	return nil
}

// readAheadAt reads two blocks, so that the third is read ahead, and waits for that.
func readAheadAt(t *testing.T, f *os.File, r *reader) {
	t.Helper()
	buf := make([]byte, aheadBlock)
	for i := range int64(2) {
		if _, err := f.ReadAt(buf, i*aheadBlock); err != nil {
			t.Fatal(err)
		}
	}
	<-awaitBlock(t, r, 2*aheadBlock).ready
}

// awaitBlock waits for the block read ahead at an offset: it is begun beside the answer to the read before it.
func awaitBlock(t *testing.T, r *reader, off int64) (b *block) {
	t.Helper()
	within(t, fmt.Sprintf("a block read ahead at %d", off), func() {
		for b == nil || b.off != off {
			time.Sleep(time.Millisecond)
			r.mu.Lock()
			b = r.block
			r.mu.Unlock()
		}
	})
	return b
}

func TestReadAhead(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	want := randomFile(t, dir, 40)
	f := openFile(t, m, os.O_RDONLY)
	var got bytes.Buffer
	if _, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{f},
		make([]byte, aheadBlock)); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("read %d of %d bytes, equal %t: %v", got.Len(), len(want), bytes.Equal(got.Bytes(), want), err)
	}
	r := onlyReader(t, m)
	if r.used == 0 {
		t.Error("no block was read ahead")
	}
	f.Close()
	within(t, "the blocks' return", func() {
		for m.blocks.out.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

// TestReadAheadOnlyForReaders: what writes too, or wants direct or synchronous I/O, is not read ahead.
func TestReadAheadOnlyForReaders(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	randomFile(t, dir, 4)
	for _, flags := range []int{os.O_RDWR, syscall.O_DIRECT, syscall.O_SYNC, syscall.O_DSYNC} {
		f := openFile(t, m, flags)
		if onlyReader(t, m) != nil {
			t.Errorf("flags %#o: read ahead", flags)
		}
		f.Close()
		within(t, "the close", func() {
			for m.Report().OpenFiles > 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// TestReadAheadSeesChanges changes the block that has been read ahead already, through the same mount.
func TestReadAheadSeesChanges(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	for name, change := range map[string]func() error{
		"write": func() error {
			w, err := os.OpenFile(filepath.Join(m.opt.MountPoint, "f"), os.O_WRONLY, 0)
			if err == nil {
				_, err = w.WriteAt([]byte("new"), 2*aheadBlock)
				w.Close()
			}
			return err
		},
		"truncate": func() error { return os.Truncate(filepath.Join(m.opt.MountPoint, "f"), 2*aheadBlock) },
		"open with O_TRUNC": func() error {
			w, err := os.OpenFile(filepath.Join(m.opt.MountPoint, "f"), os.O_WRONLY|os.O_TRUNC, 0)
			if err == nil {
				w.Close()
			}
			return err
		},
	} {
		old := randomFile(t, dir, 4)[2*aheadBlock:][:3]
		f := openFile(t, m, os.O_RDONLY)
		r := onlyReader(t, m)
		readAheadAt(t, f, r)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, aheadBlock)
		if n, _ := f.ReadAt(got, 2*aheadBlock); n > 0 && bytes.Equal(got[:3], old) {
			t.Errorf("%s: the read after it has what was there before", name)
		}
		f.Close()
		within(t, "the close", func() {
			for m.Report().OpenFiles > 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// TestReadAheadRules: what answers a read is for its place and size, and young.
func TestReadAheadRules(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name     string
		off      int64
		size     int
		after    time.Duration
		changes  uint64
		answered bool
	}{
		{"in time", 200, 100, aheadFor, 0, true},
		{"too old", 200, 100, aheadFor + 1, 0, false},
		{"elsewhere", 300, 100, 0, 0, false},
		{"another size", 200, 50, 0, 0, false},
		{"after a change", 200, 100, 0, 1, false},
	} {
		m := &Mount{}
		n := &node{m: m}
		m.blocks.enter()
		b := &block{m: m, off: 200, size: 100, asked: now, cancel: func() {}}
		b.holders.Store(1)
		r := &reader{h: &handle{node: n}, block: b}
		n.changes.Add(c.changes)
		if got := r.take(c.off, c.size, now.Add(c.after)); (got == b) != c.answered {
			t.Errorf("%s: answered %t", c.name, got != nil)
		}
		if c.answered {
			b.put()
		}
		if m.blocks.out.Load() != 0 {
			t.Errorf("%s: the buffer is not given back", c.name)
		}
	}
}

// TestReadAheadGivesUp: a program that jumps about makes no needless load.
func TestReadAheadGivesUp(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	randomFile(t, dir, 32)
	f := openFile(t, m, os.O_RDONLY)
	buf := make([]byte, aheadBlock)
	for i := range int64(10) {
		for _, at := range []int64{3 * i, 3*i + 1} {
			if _, err := f.ReadAt(buf, at*aheadBlock); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := onlyReader(t, m); r.wasted > 2 || r.used > 0 {
		t.Errorf("%d blocks used, %d for nothing", r.used, r.wasted)
	}
}

// TestReadAheadOfACallerThatLeaves: nothing goes on waiting at a hung forwarder for it.
func TestReadAheadOfACallerThatLeaves(t *testing.T) {
	m, dir, fwd := startMount(t, 1)
	randomFile(t, dir, 4)
	openFile(t, m, os.O_RDONLY)
	r := onlyReader(t, m)
	fwd[0].hang(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	late := &lateRead{h: r.h, ctx: gone, dest: make([]byte, aheadBlock), off: 2 * aheadBlock}
	for late.block == nil { // a block is thrown away when the machine is slow
		r.drop(nil)
		r.mu.Lock()
		r.next, r.streak, r.wasted = late.off, aheadStreak, 0
		r.mu.Unlock()
		r.goOn(aheadBlock)
		late.block = r.take(late.off, aheadBlock, time.Now())
	}
	m.device.readLate(late, 1<<40)
	within(t, "what was read ahead", func() {
		for m.Report().Waiting > 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

// TestReadAheadThroughRemaps reads a file from front to back while the mount moves, some of the moves
// off a forwarder that hangs with a block in flight: blocks in memory and blocks in pipes.
func TestReadAheadThroughRemaps(t *testing.T) {
	for name, size := range map[string]int{"memory": aheadBlock, "pipes": 2 * pipeFrom} {
		t.Run(name, func(t *testing.T) { readThroughRemaps(t, size) })
	}
}

func readThroughRemaps(t *testing.T, size int) {
	m, dir, fwd := startMount(t, 2)
	want := randomFile(t, dir, 200)
	f := openFile(t, m, os.O_RDONLY)
	r := onlyReader(t, m)
	got, buf := make([]byte, 0, len(want)), make([]byte, size)
	for i := range len(want) / size {
		done := make(chan struct{})
		from, to := &fwd[i/10%2], &fwd[(i/10+1)%2]
		if i%20 == 19 {
			from.hang(t)
		}
		go func() {
			defer close(done)
			n, err := f.Read(buf)
			if err != nil {
				t.Error(err)
			}
			got = append(got, buf[:n]...)
		}()
		if i%10 == 9 {
			if _, err := m.Remap(t.Context(), to.Target, i%20 == 19); err != nil {
				t.Fatal(err)
			}
		}
		within(t, "a read", func() { <-done })
		if i%20 == 19 {
			from.cmd.Process.Signal(syscall.SIGCONT)
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("read %d bytes that differ from what is there", len(got))
	}
	if r.used == 0 {
		t.Error("no block was read ahead")
	}
}
