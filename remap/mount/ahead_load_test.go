package mount

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// readMany reads a file from front to back with more readers than there are pipes and blocks, again and again until
// meanwhile is over: reads wait for tags then, blocks are thrown away, and many reads have no pipe.
func readMany(t *testing.T, m *Mount, dir string, flags int, meanwhile func()) {
	want := append(randomFile(t, dir, 32), "the end"...)
	if err := os.WriteFile(filepath.Join(dir, "f"), want, 0o644); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	over := make(chan struct{})
	for i := range 2 * maxPipes {
		f, buf := openFile(t, m, flags), make([]byte, (1+i%4)*pipeFrom)
		readers.Go(func() {
			for again := true; again; {
				for off, n, err := 0, 0, error(nil); err == nil; off += n {
					if n, err = f.ReadAt(buf, int64(off)); err != nil && err != io.EOF ||
						!bytes.Equal(buf[:n], want[off:min(off+len(buf), len(want))]) {
						t.Errorf("at %d: %d bytes, not what is in the file: %v", off, n, err)
						return
					}
				}
				select {
				case <-over:
					again = false
				default:
				}
			}
		})
	}
	meanwhile()
	close(over)
	within(t, "the readers", readers.Wait)
}

// TestManyReadAhead has other requests' replies come in between, on the one connection.
func TestManyReadAhead(t *testing.T) {
	for name, flags := range map[string]int{"ahead": os.O_RDONLY, "not ahead": os.O_RDWR} {
		t.Run(name, func(t *testing.T) {
			m, dir, _ := startMount(t, 1)
			readMany(t, m, dir, flags, func() {
				within(t, "the other requests", func() {
					for range 30 {
						if _, err := os.Stat(filepath.Join(m.opt.MountPoint, "f")); err != nil {
							t.Error(err)
						}
					}
				})
			})
			awaitPipes(t, m)
			if n := m.link.connections.Load(); n != 1 {
				t.Errorf("the connection was lost %d times", n-1)
			}
		})
	}
}

// TestManyReadAheadThroughRemaps moves off a forwarder that works, one that hangs and one that was killed.
func TestManyReadAheadThroughRemaps(t *testing.T) {
	m, dir, fwd := startMount(t, 2)
	readMany(t, m, dir, os.O_RDONLY, func() {
		for i := range 9 {
			from, to := &fwd[i%2], &fwd[(i+1)%2]
			switch i % 3 {
			case 1:
				from.hang(t)
			case 2:
				from.cmd.Process.Kill()
				from.cmd.Wait()
			}
			time.Sleep(20 * time.Millisecond)
			if r, err := m.Remap(t.Context(), to.Target, i%3 > 0); err != nil || r.LostFiles != 0 {
				t.Fatalf("remap %d: %+v, %v", i, r, err)
			}
			switch i % 3 {
			case 1:
				from.cmd.Process.Signal(syscall.SIGCONT)
			case 2:
				*from = startDiod(t, dir, string(from.Forwarder))
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// TestManyReadAheadOffAServerThatDies has it come back where it was.
func TestManyReadAheadOffAServerThatDies(t *testing.T) {
	m, dir, fwd := startMount(t, 1)
	readMany(t, m, dir, os.O_RDONLY, func() {
		for i := range uint64(3) {
			fwd[0].cmd.Process.Kill()
			fwd[0].cmd.Wait()
			cmd := exec.Command(fwd[0].cmd.Path, fwd[0].cmd.Args[1:]...)
			fwd[0].cmd = cmd
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			within(t, "the forwarder's return", func() {
				for r := m.Report(); !r.Connected || m.link.connections.Load() < i+2; r = m.Report() {
					time.Sleep(time.Millisecond)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// TestManyReadAheadLeave has programs killed halfway through the file, with a read and a block under way: what those
// had comes back.
func TestManyReadAheadLeave(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	readMany(t, m, dir, os.O_RDONLY, func() {
		var programs sync.WaitGroup
		for i := range 40 {
			programs.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				cmd := exec.Command("dd", "if="+filepath.Join(m.opt.MountPoint, "f"), "of=/dev/null", "bs=512k",
					"status=none")
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(i) * time.Millisecond)
				cmd.Process.Kill()
				cmd.Wait()
			})
		}
		within(t, "the programs", programs.Wait)
	})
	awaitPipes(t, m)
	if n := m.link.connections.Load(); n != 1 {
		t.Errorf("the connection was lost %d times", n-1)
	}
}
