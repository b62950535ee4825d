package main

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// keepAll is for agents within a test's process, which others share.
func keepAll(*Config, *slog.Logger) error { return nil }

// TestAgentKeepsWhatItsSettingsNeed asks the kernel about every thread of the shipped program.
func TestAgentKeepsWhatItsSettingsNeed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, which has something to give up")
	}
	bin := binary(t)
	lnet := "[orders]\nenabled = true\nby = \"lnet\"\nforwarders = {f1 = \"1@o2ib\"}\n[routes]\nnet = \"o2ib1\"\n"
	trace := func(owner int) string {
		path := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(path, nil, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("[source.lwfs]\nenabled = true\ntrace = %q\n", path)
	}
	const somebody = 60001
	for more, want := range map[string]uint64{
		trace(0):                            0,
		trace(somebody):                     1 << cap.DAC_READ_SEARCH,
		"[source.procfs]\nenabled = true\n": 0,
		lnet:                                1<<cap.NET_ADMIN | 1<<cap.SYS_ADMIN,
		"[source.diod]\nenabled = true\npid_file = \"/run/diod.pid\"\n": 1 << cap.SYS_PTRACE,
	} {
		file := writeConfig(t, "ws://127.0.0.1:1", strings.Repeat("x", 32), more)
		agent := exec.CommandContext(t.Context(), bin, "-c", file)
		printed, err := agent.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(printed)
		for lines.Scan() && !strings.Contains(lines.Text(), "agent started") {
		}
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", agent.Process.Pid))
		if err != nil || len(tasks) == 0 {
			t.Fatalf("%d threads: %v", len(tasks), err)
		}
		for _, task := range tasks {
			status, err := os.ReadFile(task)
			if err != nil {
				continue // a thread that ended
			}
			for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
				_, rest, _ := strings.Cut(string(status), set+":\t")
				var got uint64
				if _, err := fmt.Sscanf(rest, "%x", &got); err != nil || got != want {
					t.Errorf("%q: %s of %s is %x, want %x (%v)", more, set, task, got, want, err)
				}
			}
		}
		agent.Process.Kill()
		agent.Wait()
	}
}
