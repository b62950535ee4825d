package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/testbed"
)

// demoArgs is a small demo with a port of its own.
func demoArgs(more ...string) []string {
	return append([]string{"--http", "127.0.0.1:0", "--forwarders", "2", "--nodes", "4", "--slow-after",
		"500ms"}, more...)
}

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// built is the path of one of the programs, which has beside it what it starts.
func built(t *testing.T, name string) string {
	t.Helper()
	dir, err := programs.Dir("fairway", "fairway-agent", "fairway-demo", "fairway-mount", "fairway-queue", "fairwayd")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func TestDemoRunsAndLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		skip func() string
	}{
		{"real", demoArgs("--no-console"), func() string { return cannotBuildNodes(testbed.Diod) }},
		{"gateways", demoArgs("--no-console", "--layer", "nfs"),
			func() string { return cannotBuildNodes(testbed.NFS) }},
		{"loopback", demoArgs("--no-console", "--loopback"), func() string {
			return strings.Join(testbed.Missing(testbed.Config{Loopback: true}), " ")
		}},
		{"simulated", []string{"--sim", "--no-console", "--http", "127.0.0.1:0"}, func() string { return "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if why := c.skip(); why != "" {
				t.Skipf("skipped: needs %s", why)
			}
			tmp, err := os.MkdirTemp("", "d") // short: sockets lie below it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(tmp) })
			cmd := exec.CommandContext(t.Context(), built(t, "fairway-demo"), c.args...)
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			socket := ""
			lines := bufio.NewScanner(out)
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), "starting") {
				t.Errorf("nothing says what is waited for: %q", lines.Text())
			}
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "first second shown") {
				t.Log(lines.Text())
				if m := regexp.MustCompile(`unix:(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
					socket = m[1]
				}
			}
			nodes, err := exec.CommandContext(t.Context(), built(t, "fairway"), "--addr", "unix:"+socket, "nodes",
				"--role", "forwarder").CombinedOutput()
			if err != nil || !strings.Contains(string(nodes), "fwd001") {
				t.Errorf("fairway nodes: %v\n%s", err, nodes)
			}
			pids := processesOf(t, cmd.Process.Pid)
			t.Logf("%d processes", len(pids))
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
				t.Log(lines.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the interrupted demo ended with %v", err)
			}
			checkDemoGone(t, socket, pids)
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("temporary files left: %v, %v", left, err)
			}
		})
	}
}

func cannotBuildNodes(layer testbed.Layer) string {
	if os.Geteuid() != 0 {
		return "root"
	}
	return strings.Join(testbed.Missing(testbed.Config{Layer: layer, Slurm: true}), " ")
}

func TestDemoConsoleIsLeftByQ(t *testing.T) {
	if why := cannotBuildNodes(testbed.Diod); why != "" {
		t.Skipf("skipped: needs %s", why)
	}
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("skipped: not installed: tmux")
	}
	server := filepath.Join(t.TempDir(), "tmux")
	run := func(args ...string) string {
		out, _ := exec.CommandContext(t.Context(), tmux, append([]string{"-S", server}, args...)...).CombinedOutput()
		return string(out) // "no server running" once the demo has ended
	}
	t.Cleanup(func() { _ = exec.Command(tmux, "-S", server, "kill-server").Run() })
	run(append([]string{"new-session", "-d", "-x", "120", "-y", "36", "-P", "-F", "#{pane_pid}", "--",
		built(t, "fairway-demo")},
		demoArgs()...)...)
	pid, err := strconv.Atoi(strings.TrimSpace(run("list-panes", "-F", "#{pane_pid}")))
	if err != nil {
		t.Fatal(err)
	}
	screen := ""
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(screen,
		"moved"); time.Sleep(100 * time.Millisecond) {
		if screen = run("capture-pane", "-p"); time.Now().After(deadline) {
			t.Fatalf("no overview on the terminal:\n%s", screen)
		}
	}
	pids := processesOf(t, pid)
	run("send-keys", "q")
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(run("capture-pane", "-p"),
		"q again ends the demo"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("q does not ask:\n%s", run("capture-pane", "-p"))
		}
	}
	time.Sleep(time.Second) // a person reads it; an answer before that counts as a slip
	run("send-keys", "q")
	for deadline := time.Now().Add(30 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("q did not end the demo:\n%s", run("capture-pane", "-p"))
		}
	}
	checkDemoGone(t, "", pids)
}

// processesOf returns a process, its descendants, and every process of the namespaces its children
// are in.
func processesOf(t *testing.T, root int) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents, spaces := map[int]int{}, map[int]string{}
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has just ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if _, rest, ok := strings.Cut(string(b), ") "); ok {
			parents[pid], _ = strconv.Atoi(strings.Fields(rest)[1])
		}
		spaces[pid], _ = os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	}
	own := map[string]bool{}
	for pid, parent := range parents {
		own[spaces[pid]] = own[spaces[pid]] || parent == root
	}
	delete(own, spaces[os.Getpid()])
	for pid := range parents {
		for p := pid; p != 0; p = parents[p] {
			if p == root || own[spaces[pid]] {
				pids = append(pids, pid)
				break
			}
		}
	}
	if len(pids) == 0 {
		t.Fatal("no process seen: the test looks at the wrong thing")
	}
	return pids
}

// checkDemoGone checks that processes are gone, and the files and the link of the testbed that the
// socket was in.
func checkDemoGone(t *testing.T, socket string, pids []int) {
	t.Helper()
	left := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return err != nil || strings.Contains(string(b), "\nState:\tZ")
	})
	if len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if socket == "" {
		return
	}
	dir := filepath.Dir(filepath.Dir(socket))
	if filepath.Base(filepath.Dir(dir)) != "fairway-testbed" {
		dir = filepath.Dir(socket)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
	if _, err := net.InterfaceByName(filepath.Base(dir) + ".up"); err == nil {
		t.Errorf("link %s.up is still there", filepath.Base(dir))
	}
}
