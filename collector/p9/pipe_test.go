package p9

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openRandom opens a file of random data behind a real diod.
func openRandom(t *testing.T, size int) (f *Fid, data []byte, server *exec.Cmd) {
	t.Helper()
	addr, dir, server := startDiod(t)
	data = make([]byte, size)
	rand.NewChaCha8([32]byte{7}).Read(data)
	if err := os.WriteFile(filepath.Join(dir, "f"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := attach(t, addr, dir).Walk(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Open(t.Context(), syscall.O_RDONLY); err != nil {
		t.Fatal(err)
	}
	return f, data, server
}

func newPipe(t *testing.T) *Pipe {
	t.Helper()
	p, err := NewPipe(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestReadPipe(t *testing.T) {
	const size = 3<<20 + 17
	f, data, _ := openRandom(t, size)
	var wg sync.WaitGroup
	for _, c := range []struct{ off, ask, want int }{
		{0, 1 << 20, 1 << 20}, {12345, 700000, 700000}, {2 << 20, 64 << 10, 64 << 10}, {3 << 20, 1 << 20, 17},
		{size, 4096, 0}, {1, 1, 1},
	} {
		wg.Go(func() {
			p := newPipe(t)
			for range 10 {
				n, err := f.ReadPipe(t.Context(), p, c.ask, int64(c.off))
				if n != c.want || (err == io.EOF) != (c.want < c.ask) || err != nil && err != io.EOF {
					t.Errorf("%+v: %d bytes, %v", c, n, err)
				}
				if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, data[c.off:c.off+c.want]) {
					t.Errorf("%+v: %d bytes out of the pipe, not what is in the file: %v", c, len(got), err)
				}
			}
		})
	}
	wg.Wait()
	if f.c.noPipes.Load() {
		t.Error("the data did not fit into a pipe")
	}
}

// TestReadPipeWithoutRoom: where the pipe is too small the connection goes on and ReadAt works.
func TestReadPipeWithoutRoom(t *testing.T) {
	f, data, _ := openRandom(t, 1<<20)
	for range 2 {
		p := newPipe(t)
		if _, err := unix.FcntlInt(uintptr(p.r), unix.F_SETPIPE_SZ, 4096); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadPipe(t.Context(), p, len(data), 0); err != ErrNoPipe {
			t.Errorf("%v, want %v", err, ErrNoPipe)
		}
		got := make([]byte, len(data))
		if n, err := f.ReadAt(t.Context(), got, 0); n != len(data) || err != nil || !bytes.Equal(got, data) {
			t.Errorf("ReadAt after it: %d bytes, %v", n, err)
		}
	}
}

// TestPiecesInAnyOrder has the pieces of a read, of which the third is short, come in every order.
func TestPiecesInAnyOrder(t *testing.T) {
	var arrive func(came, left []int)
	arrive = func(came, left []int) {
		for i, piece := range left {
			arrive(append(slices.Clone(came), piece), slices.Delete(slices.Clone(left), i, i+1))
		}
		if len(left) > 0 {
			return
		}
		j := &joint{into: newPipe(t), early: map[int]*call{}}
		for _, i := range came {
			data := []string{"abc", "def", "g", "xyz"}[i]
			w := &call{pipe: newPipe(t), size: 3, n: len(data), at: 3 * i, joint: j}
			j.target(w).Write([]byte(data))
			if err := j.took(w); err != nil {
				t.Error(err)
			}
		}
		if got, err := io.ReadAll(j.into); string(got) != "abcdefg" || err != nil {
			t.Errorf("pieces %v became %q: %v", came, got, err)
		}
	}
	arrive(nil, []int{0, 1, 2, 3})
}

// TestReadPipeOfAHungServer: a caller that gives up leaves no half data behind, a server that dies
// leaves no pipe.
func TestReadPipeOfAHungServer(t *testing.T) {
	f, data, server := openRandom(t, 1<<20)
	hang(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if n, err := f.ReadPipe(ctx, newPipe(t), len(data), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
	server.Process.Signal(syscall.SIGCONT)
	p := newPipe(t)
	if _, err := f.ReadPipe(t.Context(), p, len(data), 0); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, data) {
		t.Errorf("after a read that was given up %d bytes, not what is in the file: %v", len(got), err)
	}
	hang(t, server)
	ended := make(chan error)
	go func() {
		_, err := f.ReadPipe(t.Context(), p, len(data), 0)
		ended <- err
	}()
	server.Process.Kill()
	within(t, "the read of a killed server", func() {
		if err := <-ended; !errors.As(err, new(*TransportError)) {
			t.Errorf("the read of a killed server: %v", err)
		}
	})
	f.c.Close()
	if len(f.c.empty) != 0 || f.c.piping.Load() != 0 {
		t.Errorf("%d pipes left, %d in use", len(f.c.empty), f.c.piping.Load())
	}
}

// A reply that is not for a pipe brings what follows it into memory: the last piece of a read, which is short, and the
// next message. Only the piece goes into the pipe then, behind what that holds.
func TestAPieceTakesOnlyItsOwn(t *testing.T) {
	near, far := loopback(t)
	c, got := scriptedOver(t, near, far)
	defer c.Close()
	other := [2]*call{{op: "getattr", want: TGetattr + 1}, {op: "clunk", want: TClunk + 1}}
	for _, w := range other {
		if err := c.begin(t.Context(), w, newRequest(), nil); err != nil {
			t.Fatal(err)
		}
		<-got
	}
	data := make([]byte, c.IOUnit()+100)
	rand.NewChaCha8([32]byte{8}).Read(data)
	piece := func(data []byte) []byte {
		return answered(TRead+1, (<-got).tag, append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))),
			data...)...)
	}
	go func() {
		far.Write(slices.Concat(piece(data[:c.IOUnit()]), answered(TGetattr+1, other[0].tag, make([]byte, 153)...),
			piece(data[c.IOUnit():]), answered(TClunk+1, other[1].tag)))
	}()
	within(t, "the replies", func() {
		p := newPipe(t)
		if n, err := (&Fid{c: c, chunk: c.IOUnit()}).ReadPipe(t.Context(), p, len(data), 0); err != nil ||
			n != len(data) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the pipe has %d bytes, not the %d sent: %v", len(got), len(data), err)
		}
		for _, w := range other {
			if _, err := c.wait(t.Context(), w); err != nil {
				t.Error(err)
			}
		}
	})
}

