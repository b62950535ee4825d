package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"fairway/anomaly"
)

// TestRealSlowForwarderIsFound runs the demo on the real testbed, under real jobs: the forwarder whose
// data calls are delayed is confirmed, named, and the only one accused.
func TestRealSlowForwarderIsFound(t *testing.T) {
	if why := cannotBuildNodes(); why != "" {
		t.Skipf("skipped: needs %s", why)
	}
	if os.Getenv("FAIRWAY_LONG") != "1" {
		t.Skip("skipped: takes two minutes; set FAIRWAY_LONG=1")
	}
	cmd := exec.CommandContext(t.Context(), demoPrograms(t), "demo", "--no-console", "--http", "127.0.0.1:0", "--forwarders", "4", "--nodes", "8", "--slow-after", "45s")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	socket := ""
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := regexp.MustCompile(`unix:(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			socket = m[1]
		}
		if regexp.MustCompile(`^first second`).MatchString(lines.Text()) {
			break
		}
	}
	const slow = "fwd001" // the forwarder of the third node, as cmd/fairwayd/demo_testbed.go chooses
	begun := time.Now()
	for time.Since(begun) < 150*time.Second {
		time.Sleep(time.Second)
		text, err := exec.CommandContext(t.Context(), binary(t, "fairway"), "--addr", "unix:"+socket, "--json", "findings").Output()
		var list []anomaly.Finding
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if f.Kind.Accuses() && f.Node != slow {
				t.Fatalf("an innocent forwarder is accused: %+v", f)
			}
			if f.Node == slow && f.State == anomaly.Confirmed {
				t.Logf("confirmed %s after the first second, the fault began at 45 s: %s; jobs %v", time.Since(begun).Round(time.Second), f.Sentence, f.Impact)
				return
			}
		}
	}
	t.Error("it was not found")
}
