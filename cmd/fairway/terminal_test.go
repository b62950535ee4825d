package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/simmachine"
	"fairway/cmd/lab/simsite"

	"github.com/creack/pty"
)

// meterBars says that this run may judge by the clock: on a quiet machine, at the real pace.
// Without it the same numbers are printed and only those are judged that no neighbour can change.
var meterBars = os.Getenv("FAIRWAY_METER") != ""

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// screen is the real binary on a pty that answers no query.
type screen struct {
	t     *testing.T
	cmd   *exec.Cmd
	pty   *os.File
	start time.Time
	done  chan struct{}

	mu    sync.Mutex
	out   []byte
	first time.Duration // from start to the first byte of a frame
	last  time.Time     // of the newest byte
}

// daemon is a site that lives in real time, with a past of some seconds.
func daemon(t *testing.T, o simsite.Options) *simsite.Site {
	t.Helper()
	s := simsite.New(t, o)
	s.Run(5)
	return s
}

// full is a layer of full size.
func full() simsite.Options { return simsite.Options{Forwarders: 240, Compute: 960} }

func startTerminal(t *testing.T, flags []string, args ...string) *screen {
	t.Helper()
	path, err := programs.Path("fairway")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(flags, args...)...)
	cmd.Env = []string{"TERM=xterm-256color", "HOME=" + t.TempDir(), "TZ=UTC"}
	x := &screen{t: t, cmd: cmd, start: time.Now(), done: make(chan struct{})}
	if x.pty, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		t.Skipf("no pty on this machine: %v", err)
	}
	go x.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone already
		_ = cmd.Wait()
		x.pty.Close()
		<-x.done
	})
	return x
}

func (x *screen) read() {
	defer close(x.done)
	b := make([]byte, 64<<10)
	for {
		n, err := x.pty.Read(b)
		x.mu.Lock()
		x.out = append(x.out, b[:n]...)
		x.last = time.Now()
		if x.first == 0 && bytes.Contains(x.out, []byte("fairway")) {
			x.first = time.Since(x.start)
		}
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *screen) bytes() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.out)
}

// sees waits until the terminal was sent text.
func (x *screen) sees(text string) {
	x.t.Helper()
	for range 1000 {
		x.mu.Lock()
		found := bytes.Contains(x.out, []byte(text))
		x.mu.Unlock()
		if found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.t.Fatalf("the terminal was never sent %q, but %q", text, x.out)
}

// quiet waits until nothing was sent for a tenth of a second.
func (x *screen) quiet() {
	for {
		x.mu.Lock()
		still := time.Since(x.last) > 100*time.Millisecond
		x.mu.Unlock()
		if still {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (x *screen) press(keys string) {
	if _, err := x.pty.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// quit ends the console by its key and returns what it used.
func (x *screen) quit() {
	x.t.Helper()
	x.press("\x03")
	if err := x.cmd.Wait(); err != nil {
		x.t.Fatalf("after ctrl-c: %v", err)
	}
}

// A terminal that answers nothing must not be asked anything: bubbletea's own package
// initialisation would ask for the background and freeze every command for 5 s. See console/early.
func TestAMuteTerminalIsNotAsked(t *testing.T) {
	x := startTerminal(t, daemon(t, full()).Flags(simsite.OperatorSecret))
	x.sees("240 forwarders")
	x.mu.Lock()
	out, first := string(x.out), x.first
	x.mu.Unlock()
	for _, query := range []string{"\x1b]10;?", "\x1b]11;?", "\x1b[6n", "\x1b[c"} {
		if strings.Contains(out, query) {
			t.Errorf("the terminal was asked %q", query)
		}
	}
	t.Logf("first frame after %s", first.Round(time.Millisecond))
	if meterBars && first > 200*time.Millisecond {
		t.Errorf("first frame after %s, want <= 200 ms", first)
	}
}

func TestWire(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of a terminal's traffic")
	}
	machine := simmachine.TaihuLight(1)
	machine.Compute = 3840
	for _, c := range []struct {
		name    string
		typical bool
		bar     int // bytes a second of data
	}{{"typical", true, 4000}, {"every cell changing", false, 14000}} {
		t.Run(c.name, func(t *testing.T) {
			seconds := 5
			if meterBars {
				seconds = 20
			}
			o := full()
			if c.typical {
				m, err := simmachine.New(machine)
				if err != nil {
					t.Fatal(err)
				}
				o = simsite.Options{Sim: m}
			}
			x := startTerminal(t, daemon(t, o).Flags(simsite.ViewerSecret))
			x.sees("240 forwarders")
			time.Sleep(2 * time.Second)
			before, begun := x.bytes(), time.Now()
			used := cpu(t, x.cmd.Process.Pid)
			time.Sleep(time.Duration(seconds) * time.Second)
			used = cpu(t, x.cmd.Process.Pid) - used
			perSecond := (x.bytes() - before) / seconds
			took := time.Since(begun)
			resident := highWater(t, x.cmd.Process.Pid)
			x.quit()
			share := used.Seconds() / took.Seconds() * 100
			t.Logf("%d bytes a second; CPU %.2f %% of a core over %s; RSS %.1f MB", perSecond, share,
				took.Round(time.Second), resident)
			if perSecond > c.bar || perSecond < 20 {
				t.Errorf("%d bytes for a second of data, want 20 to %d", perSecond, c.bar)
			}
			if resident > 25 {
				t.Errorf("RSS %.1f MB, want <= 25 MB", resident)
			}
			if meterBars && c.typical && share > 0.5 {
				t.Errorf("CPU %.2f %%, want <= 0.5 %%", share)
			}
		})
	}
}

// cpu reads the CPU time that a process has used, at the kernel's full resolution.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	var total time.Duration
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Skip("no schedstat on this machine")
	}
	for _, p := range tasks {
		b, err := os.ReadFile(p)
		if err != nil {
			continue // the thread has ended
		}
		var ns int64
		if _, err := fmt.Sscan(string(b), &ns); err != nil {
			t.Fatal(err)
		}
		total += time.Duration(ns)
	}
	return total
}

// highWater is the most memory a process has had resident, MB. Its rusage would not do: that begins
// with the memory of the test that started it.
func highWater(t *testing.T, pid int) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kB float64
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kB); err != nil {
		t.Fatal(err)
	}
	return kB / 1024
}

