package testbed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
)

// start starts a testbed that is closed with the test; the test is skipped where it cannot run.
func start(t *testing.T, cfg Config) *Testbed {
	t.Helper()
	skipUnlessPossible(t, cfg)
	tb, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb
}

func skipUnlessPossible(t *testing.T, cfg Config) {
	t.Helper()
	if missing := Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 && !cfg.Loopback {
		t.Skip("skipped: namespaces need root")
	}
}

func TestNodesAreMachinesOfTheirOwn(t *testing.T) {
	tb := start(t, Config{Forwarders: 2, ComputeNodes: 4})
	for _, n := range tb.Machine().Nodes {
		out, err := tb.Exec(t.Context(), n.ID, "hostname")
		if err != nil || strings.TrimSpace(string(out)) != string(n.ID) {
			t.Errorf("hostname on %s: %q, %v", n.ID, out, err)
		}
	}
	out, err := tb.Exec(t.Context(), "fwd001", "ps", "-e", "-o", "comm=")
	if got := strings.Fields(string(out)); err != nil || len(got) != 3 || got[0] != "sleep" || got[1] != "diod" {
		t.Errorf("processes on fwd001: %q, %v; want its first process, diod and ps", out, err)
	}
	// A compute node sees a forwarder, and the file system only through it.
	addr := tb.ForwarderAddr("fwd001")
	cn, err := tb.find("cn002")
	if err != nil {
		t.Fatal(err)
	}
	if err := cn.enter(func() error { return answers(t.Context(), addr, tb.Attach()) }); err != nil {
		t.Errorf("cn002 does not reach fwd001: %v", err)
	}
	if err := os.WriteFile(filepath.Join(tb.Dir(), "seen"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := tb.Exec(t.Context(), "fwd000", "ls", tb.Attach()); err != nil ||
		strings.TrimSpace(string(out)) != "seen" {
		t.Errorf("fwd000 lists %q, %v; want the file this process wrote", out, err)
	}
	if out, err := tb.Exec(t.Context(), "cn000", "ls", tb.Attach()); err != nil || len(out) != 0 {
		t.Errorf("cn000 sees %q, %v behind its forwarder's back", out, err)
	}
}

func TestDefaultMappingIsInBlocks(t *testing.T) {
	cfg := Config{Forwarders: 2, ComputeNodes: 4}
	if err := cfg.fill(); err != nil {
		t.Fatal(err)
	}
	want := topology.Mapping{"cn000": "fwd000", "cn001": "fwd000", "cn002": "fwd001", "cn003": "fwd001"}
	if fmt.Sprint(cfg.Mapping) != fmt.Sprint(want) {
		t.Errorf("mapping %v, want %v", cfg.Mapping, want)
	}
}

func TestConfigIsRefusedWithItsReason(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Forwarders: -1}, "-1 forwarders"},
		{Config{ComputeNodes: 5000}, "5000 compute nodes"},
		{Config{Loopback: true, Slurm: true}, "Slurm needs root"},
		{Config{Mapping: topology.Mapping{"cn000": "nobody"}}, `"nobody"`},
		{Config{Layer: "dvs"}, `"dvs"`},
		{Config{Layer: NFS, Loopback: true}, "needs root"},
	} {
		if err := c.cfg.fill(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one that says %s", c.cfg, err, c.want)
		}
	}
}

func TestTwoTestbedsRunBesideEachOther(t *testing.T) {
	a, b := start(t, Config{Forwarders: 1, ComputeNodes: 1}), start(t, Config{Forwarders: 1, ComputeNodes: 1})
	if a.net.subnet.Overlaps(b.net.subnet) {
		t.Fatalf("both use %s", a.net.subnet)
	}
	for _, tb := range []*Testbed{a, b} {
		if err := answers(t.Context(), tb.ForwarderAddr("fwd000"), tb.Attach()); err != nil {
			t.Error(err)
		}
	}
}

