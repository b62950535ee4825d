package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tree writes a node's files into a folder that stands for its root.
func tree(b *testing.B, files map[string]string) (root string) {
	b.Helper()
	root = b.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// BenchmarkLustreClient is the agent of a compute node that is a client of 64 storage targets. Bar: 0.2 % of a core.
func BenchmarkLustreClient(b *testing.B) {
	files := map[string]string{"proc/fs/lustre/llite/fw01-ffff9a/stats": "read_bytes 9 samples [bytes] 1 2 300 400\n" +
		"write_bytes 9 samples [bytes] 1 2 300 400\nopen 9 samples [usecs] 1 2 300 400\n"}
	for i := range 64 {
		files[fmt.Sprintf("proc/fs/lustre/osc/fw01-OST%04x-osc-ffff9a/stats", i)] =
			"req_waittime 90 samples [usecs] 1 2 300 400\nreq_active 90 samples [reqs] 1 2 300 400\n" +
				"read_bytes 9 samples [bytes] 1 2 300 400\nwrite_bytes 9 samples [bytes] 1 2 300 400\n" +
				"ost_read 9 samples [usecs] 1 2 300 400\nost_write 9 samples [usecs] 1 2 300 400\n" +
				"obd_ping 9 samples [usecs] 1 2 300 400\n"
	}
	overhead(b, fmt.Sprintf("[source.lustre]\nenabled = true\nroot = %q\n", tree(b, files)))
}

// BenchmarkRouter is the agent of an LNet router with 1,000 peers. Bars: 1 % of a core, 15 MB.
func BenchmarkRouter(b *testing.B) {
	var peers strings.Builder
	peers.WriteString("nid refs state last max rtr min tx min queue\n")
	for i := range 1000 {
		fmt.Fprintf(&peers, "10.0.%d.%d@o2ib 1 up -1 8 8 8 %d -9 0\n", i/250, i%250+1, i%9)
	}
	overhead(b, fmt.Sprintf("[source.lnet]\nenabled = true\nroot = %q\n", tree(b, map[string]string{
		"proc/sys/lnet/stats":   "3 28 0 1 1 100 0 100 200 1000 0\n",
		"proc/sys/lnet/routes":  "Routing enabled\nnet hops prio state router\n",
		"proc/sys/lnet/peers":   peers.String(),
		"proc/sys/lnet/nis":     "nid status alive refs peer rtr max tx min\n10.0.0.1@o2ib up 0 3 8 0 256 250 9\n",
		"proc/sys/lnet/buffers": "pages count credits min\n0 512 500 470\n1 4096 4096 4000\n256 256 250 240\n"})))
}

// overhead runs the shipped binary and reports what a minute of it costs by the kernel's clock of the
// process, what its start has cost, and its whole life by getrusage.
func overhead(b *testing.B, more string) {
	b.Helper()
	const begin, runFor = 3 * time.Second, 64 * time.Second
	d := startDaemon(b)
	defer d.Close()
	bin, file := binary(b), writeConfig(b, d.url(), "t0ken", more)
	for b.Loop() {
		var out bytes.Buffer
		cmd := exec.Command(bin, "-c", file)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(begin)
		start := cpuTime(b, cmd.Process.Pid)
		time.Sleep(runFor)
		used := cpuTime(b, cmd.Process.Pid) - start
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			b.Fatalf("%v\n%s", err, &out)
		}
		b.ReportMetric(100*used.Seconds()/runFor.Seconds(), "%core")
		b.ReportMetric(1000*start.Seconds(), "start-ms")
		b.ReportMetric(1000*(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Seconds(), "life-ms")
		b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "MB-RSS")
		b.ReportMetric(float64(len(d.seen())), "frames")
	}
}

// cpuTime is the user and system time of a process so far.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	const schedClock = 2 // CPUCLOCK_SCHED: a process's clock is named by its number, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkForwarder is the agent of a forwarding node: a real diod with 20 Hz queue sampling, and the
// Linux node. Bars: 0.5 % of a core, 20 MB.
func BenchmarkForwarder(b *testing.B) {
	addr := os.Getenv("FAIRWAY_BENCH_DIOD")
	if addr == "" {
		b.Skip("set FAIRWAY_BENCH_DIOD to the HOST:PORT of a diod that exports ctl")
	}
	overhead(b, fmt.Sprintf("[source.diod]\nenabled = true\naddr = %q\n", addr))
}

// BenchmarkCompute is the agent of an idle compute node. Bar: 0.1 % of a core.
func BenchmarkCompute(b *testing.B) {
	control := os.Getenv("FAIRWAY_BENCH_MOUNT")
	more := ""
	if control != "" {
		more = fmt.Sprintf("[source.mount]\nenabled = true\ncontrol = %q\n", control)
	}
	overhead(b, more)
}
