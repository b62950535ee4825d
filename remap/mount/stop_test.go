package mount

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shell is a shell in another mount name space, which holds a copy of every mount of this one.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func elsewhere(t *testing.T) *shell {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: another mount name space")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("no unshare on this machine (Debian package util-linux)")
	}
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s := &shell{t, in, bufio.NewReader(out)}
	s.run("true")
	return s
}

// begin gives the shell a line to run, ended says how it ended.
func (s *shell) begin(line string, args ...any) {
	fmt.Fprintf(s.in, "{ "+line+"\n} 2>&1; echo \"|$?\"\n", args...)
}

func (s *shell) ended() string {
	s.t.Helper()
	words := ""
	within(s.t, "a program in another mount name space", func() {
		for !strings.HasPrefix(words[strings.LastIndex(words, "\n")+1:], "|") {
			line, err := s.out.ReadString('\n')
			if err != nil {
				s.t.Error(err)
				return
			}
			words = strings.TrimSuffix(words+"\n"+line, "\n")
		}
	})
	return strings.TrimSpace(words)
}

func (s *shell) run(line string, args ...any) string {
	s.t.Helper()
	s.begin(line, args...)
	return s.ended()
}

// unmounted unmounts and fails the test when that waits for the other name space.
func unmounted(t *testing.T, m *Mount, lazily bool) {
	t.Helper()
	begun := time.Now()
	within(t, "the unmount beside another mount name space", func() {
		if err := m.Unmount(lazily); err != nil {
			t.Error(err)
		}
	})
	t.Logf("unmounted in %s", time.Since(begun))
}

func TestUnmountBesideACopy(t *testing.T) {
	m, _, _ := startMount(t, 1)
	at := m.opt.MountPoint
	s := elsewhere(t)
	if words := s.run("echo there >%s/x && cat %[1]s/x", at); words != "there\n|0" {
		t.Fatalf("the copy does not work: %s", words)
	}
	unmounted(t, m, false)
	if words := s.run("LC_ALL=C stat %s", at); !strings.Contains(words, "not connected") {
		t.Errorf("the copy after the unmount: %s", words)
	}
	if _, err := os.Stat(m.opt.Control); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control socket: %v", err)
	}
}

// TestUnmountAfterAnUnmountOutside ends what serves a copy when somebody has run umount here before.
func TestUnmountAfterAnUnmountOutside(t *testing.T) {
	m, _, _ := startMount(t, 1)
	s := elsewhere(t)
	if err := unix.Unmount(m.opt.MountPoint, 0); err != nil {
		t.Fatal(err)
	}
	if words := s.run("echo there >%s/x", m.opt.MountPoint); words != "|0" {
		t.Errorf("the copy after umount here: %s", words)
	}
	unmounted(t, m, true)
}

// TestFilesOpenInACopy keeps the mount busy by a file that only a program of another name space has open.
func TestFilesOpenInACopy(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	s := elsewhere(t)
	s.run("exec 3>%s/x", m.opt.MountPoint)
	if err := m.Unmount(false); !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("an unmount under an open file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(m.opt.MountPoint, "x")); err != nil {
		t.Errorf("after an unmount that was refused: %v", err)
	}
	if words := s.run("echo written >&3 && exec 3>&-"); words != "|0" {
		t.Errorf("the program in the other name space: %s", words)
	}
	unmounted(t, m, false)
	if got, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(got) != "written\n" {
		t.Errorf("the file holds %q: %v", got, err)
	}
}

// TestUnmountAnswersRequestsOfACopy unmounts while a program of another name space writes.
func TestUnmountAnswersRequestsOfACopy(t *testing.T) {
	m, dir, fwd := startMount(t, 1)
	s := elsewhere(t)
	s.run("exec 3>%s/x", m.opt.MountPoint)
	fwd[0].hang(t)
	s.begin("echo written >&3")
	awaitWaiting(t, m)
	ended := make(chan error, 1)
	go func() { ended <- m.Unmount(true) }()
	gone := func() bool { // without a look at the mount, which would wait, too
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		return err == nil && !strings.Contains(string(mounts), " "+m.opt.MountPoint+" ")
	}
	within(t, "the mount to leave this name space", func() {
		for !gone() {
			time.Sleep(time.Millisecond)
		}
	})
	select {
	case err := <-ended:
		t.Fatalf("the unmount did not wait for the write: %v", err)
	case <-time.After(4 * wakeEvery):
	}
	fwd[0].cmd.Process.Signal(syscall.SIGCONT)
	if words := s.ended(); words != "|0" {
		t.Errorf("a write under way in another name space: %s", words)
	}
	within(t, "the unmount", func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if got, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(got) != "written\n" {
		t.Errorf("the file holds %q: %v", got, err)
	}
}

// TestUnmountBesideACopyOfAHungForwarder does not wait for its requests for ever.
func TestUnmountBesideACopyOfAHungForwarder(t *testing.T) {
	m, _, fwd := startMount(t, 1)
	s := elsewhere(t)
	fwd[0].hang(t)
	s.begin("LC_ALL=C stat %s/x", m.opt.MountPoint)
	awaitWaiting(t, m)
	unmounted(t, m, true)
	if words := s.ended(); !strings.Contains(words, "not connected") {
		t.Errorf("a request at a hung forwarder: %s", words)
	}
}
