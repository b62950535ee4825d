package mount

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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

// hang stops the forwarder and returns when every thread of it stands still.
func (d *diod) hang(t *testing.T) {
	t.Helper()
	d.cmd.Process.Signal(syscall.SIGSTOP)
	within(t, "the forwarder's stop", func() {
		for still := false; !still; time.Sleep(time.Millisecond) {
			tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", d.cmd.Process.Pid))
			still = len(tasks) > 0
			for _, p := range tasks {
				b, err := os.ReadFile(p)
				still = still && (err != nil || bytes.Contains(b, []byte(") T ")))
			}
		}
	})
}

// awaitWaiting waits until the mount has operations in flight.
func awaitWaiting(t *testing.T, m *Mount) {
	within(t, "an operation in flight", func() {
		for m.Report().Waiting == 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

// TestSignalsDoNotFailIO interrupts a thread within a write, of a read and of a stat with a signal that
// it survives, such as a timer's: no file system may show it EINTR for that.
func TestSignalsDoNotFailIO(t *testing.T) {
	m, _, fwd := startMount(t, 1)
	f, err := os.Create(filepath.Join(m.opt.MountPoint, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := bytes.Repeat([]byte("x"), pipeFrom+100_000)
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]func() error{
		"write": func() error { _, err := unix.Pwrite(int(f.Fd()), data, 0); return err },
		"read":  func() error { _, err := unix.Pread(int(f.Fd()), make([]byte, len(data)), 0); return err },
		"stat":  func() error { return unix.Stat(f.Name(), &unix.Stat_t{}) },
	} {
		fwd[0].hang(t)
		thread, done := make(chan int), make(chan error, 1)
		go func() {
			runtime.LockOSThread() // and ends with the goroutine
			thread <- unix.Gettid()
			done <- op()
		}()
		tid := <-thread
		awaitWaiting(t, m)
		for range 5 {
			unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
			time.Sleep(20 * time.Millisecond)
		}
		select {
		case err := <-done:
			t.Errorf("%s: a signal ended it with %v", name, err)
		default:
		}
		fwd[0].cmd.Process.Signal(syscall.SIGCONT)
		within(t, name, func() {
			if err := <-done; err != nil {
				t.Errorf("%s with signals: %v", name, err)
			}
		})
	}
}

// TestKillEndsAWait kills a program that waits for a hung forwarder and was interrupted before: the
// kernel reports the first signal only.
func TestKillEndsAWait(t *testing.T) {
	m, dir, fwd := startMount(t, 1)
	randomFile(t, dir, 10)
	f := openFile(t, m, os.O_RDWR)
	for name, cmd := range map[string]*exec.Cmd{
		"stat": exec.Command("stat", filepath.Join(m.opt.MountPoint, "x")),
		"read": exec.Command("dd", "of=/dev/null", "bs=1M", "count=1"),
	} {
		fwd[0].hang(t)
		cmd.Stdin = f
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitWaiting(t, m)
		cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(50 * time.Millisecond)
		cmd.Process.Kill()
		within(t, "a killed "+name, func() { cmd.Wait() })
		fwd[0].cmd.Process.Signal(syscall.SIGCONT)
		within(t, "the rest of the "+name, func() {
			for m.Report().Waiting > 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// TestAbortedMountEnds takes the mount away by force while its forwarder hangs under an operation.
func TestAbortedMountEnds(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: unmounts by force")
	}
	m, _, fwd := startMount(t, 1)
	fwd[0].hang(t)
	cmd := exec.Command("stat", filepath.Join(m.opt.MountPoint, "x"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitWaiting(t, m)
	if err := syscall.Unmount(m.opt.MountPoint, syscall.MNT_FORCE|syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	within(t, "the program on the mount", func() { cmd.Wait() })
	within(t, "the mount", m.Wait)
	m.Close()
}

// TestLostDuringFailedRemap loses the connection while a remap holds the gate closed, and then the
// remap fails: the mount must come back to its old forwarder by itself.
func TestLostDuringFailedRemap(t *testing.T) {
	m, _, fwd := startMount(t, 2)
	l := m.link
	if _, err := l.enter(t.Context()); err != nil { // an operation that does not end
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := m.Remap(ctx, fwd[1].Target, false); failed <- err }()
	shut := func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.gate }
	for !shut() {
		time.Sleep(time.Millisecond)
	}
	fwd[0].cmd.Process.Kill()
	fwd[0].cmd.Wait()
	for m.Report().Connected {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-failed; err == nil {
		t.Fatal("a remap that could not drain succeeded")
	}
	l.leave()
	again := exec.Command("env", fwd[0].cmd.Args[1:]...)
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Process.Kill(); again.Wait() })
	within(t, "a write after the forwarder came back", func() {
		if err := os.WriteFile(filepath.Join(m.opt.MountPoint, "x"), nil, 0o644); err != nil {
			t.Error(err)
		}
	})
}

// tarpit is a forwarder that greets its clients, lets them attach and then answers nothing. "" takes
// any free port.
func tarpit(t *testing.T, addr string) string {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		for _, answer := range []string{"\x65\xff\xff\x00\x20\x00\x00\x08\x009P2000.L",
			"\x69TT" + strings.Repeat("\x00", 13)} {
			ask := make([]byte, 4)
			if _, err := io.ReadFull(conn, ask); err != nil {
				return
			}
			ask = append(ask, make([]byte, binary.LittleEndian.Uint32(ask)-4)...)
			io.ReadFull(conn, ask[4:])
			reply := append([]byte{byte(len(answer) + 4), 0, 0, 0}, answer...)
			copy(reply[5:7], ask[5:7])
			conn.Write(reply)
		}
		io.Copy(io.Discard, conn)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

// TestForceDuringHungReopen has the lost forwarder come back hung, so that the reconnect waits for an
// open file's reopening: a forced remap must not wait behind it.
func TestForceDuringHungReopen(t *testing.T) {
	m, _, fwd := startMount(t, 2)
	f, err := os.Create(filepath.Join(m.opt.MountPoint, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fwd[0].cmd.Process.Kill()
	fwd[0].cmd.Wait()
	tarpit(t, fwd[0].Addr)
	shut := func() bool { m.link.mu.Lock(); defer m.link.mu.Unlock(); return m.link.gate }
	within(t, "the reconnect's reopening", func() {
		for !shut() {
			time.Sleep(time.Millisecond)
		}
	})
	within(t, "a forced remap", func() {
		if r, err := m.Remap(t.Context(), fwd[1].Target, true); err != nil || !r.Changed || r.LostFiles != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	if _, err := f.WriteString("on"); err != nil {
		t.Error(err)
	}
}

// TestHungTargetKeepsTheMapping moves to a forwarder that hangs when open files are opened there.
func TestHungTargetKeepsTheMapping(t *testing.T) {
	m, dir, fwd := startMount(t, 1)
	f, err := os.Create(filepath.Join(m.opt.MountPoint, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pit := Target{"fwd666", tarpit(t, "")}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	within(t, "the remap", func() {
		if _, err := m.Remap(ctx, pit, false); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "stays as it was") {
			t.Errorf("a remap to a hung forwarder: %v", err)
		}
	})
	if r := m.Report(); r.Forwarder != fwd[0].Forwarder || r.Generation != 1 || !r.Connected {
		t.Errorf("after a failed remap: %+v", r)
	}
	if _, err := f.WriteString("on"); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(got) != "on" {
		t.Errorf("the file holds %q: %v", got, err)
	}
}
