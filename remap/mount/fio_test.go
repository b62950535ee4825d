package mount

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFioThroughRemaps runs fio's random writes with checksums while the mount moves twenty times
// between two forwarders, some of the moves forced and off a killed one; fio then verifies every block,
// the large ones read through pipes.
func TestFioThroughRemaps(t *testing.T) {
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("no fio on this machine (Debian package fio)")
	}
	m, dir, fwd := startMount(t, 2)
	fio := exec.Command("fio", "--name=global", "--directory="+m.opt.MountPoint, "--rw=randwrite", "--size=64m",
		"--ioengine=psync", "--verify=crc32c", "--do_verify=1", "--verify_fatal=1", "--rate=40m", "--group_reporting",
		"--output-format=terse",
		"--name=small", "--bs=64k", "--name=large", "--bs=1m")
	fio.Dir = t.TempDir() // it writes its verification state where it stands
	done := make(chan error, 1)
	var out []byte
	go func() {
		var err error
		out, err = fio.CombinedOutput()
		done <- err
	}()
	for m.Report().Ops["write"].Count < 20 {
		time.Sleep(5 * time.Millisecond)
	}
	var drained []time.Duration
	for i := range 20 {
		to := &fwd[(i+1)%2]
		force := i%5 == 4
		if force {
			from := fwd[i%2]
			from.cmd.Process.Kill()
			from.cmd.Wait()
		}
		r, err := m.Remap(t.Context(), to.Target, force)
		if err != nil || !r.Changed || r.LostFiles != 0 {
			t.Fatalf("remap %d: %+v, %v", i, r, err)
		}
		if force {
			fwd[i%2] = startDiod(t, dir, string(fwd[i%2].Forwarder))
		} else {
			drained = append(drained, r.Took)
		}
		time.Sleep(40 * time.Millisecond)
	}
	writes := m.Report().Ops["write"].Count
	if err := <-done; err != nil {
		t.Errorf("fio: %v\n%s", err, out)
	}
	slices.Sort(drained)
	t.Logf("%d drained remaps under fio (%d writes by then): median %v, longest %v", len(drained), writes,
		drained[len(drained)/2], drained[len(drained)-1])
	if n := m.Report().Ops["write"].Errors + m.Report().Ops["read"].Errors; n != 0 {
		t.Errorf("%d failed reads and writes", n)
	}
}

// BenchmarkMountAgainstClient writes and reads 256 MB through the mount and through the same 9P client
// without FUSE, with one and with four streams. It takes turns every 16 MB, so that what else the
// machine does meets both alike, and prints the median of the turns' ratios and what both take of the
// processors in the three processes: the program's, the mount's and the forwarder's.
func BenchmarkMountAgainstClient(b *testing.B) {
	for _, op := range []string{"write", "read", "read-ahead"} {
		for _, streams := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/streams=%d", op, streams),
				func(b *testing.B) { benchmarkAgainstClient(b, op, streams) })
		}
	}
}

// mountProcess mounts in a process of its own, as a compute node does.
func mountProcess(b testing.TB, t Target, tree, at string, ahead bool) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mountEnv+"="+strings.Join([]string{t.Addr, tree, at, strconv.FormatBool(ahead)},
		","))
	cmd.Stderr = b.Output()
	ready, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		b.Fatalf("the mount's process: %v", err)
	}
	return cmd
}

// processorTime is what a process has taken so far, seconds.
func processorTime(b *testing.B, pid int) float64 {
	const scheduled = 2 // a process's clock has the number ^PID<<3 | which of its clocks
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		b.Fatal(err)
	}
	return float64(t.Nano()) / 1e9
}

// mountEnv makes the test binary a mount: HOST:PORT,TREE,MOUNTPOINT,READAHEAD.
const mountEnv = "FAIRWAY_TEST_MOUNT"

func TestMain(m *testing.M) {
	v := strings.Split(os.Getenv(mountEnv), ",")
	if len(v) != 4 {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mount, err := Start(ctx, Options{Target: Target{"fwd000", v[0]}, Tree: v[1], MountPoint: v[2],
		ReadAhead: v[3] == "true"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("mounted")
	<-ctx.Done()
	mount.Unmount(true)
}

func benchmarkAgainstClient(b *testing.B, op string, streams int) {
	m, dir, fwd := startMount(b, 1)
	at := b.TempDir()
	pid := mountProcess(b, fwd[0].Target, dir, at, op == "read-ahead").Process.Pid
	const size, turn, block = 256 << 20, 16 << 20, 1 << 20
	l, err := newLink(b.Context(), fwd[0].Target, m.opt.Tree, uint32(os.Getuid()), m.opt.Log)
	if err != nil {
		b.Fatal(err)
	}
	defer l.close()
	fid, err := l.cur.root.Walk(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := fid.Create(b.Context(), "direct", syscall.O_RDWR, 0o644, 0); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(filepath.Join(at, "mounted"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	in, err := os.Open(f.Name())
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	bufs := make([][]byte, streams)
	for i := range bufs {
		bufs[i] = bytes.Repeat([]byte("data"), block/4) // what was never written to is one page of zeros
	}
	processes := func() float64 {
		return processorTime(b, os.Getpid()) + processorTime(b, pid) + processorTime(b, fwd[0].cmd.Process.Pid)
	}
	timed := func(at int64, op func(buf []byte, off int64) (int, error)) (mbs, cpu float64) {
		start, before := time.Now(), processes()
		var wg sync.WaitGroup
		for s, buf := range bufs {
			wg.Go(func() {
				for off := at + int64(s)*block; off < at+turn; off += int64(len(bufs)) * block {
					if n, err := op(buf, off); err != nil || n != block {
						b.Errorf("%d bytes at %d: %v", n, off, err)
					}
				}
			})
		}
		wg.Wait()
		return turn / time.Since(start).Seconds() / 1e6, (processes() - before) / (turn >> 20) * 1000
	}
	directWrite := func(buf []byte, off int64) (int, error) { return fid.WriteAt(b.Context(), buf, off) }
	directRead := func(buf []byte, off int64) (int, error) { return fid.ReadAt(b.Context(), buf, off) }
	mounted, direct := f.WriteAt, directWrite
	if op != "write" {
		for at := int64(0); at < size; at += turn {
			timed(at, f.WriteAt)
			timed(at, directWrite)
		}
		mounted, direct = in.ReadAt, directRead
	}
	var mbs, ratios, cpus, directCPUs []float64
	for b.Loop() {
		for at := int64(0); at < size; at += turn {
			through, cpu := timed(at, mounted)
			without, directCPU := timed(at, direct)
			mbs, ratios = append(mbs, through), append(ratios, through/without)
			cpus, directCPUs = append(cpus, cpu), append(directCPUs, directCPU)
		}
	}
	b.ReportMetric(median(mbs), "MB/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(cpus), "cpu-ms/MiB")
	b.ReportMetric(median(directCPUs), "direct-cpu-ms/MiB")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
