package mount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"fairway/collector/p9"
	report "fairway/collector/source/mount"
	"fairway/collector/topology"
)

// go-fuse looks for these among the methods: one with another signature would not be called.
var (
	_ fs.NodeLookuper       = (*node)(nil)
	_ fs.NodeGetattrer      = (*node)(nil)
	_ fs.NodeSetattrer      = (*node)(nil)
	_ fs.NodeMkdirer        = (*node)(nil)
	_ fs.NodeMknoder        = (*node)(nil)
	_ fs.NodeSymlinker      = (*node)(nil)
	_ fs.NodeReadlinker     = (*node)(nil)
	_ fs.NodeLinker         = (*node)(nil)
	_ fs.NodeUnlinker       = (*node)(nil)
	_ fs.NodeRmdirer        = (*node)(nil)
	_ fs.NodeRenamer        = (*node)(nil)
	_ fs.NodeStatfser       = (*node)(nil)
	_ fs.NodeOnForgetter    = (*node)(nil)
	_ fs.NodeOpener         = (*node)(nil)
	_ fs.NodeCreater        = (*node)(nil)
	_ fs.NodeOpendirHandler = (*node)(nil)
	_ fs.NodeAccesser       = (*node)(nil)
	_ fs.FileReader         = (*handle)(nil)
	_ fs.FileWriter         = (*handle)(nil)
	_ fs.FileFsyncer        = (*handle)(nil)
	_ fs.FileReleaser       = (*handle)(nil)
	_ fs.FileReaddirenter   = (*listing)(nil)
	_ fs.FileSeekdirer      = (*listing)(nil)
	_ fs.FileReleasedirer   = (*listing)(nil)
	_ fuse.ReadResult       = (*lateRead)(nil)
)

// diod is a real forwarder of the test's directory.
type diod struct {
	Target
	cmd *exec.Cmd
}

func startDiod(t testing.TB, dir, name string) diod {
	t.Helper()
	return startDiodWith(t, dir, name, false)
}