func TestFailedProgramIsNamedWithItsLog(t *testing.T) {
	tb := start(t, Config{Forwarders: 1, ComputeNodes: 1, Loopback: true})
	n, err := tb.find("cn000")
	if err != nil {
		t.Fatal(err)
	}
	p, err := tb.launch(n, "broken", "sh", "-c", "echo no such flag; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.AwaitReady(t.Context(), readyWithin, func(context.Context) error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "broken on cn000") ||
		!strings.Contains(err.Error(), "no such flag") {
		t.Errorf("error %v names neither the program nor the end of its log", err)
	}
}

func TestLoopbackForwardersAnswer(t *testing.T) {
	tb := start(t, Config{Forwarders: 3, ComputeNodes: 3, Loopback: true})
	for i := range 3 {
		if err := answers(t.Context(), tb.ForwarderAddr(tb.cfg.forwarder(i)), tb.Attach()); err != nil {
			t.Error(err)
		}
	}
}

// processes returns every process that a testbed started, as /proc/PID/stat lines hold its state:
// those in its nodes' namespaces, and its diods.
func (tb *Testbed) processes(t *testing.T) []string {
	t.Helper()
	spaces := map[string]bool{}
	for _, n := range tb.nodes {
		if n.root {
			spaces[readlink(fmt.Sprintf("/proc/%d/ns/pid", n.pid()))] = true
		}
	}
	delete(spaces, "")
	var pids []string
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if spaces[readlink(p+"/ns/pid")] {
			pids = append(pids, filepath.Base(p))
		}
	}
	for _, d := range tb.services {
		pids = append(pids, fmt.Sprint(d.PID()))
	}
	return pids
}

func readlink(p string) string {
	s, _ := os.Readlink(p) // empty for a process that has just ended
	return s
}

// alive returns which of the processes still run. One that only waits to be reaped does not: what
// this process orphans is reaped by the machine's init when it likes.
func alive(pids []string) []string {
	var out []string
	for _, p := range pids {
		b, err := os.ReadFile("/proc/" + p + "/status")
		if err == nil && !strings.Contains(string(b), "\nState:\tZ") {
			out = append(out, p)
		}
	}
	return out
}

func mounts(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCloseLeavesNothing(t *testing.T) {
	for _, cfg := range []Config{{}, {Loopback: true}, {Layer: NFS}} {
		t.Run(fmt.Sprintf("loopback=%v%s", cfg.Loopback, cfg.Layer), func(t *testing.T) {
			mountsBefore := mounts(t)
			cfg.StateDir = filepath.Join(t.TempDir(), "state")
			tb := start(t, cfg)
			pids := tb.processes(t)
			if len(alive(pids)) == 0 {
				t.Fatal("no process seen: the test looks at the wrong thing")
			}
			if err := tb.Close(); err != nil {
				t.Fatal(err)
			}
			checkNothingLeft(t, tb.inst.Name, cfg.StateDir, pids)
			if after := mounts(t); after != mountsBefore {
				t.Errorf("mounts before:\n%s\nand after:\n%s", mountsBefore, after)
			}
		})
	}
}

func checkNothingLeft(t *testing.T, instance, stateDir string, pids []string) {
	t.Helper()
	if left := alive(pids); len(left) > 0 {
		t.Errorf("processes still there: %v", left)
	}
	if _, err := net.InterfaceByName(instance + ".up"); err == nil {
		t.Errorf("link %s.up is still there", instance)
	}
	if _, err := os.Stat(stateDir); err == nil {
		t.Errorf("%s is still there", stateDir)
	}
}

// helperEnv makes this test binary start a testbed in the named state directory, print what it is
// made of and wait to be killed.
const helperEnv = "FAIRWAY_TESTBED_HELPER"

func TestHelperProcess(t *testing.T) {
	dir := os.Getenv(helperEnv)
	if dir == "" {
		t.Skip("skipped: only a helper of TestKilledOwnerLeavesNothing")
	}
	tb, err := Start(t.Context(), Config{StateDir: dir, Loopback: os.Geteuid() != 0})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("READY", tb.inst.Name, strings.Join(tb.processes(t), " "))
	time.Sleep(time.Minute) // the parent kills this process long before
}

func TestKilledOwnerLeavesNothing(t *testing.T) {
	skipUnlessPossible(t, Config{Loopback: os.Geteuid() != 0})
	stateDir := filepath.Join(t.TempDir(), "state")
	helper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperProcess$")
	helper.Env = append(os.Environ(), helperEnv+"="+stateDir)
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	var instance string
	var pids []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 2 && f[0] == "READY" {
			instance, pids = f[1], f[2:]
			break
		}
	}
	if len(alive(pids)) == 0 {
		t.Fatal("the helper did not start a testbed")
	}
	if n, err := Sweep(stateDir); n != 0 || err != nil {
		t.Fatalf("swept %d living testbeds, %v", n, err)
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	for deadline := time.Now().Add(time.Minute); len(alive(pids)) > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if n, err := Sweep(stateDir); n != 1 || err != nil {
		t.Errorf("swept %d dead testbeds, %v; want 1", n, err)
	}
	checkNothingLeft(t, instance, stateDir, pids)
}
