package diod

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/p9"
	"fairway/collector/topology"
)

// realDiod starts a diod on a loopback port; exp is what it exports.
type realDiod struct {
	addr, exp string
	cmd       *exec.Cmd
}

func startDiod(t *testing.T, addr, exp string) *realDiod {
	t.Helper()
	bin, err := exec.LookPath("diod")
	if err != nil {
		t.Skip("diod is not installed (apt-get install diod)")
	}
	if addr == "" {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr = l.Addr().String()
		l.Close()
	}
	args := []string{"--ignore-signal=PIPE", bin, "-f", "-c", "/dev/null", "-n", "-N", "--nwthreads", "4", "-l", addr,
		"-e", exp, "-e", "ctl", "-L", filepath.Join(t.TempDir(), "log")}
	if os.Getuid() != 0 {
		args = append(args, "-u", strconv.Itoa(os.Getuid()))
	}
	d := &realDiod{addr: addr, exp: exp, cmd: exec.Command("env", args...)}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	for range 100 {
		if c, err := net.Dial("tcp4", addr); err == nil {
			c.Close()
			return d
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Skip("diod does not start here")
	return nil
}

func (d *realDiod) stop() {
	if d.cmd.ProcessState == nil {
		d.cmd.Process.Kill()
		d.cmd.Wait()
	}
}

func (d *realDiod) write(t *testing.T, tree string, size int) {
	t.Helper()
	ctx := t.Context()
	c, err := p9.Dial(ctx, d.addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.Attach(ctx, tree, uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Create(ctx, fmt.Sprintf("f%d", time.Now().UnixNano()), syscall.O_RDWR, 0o600,
		uint32(os.Getgid())); err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt(ctx, make([]byte, size), 0); err != nil || n != size {
		t.Fatal(n, err)
	}
	if err := f.Clunk(ctx); err != nil {
		t.Fatal(err)
	}
}

// attach is a mount that stays until the function is called.
func (d *realDiod) attach(t *testing.T, tree string) (leave func()) {
	t.Helper()
	c, err := p9.Dial(t.Context(), d.addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Attach(t.Context(), tree, uint32(os.Getuid())); err != nil {
		t.Fatal(err)
	}
	return func() { c.Close(); time.Sleep(50 * time.Millisecond) }
}

func readOnce(t *testing.T, s *Source) (collector.Reading, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	r := collector.Reading{Now: time.Now()}
	err := s.Read(ctx, &r)
	return r, err
}

func value(ss []collector.Sample, m collector.Metric) float64 {
	for _, s := range ss {
		if s.Metric == m {
			return s.Value
		}
	}
	return -1
}

// TestRealDiod moves known amounts through a real diod and finds every byte, the job's share even
// though the job left before it was looked at, the process's CPU, and nothing of our own polling.
func TestRealDiod(t *testing.T) {
	exp := t.TempDir()
	if err := os.MkdirAll(filepath.Join(exp, "jobs", "1001"), 0o777); err != nil {
		t.Fatal(err)
	}
	d := startDiod(t, "", exp)
	s := New(Options{Addr: d.addr, Node: "fwd1", UID: uint32(os.Getuid()),
		PID: func() (int, bool) { return d.cmd.Process.Pid, true }})
	defer s.Close()
	if _, err := readOnce(t, s); err != nil {
		t.Fatal(err)
	}
	var bytes, jobBytes float64
	var idle []collector.Sample
	var idleFor float64
	var leave func()
	for i := range 8 {
		switch i {
		case 1:
			d.write(t, exp, 3_000_000)
		case 2:
			leave = d.attach(t, filepath.Join(exp, "jobs", "1001"))
			d.write(t, filepath.Join(exp, "jobs", "1001"), 1_000_000)
		case 4: // the job writes and is gone before it is looked at: our attach kept its counters
			d.write(t, filepath.Join(exp, "jobs", "1001"), 1_000_000)
			leave()
		}
		time.Sleep(250 * time.Millisecond)
		r, err := readOnce(t, s)
		if err != nil {
			t.Fatal(err)
		}
		sec := s.rates.Seconds()
		bytes += value(r.Samples, collector.WriteBytes) * sec
		for _, j := range r.Jobs {
			if j.Job != topology.JobID("1001") {
				t.Errorf("job %q", j.Job)
			}
			jobBytes += value(j.Samples, collector.WriteBytes) * sec
		}
		idle, idleFor = r.Samples, sec
	}
	if math.Abs(bytes-5_000_000) > 1 || math.Abs(jobBytes-2_000_000) > 1 {
		t.Errorf("%.0f bytes were seen, %.0f of them the job's; want 5,000,000 and 2,000,000", bytes, jobBytes)
	}
	if v := value(idle, collector.MetaOps) * idleFor; v > 2 {
		t.Errorf("an idle forwarder shows %.1f metadata operations in %.2f s: our own", v, idleFor)
	}
	for _, m := range []collector.Metric{collector.QueueLen, collector.MetaWait, collector.CPUSeconds,
		collector.Connections} {
		if value(idle, m) < 0 {
			t.Errorf("%v is missing", m)
		}
	}
}

// TestDiodGoesAndComesBack kills diod and starts it again: errors that name it, then samples.
func TestDiodGoesAndComesBack(t *testing.T) {
	exp := t.TempDir()
	d := startDiod(t, "", exp)
	s := New(Options{Addr: d.addr, Node: "fwd1", UID: uint32(os.Getuid())})
	defer s.Close()
	if _, err := readOnce(t, s); err != nil {
		t.Fatal(err)
	}
	d.stop()
	for range 2 {
		if _, err := readOnce(t, s); err == nil || !strings.Contains(err.Error(), d.addr) {
			t.Errorf("a dead diod: %v", err)
		}
	}
	startDiod(t, d.addr, exp)
	if _, err := readOnce(t, s); err != nil {
		t.Errorf("diod is back: %v", err)
	}
}

// hang stops a process and returns when every thread of it stands still.
func hang(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		still := true
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
		for _, file := range tasks {
			b, err := os.ReadFile(file)
			still = still && (err != nil || strings.Contains(string(b), ") T "))
		}
		if still && len(tasks) > 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatal("the process does not stop")
}

// TestHungDiodHonoursTheDeadline stops diod with SIGSTOP.
func TestHungDiodHonoursTheDeadline(t *testing.T) {
	d := startDiod(t, "", t.TempDir())
	s := New(Options{Addr: d.addr, Node: "fwd1", UID: uint32(os.Getuid())})
	if _, err := readOnce(t, s); err != nil {
		t.Fatal(err)
	}
	hang(t, d.cmd.Process)
	defer d.cmd.Process.Signal(syscall.SIGCONT)
	begun := time.Now()
	if _, err := readOnce(t, s); err == nil {
		t.Error("a hung diod answered")
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("the read took %v", took)
	}
	done := make(chan struct{})
	go func() { s.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("Close waits for the hung diod")
	}
}

// TestQueueIsSeen keeps requests in flight and finds them in the gauge.
func TestQueueIsSeen(t *testing.T) {
	exp := t.TempDir()
	d := startDiod(t, "", exp)
	s := New(Options{Addr: d.addr, Node: "fwd1", UID: uint32(os.Getuid())})
	defer s.Close()
	if _, err := readOnce(t, s); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					d.write(t, exp, 1<<20)
				}
			}
		})
	}
	var queue, server float64
	for end := time.Now().Add(30 * time.Second); (queue <= 0.1 || server <= 0) && time.Now().Before(end); {
		time.Sleep(500 * time.Millisecond)
		r, err := readOnce(t, s)
		if err != nil {
			t.Error(err)
		}
		queue, server = max(queue, value(r.Samples, collector.QueueLen)),
			max(server, value(r.Samples, collector.ServerTime))
	}
	close(stop)
	wg.Wait()
	if queue <= 0.1 || server <= 0 {
		t.Errorf("queue %.2f, time in server %.6f s with six writers", queue, server)
	}
}