// startDiodWith starts one that has the host's table of users, or knows of each only his number, with further options.
func startDiodWith(t testing.TB, dir, name string, table bool, more ...string) diod {
	t.Helper()
	bin, err := exec.LookPath("diod")
	if err != nil {
		bin = "/usr/sbin/diod"
		if _, err := os.Stat(bin); err != nil {
			t.Skip("no diod on this machine (Debian package diod)")
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	d := diod{Target: Target{topology.ForwarderID(name), addr}}
	args := append([]string{"--ignore-signal=PIPE", bin, "-f", "-c", "/dev/null", "-n", "--nwthreads", "8", "-l", addr,
		"-e", dir, "-e", "ctl", "-L", filepath.Join(t.TempDir(), "log")}, more...)
	if !table {
		args = append(args, "-N")
	}
	if os.Getuid() != 0 {
		args = append(args, "-u", fmt.Sprint(os.Getuid()))
	}
	d.cmd = exec.Command("env", args...)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.cmd.Process.Signal(syscall.SIGCONT); d.cmd.Process.Kill(); d.cmd.Wait() })
	for range 200 {
		if conn, err := net.Dial("tcp4", addr); err == nil {
			conn.Close()
			return d
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("diod does not listen on %s", addr)
	return d
}

func needFUSE(t testing.TB) {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("no FUSE here: %v", err)
	} else {
		f.Close()
	}
	if _, err := exec.LookPath("fusermount3"); err != nil && os.Getuid() != 0 {
		t.Skip("mounting without root needs fusermount3 (Debian package fuse3)")
	}
}

// startMount mounts a fresh directory through the first of n forwarders.
func startMount(t testing.TB, n int) (m *Mount, dir string, fwd []diod) {
	t.Helper()
	needFUSE(t)
	dir = t.TempDir()
	for i := range n {
		fwd = append(fwd, startDiod(t, dir, fmt.Sprintf("fwd%03d", i)))
	}
	m, err := Start(t.Context(), Options{MountPoint: t.TempDir(), Target: fwd[0].Target, Tree: dir, ReadAhead: true,
		Control: filepath.Join(t.TempDir(), "control"),
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(true); err != nil && !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
	})
	return m, dir, fwd
}

// run runs a program in a directory. It is env that goes there: between fork and exec this process may
// stand still, and could not answer for its own mount.
func run(t testing.TB, dir string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "env", append([]string{"-C", dir}, argv...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

func TestOrdinaryPrograms(t *testing.T) {
	m, dir, _ := startMount(t, 1)
	at := m.opt.MountPoint
	run(t, at, "sh", "-ec", `
		mkdir -p a/b; echo one > a/f; echo two >> a/f; test "$(cat a/f)" = "one
two"
		mv a/f a/b/g; test ! -e a/f; mv a/b a/c; test "$(head -n1 a/c/g)" = one
		ln -s c/g a/s; test "$(readlink a/s)" = c/g; test "$(head -n1 a/s)" = one
		ln a/c/g a/hard; test "$(stat -c %h a/hard)" = 2
		chmod 600 a/hard; test "$(stat -c %a a/c/g)" = 600
		truncate -s 1000000 a/hard; test "$(stat -c %s a/c/g)" = 1000000
		touch -d 2020-02-02T02:02:02Z a/hard; test "$(stat -c %Y a/c/g)" = 1580608922
		dd if=/dev/urandom of=big bs=300k count=20 conv=fsync status=none
		cp -a big copy; cmp big copy; cp -a a tree; diff -r a tree
		mkfifo pipe; test -p pipe
		rm -r a tree; test ! -e a; rmdir a 2>/dev/null && exit 1
		df . >/dev/null; : > empty; test ! -s empty; ! sh -c 'set -C; : > empty' 2>/dev/null
	`)
	if _, err := exec.LookPath("git"); err == nil {
		run(t, at, "sh", "-ec", `git init -q repo; cd repo; for i in 1 2 3 4 5; do echo $i > $i; done; git add .
			git -c user.name=a -c user.email=a@b commit -qm first; git gc -q; git fsck --strict
			git clone -q . ../clone; cmp 5 ../clone/5`)
	}
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%05d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list, err := os.ReadDir(at)
	if n := len(slices.DeleteFunc(list, func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(),
			"file-")
	})); err != nil || n != 2000 {
		t.Errorf("listed %d of 2000 files: %v", n, err)
	}
}

func TestOtherUsersFiles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: runs a program as another user")
	}
	m, dir, _ := startMount(t, 1)
	at := m.opt.MountPoint
	// The test's own temporary directories are root's alone; what is above them is the host's.
	for p := filepath.Dir(at); p != filepath.Clean(os.TempDir()) && p != "/"; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	run(t, "/", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-ec",
		"cd "+at+"; echo x > mine; mkdir d; test $(stat -c %u:%g mine) = 65534:65534; test $(stat -c %u d) = 65534")
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat",
		filepath.Join(at, "secret"))
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("another user read root's file: %s", out)
	}
}

