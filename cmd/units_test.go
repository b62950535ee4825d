package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unit reads what a unit of packaging sets, the last value of each name.
func unit(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			out[key] = value
		}
	}
	return out
}

// TestUnitsLeaveNoPowerOver: the units keep what an operator relies on.
func TestUnitsLeaveNoPowerOver(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"fairwayd.service": {"User": "fairway", "PrivateUsers": "no", "PrivateDevices": "yes",
			"AmbientCapabilities": ""},
		"fairway-agent.service": {},
	} {
		got := unit(t, name)
		for _, yes := range []string{"NoNewPrivileges", "ProtectHome", "PrivateTmp", "RestrictNamespaces",
			"RestrictSUIDSGID",
			"ProtectKernelModules", "LockPersonality"} {
			want[yes] = "yes"
		}
		want["ProtectSystem"], want["CapabilityBoundingSet"] = "strict", ""
		for key, value := range want {
			if is, set := got[key]; !set || is != value {
				t.Errorf("%s: %s = %q, want %q", name, key, is, value)
			}
		}
		for _, set := range []string{"MemoryMax", "LimitNOFILE", "TasksMax", "SystemCallFilter"} {
			if got[set] == "" {
				t.Errorf("%s: %s is not set", name, set)
			}
		}
	}
}

// TestUnitsAreRatedSafe has systemd rate the units: 0 is the best, 10 the worst.
func TestUnitsAreRatedSafe(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze on this machine (Debian package systemd)")
	}
	for name, most := range map[string]float64{"fairwayd.service": 2, "fairway-agent.service": 5} {
		out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager",
			filepath.Join("..", "packaging", name)).CombinedOutput()
		m := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
		if m == nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		if rated, err := strconv.ParseFloat(string(m[1]), 64); err != nil || rated > most {
			t.Errorf("%s is rated %s, more than %g\n%s", name, m[1], most, out)
		}
	}
}