// A server may stop in the middle of a read's data. Callers still leave when their contexts end, with nothing written
// to their buffers or pipes afterwards, and the connection is whole when the rest comes.
func TestAServerStopsInTheMiddleOfData(t *testing.T) {
	for name, read := range map[string]func(f *Fid, ctx context.Context, into []byte) (int, error){
		"memory": func(f *Fid, ctx context.Context, into []byte) (int, error) { return f.ReadAt(ctx, into, 0) },
		"pipe": func(f *Fid, ctx context.Context, into []byte) (int, error) {
			p := newPipe(t)
			n, err := f.ReadPipe(ctx, p, len(into), 0)
			io.ReadFull(p, into[:n])
			return n, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := loopback(t)
			c, got := scriptedOver(t, near, far)
			defer c.Close()
			f := &Fid{c: c, chunk: c.IOUnit()}
			data := bytes.Repeat([]byte("x"), int(c.IOUnit()))
			reply := func(tag uint16) []byte {
				return answered(TRead+1, tag, append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))),
					data...)...)
			}
			into := make([]byte, len(data))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { _, err := read(f, ctx, into); ended <- err }()
			first := reply((<-got).tag)
			far.Write(first[:len(first)/2])
			for filling := false; !filling; time.Sleep(time.Millisecond) {
				c.mu.Lock()
				filling = c.filling != nil
				c.mu.Unlock()
			}
			time.Sleep(20 * time.Millisecond) // until it waits for the rest
			cancel()
			within(t, "a read whose caller has left", func() {
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("it ended with %v", err)
				}
			})
			clear(into) // the caller's own again
			far.Write(first[len(first)/2:])
			go func() { far.Write(reply((<-got).tag)) }()
			again := make([]byte, len(data))
			within(t, "the next read", func() {
				if n, err := read(f, t.Context(), again); err != nil || !bytes.Equal(again[:n], data) {
					t.Errorf("%d bytes: %v", n, err)
				}
			})
			if !bytes.Equal(into, make([]byte, len(into))) {
				t.Error("the buffer of a read that was given up was written to")
			}
		})
	}
}