func TestKeyToRedraw(t *testing.T) {
	presses := 20
	if meterBars {
		presses = 200
	}
	x := startTerminal(t, daemon(t, full()).Flags(simsite.OperatorSecret))
	x.sees("240 forwarders")
	x.quiet()
	var waits []time.Duration
	for i := range presses {
		before, begun := x.bytes(), time.Now()
		x.press([]string{"\x1b[B", "\x1b[A"}[i%2])
		for x.bytes() == before {
			if time.Since(begun) > 5*time.Second {
				t.Fatalf("key %d changed nothing", i)
			}
			time.Sleep(500 * time.Microsecond)
		}
		waits = append(waits, time.Since(begun))
		time.Sleep(time.Duration(40+i%7*5) * time.Millisecond)
	}
	slices.Sort(waits)
	p50, p99 := waits[len(waits)/2], waits[len(waits)*99/100]
	t.Logf("key to redraw: p50 %s p99 %s of %d", p50.Round(100*time.Microsecond), p99.Round(100*time.Microsecond),
		presses)
	if meterBars && p99 > 50*time.Millisecond {
		t.Errorf("p99 %s, want <= 50 ms", p99)
	}
}

// A signal ends the console and gives the terminal back as it was.
func TestASignalEndsIt(t *testing.T) {
	x := startTerminal(t, daemon(t, full()).Flags(simsite.OperatorSecret))
	x.sees("240 forwarders")
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := x.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	x.sees("\x1b[?1049l") // back from the alternate screen
}

// The whole way through the real binary: propose on a row, see that it waits for somebody else.
func TestProposeOnATerminal(t *testing.T) {
	s := daemon(t, simsite.Options{})
	x := startTerminal(t, s.Flags(simsite.OperatorSecret), "open", "/forwarders/fwd003")
	x.sees("c00012")
	x.press("p")
	x.sees("4 compute nodes leave")
	x.sees("MDms") // of the forwarders to choose from; blanks that are there already are not sent again
	x.press("\r")
	x.sees("Why to fwd00")
	x.press("fwd003 is too slow\r")
	x.sees("you proposed it")
	x.quit()
	out, _ := command(t, append(s.Flags(simsite.ViewerSecret), "--json", "plans")...)
	if strings.Count(out, `"state": "proposed"`) != 1 {
		t.Errorf("not one plan waits:\n%s", out)
	}
}

// A smaller window is drawn anew, in its own size.
func TestAnotherSizeIsDrawnAnew(t *testing.T) {
	x := startTerminal(t, daemon(t, full()).Flags(simsite.OperatorSecret))
	x.sees("240 forwarders")
	if err := pty.Setsize(x.pty, &pty.Winsize{Rows: 20, Cols: 72}); err != nil {
		t.Fatal(err)
	}
	x.sees("Terminal is 72x20; the grid needs 80x24.")
	x.quit()
	x.sees("\x1b[?1049l")
}

func TestAddressWithoutServerIsSaid(t *testing.T) {
	x := startTerminal(t, []string{"--addr", "unix:" + filepath.Join(t.TempDir(), "nobody.sock")})
	x.sees("No connection since")
	x.sees("does not answer")
	x.quit()
}