// TestRemapWithOpenFiles moves the mount while files are open, one of them half written.
func TestRemapWithOpenFiles(t *testing.T) {
	m, dir, fwd := startMount(t, 2)
	f, err := os.Create(filepath.Join(m.opt.MountPoint, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []byte
	for i := range 6 {
		part := bytes.Repeat([]byte{byte('a' + i)}, 100_000)
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
		want = append(want, part...)
		r, err := m.Remap(t.Context(), fwd[(i+1)%2].Target, false)
		if err != nil || !r.Changed || r.LostFiles != 0 || r.Report.Generation != uint64(i+2) {
			t.Fatalf("remap %d: %+v, %v", i, r, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes, want %d: %v", len(got), len(want), err)
	}
	again, err := m.Remap(t.Context(), m.link.target, false)
	if err != nil || again.Changed || again.Report.Generation != 7 {
		t.Errorf("a repeated remap: %+v, %v", again, err)
	}
	if names := clients(t, fwd[0].Target); !strings.Contains(names, "localhost") &&
		!strings.Contains(names, "127.0.0.1") {
		t.Errorf("the forwarder's own list of connections does not show the mount:\n%s", names)
	}
}

// clients reads the forwarder's own list of connections.
func clients(t *testing.T, at Target) string {
	c, err := p9.Dial(t.Context(), at.Addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctl, err := c.Attach(t.Context(), "ctl", uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ctl.ReadFile(t.Context(), nil, 1<<20, "connections")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUnreachableTargetKeepsTheMapping(t *testing.T) {
	m, _, fwd := startMount(t, 1)
	_, err := m.Remap(t.Context(), Target{"fwd999", "127.0.0.1:1"}, false)
	if err == nil || !strings.Contains(err.Error(), "fwd999") || !strings.Contains(err.Error(), "stays as it was") {
		t.Errorf("remap to nowhere: %v", err)
	}
	if r := m.Report(); r.Forwarder != fwd[0].Forwarder || r.Generation != 1 || !r.Connected {
		t.Errorf("after a failed remap: %+v", r)
	}
	if err := os.WriteFile(filepath.Join(m.opt.MountPoint, "x"), []byte("x"), 0o644); err != nil {
		t.Error(err)
	}
}

// TestDeadAndHungForwarder forces the mount off forwarders that were killed and stopped while a
// program writes; the program notices nothing.
func TestDeadAndHungForwarder(t *testing.T) {
	for name, fault := range map[string]syscall.Signal{"dead": syscall.SIGKILL, "hung": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			m, dir, fwd := startMount(t, 2)
			const blocks = 400
			block := func(i int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%07d\n", i)), 4096) }
			started := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				f, err := os.Create(filepath.Join(m.opt.MountPoint, "f"))
				if err != nil {
					t.Error(err)
					close(started)
					return
				}
				defer f.Close()
				for i := range blocks {
					if i == blocks/4 {
						close(started)
					}
					if _, err := f.Write(block(i)); err != nil {
						t.Errorf("block %d: %v", i, err)
						return
					}
				}
			})
			<-started
			fwd[0].cmd.Process.Signal(fault)
			if r, err := m.Remap(t.Context(), fwd[1].Target, true); err != nil || !r.Changed {
				t.Errorf("forced remap: %+v, %v", r, err)
			}
			wg.Wait()
			got, err := os.ReadFile(filepath.Join(dir, "f"))
			if err != nil || len(got) != blocks*len(block(0)) {
				t.Fatalf("%d bytes: %v", len(got), err)
			}
			for i := range blocks {
				if b := block(i); !bytes.Equal(got[i*len(b):(i+1)*len(b)], b) {
					t.Fatalf("block %d is wrong", i)
				}
			}
		})
	}
}

// TestReconnect restarts a killed forwarder under the mount: operations wait and go on.
func TestReconnect(t *testing.T) {
	m, dir, fwd := startMount(t, 1)
	fwd[0].cmd.Process.Kill()
	fwd[0].cmd.Wait()
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(filepath.Join(m.opt.MountPoint, "x"), []byte("x"), 0o644) }()
	again := exec.Command("env", fwd[0].cmd.Args[1:]...)
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Process.Kill(); again.Wait() })
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the write still waits 20 s after its forwarder came back")
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err != nil {
		t.Error(err)
	}
	if g := m.Report().Generation; g != 1 {
		t.Errorf("generation %d after a reconnect to the same forwarder, want 1", g)
	}
}

// TestAKilledMountComesBack kills a mount's process twice: until the next one is there nothing can be written to what
// is below, and none of the dead is left when that ends.
func TestAKilledMountComesBack(t *testing.T) {
	_, dir, fwd := startMount(t, 1)
	at := t.TempDir()
	file := filepath.Join(at, "x")
	for i := range 3 {
		p := mountProcess(t, fwd[0].Target, dir, at, false)
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			_ = p.Process.Signal(syscall.SIGTERM)
			_ = p.Wait()
			break
		}
		_ = p.Process.Kill()
		_ = p.Wait()
		if err := os.WriteFile(file, []byte("lost"), 0o644); !errors.Is(err, syscall.ENOTCONN) {
			t.Errorf("after the kill a program writes: %v", err)
		}
	}
	if left, err := os.ReadDir(at); err != nil || len(left) > 0 {
		t.Errorf("below the mount is %v, %v", left, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(b) != "x" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// TestInterrupt kills a program that waits for a lost forwarder.
func TestInterrupt(t *testing.T) {
	m, _, fwd := startMount(t, 1)
	fwd[0].hang(t)
	cmd := exec.Command("stat", filepath.Join(m.opt.MountPoint, "x"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for m.Report().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	cmd.Process.Kill()
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("a killed program still waits for the hung forwarder")
	}
	fwd[0].cmd.Process.Signal(syscall.SIGCONT)
}

func TestCountsByJob(t *testing.T) {
	m, _, _ := startMount(t, 1)
	at := m.opt.MountPoint
	cmd := exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(at, "x"), "bs=100k", "count=7", "status=none")
	cmd.Env = append(os.Environ(), "SLURM_JOB_ID=4711")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run(t, at, "cat", "x")
	r, err := report.Ask(t.Context(), m.opt.Control, report.Request{Op: "stats"})
	if err != nil {
		t.Fatal(err)
	}
	j := r.Report.Jobs["4711"]
	if j.Write.Count != 7 || j.Write.Bytes != 7*100*1024 || j.Read.Count != 0 || j.Meta.Count == 0 {
		t.Errorf("job 4711 has %+v", j)
	}
	if other := r.Report.Jobs[""]; other.Read.Bytes != 7*100*1024 {
		t.Errorf("without a job: %+v", other.Read)
	}
	sum := uint64(0)
	for _, n := range j.Write.Hist {
		sum += n
	}
	if sum != 7 || j.Write.Nanos == 0 || r.Report.Ops["write"].Count != 7 {
		t.Errorf("latencies of %d writes, %d ns", sum, j.Write.Nanos)
	}
}

func TestControlSocketRefusals(t *testing.T) {
	m, _, _ := startMount(t, 1)
	for want, q := range map[string]report.Request{"not one of": {Op: "dance"}, "addr": {Op: "remap", Addr: "nowhere"},
		"forwarder": {Op: "remap", Addr: "127.0.0.1:1"}} {
		if _, err := report.Ask(t.Context(), m.opt.Control, q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	conn, err := net.Dial("unix", m.opt.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(bytes.Repeat([]byte("x"), maxRequest+10))
	buf := make([]byte, 1000)
	if n, _ := conn.Read(buf); !strings.Contains(string(buf[:n]), "longer than") {
		t.Errorf("an endless request got %q", buf[:n])
	}
}

func TestJobOfEnviron(t *testing.T) {
	for in, want := range map[string]topology.JobID{"A=1\x00SLURM_JOB_ID=88231\x00B=2": "88231",
		"XSLURM_JOB_ID=1\x00": "", "": "", "SLURM_JOB_ID=" + strings.Repeat("9", 100): ""} {
		if got := jobOfEnviron([]byte(in)); got != want {
			t.Errorf("%q: job %q, want %q", in, got, want)
		}
	}
	if m := slurmCgroup.FindStringSubmatch("0::/system.slice/slurmstepd.scope/job_123/step_0/user\n"); m == nil ||
		m[1] != "123" {
		t.Errorf("cgroup job %v", m)
	}
}
