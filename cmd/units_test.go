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
		"fairway-queue.service": {"CapabilityBoundingSet": "CAP_NET_BIND_SERVICE", "PrivateDevices": "yes"},
	} {
		got := unit(t, name)
		for _, yes := range []string{"NoNewPrivileges", "ProtectHome", "PrivateTmp", "RestrictNamespaces",
			"RestrictSUIDSGID",
			"ProtectKernelModules", "LockPersonality"} {
			want[yes] = "yes"
		}
		want["ProtectSystem"] = "strict"
		if _, some := want["CapabilityBoundingSet"]; !some {
			want["CapabilityBoundingSet"] = ""
		}
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

// TestMountUnitIsSeenByTheNode: what gives a unit a mount namespace of its own would hide the mount from jobs, and
// a stop of the mount by a stop of all its processes at once would cut off those that use it.
func TestMountUnitIsSeenByTheNode(t *testing.T) {
	got := unit(t, "fairway-mount@.service")
	for _, hides := range []string{"ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateMounts",
		"ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectClock",
		"ProtectProc", "ReadWritePaths", "ReadOnlyPaths", "InaccessiblePaths", "BindPaths", "RootDirectory",
		"TemporaryFileSystem", "DynamicUser"} {
		if v, set := got[hides]; set {
			t.Errorf("%s = %s: nobody else would see the mount", hides, v)
		}
	}
	for key, want := range map[string]string{"NoNewPrivileges": "yes", "RestrictSUIDSGID": "yes",
		"CapabilityBoundingSet": "CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_READ_SEARCH", "KillMode": "mixed"} {
		if got[key] != want {
			t.Errorf("%s = %q, want %q", key, got[key], want)
		}
	}
}

// TestUnitsAreRatedSafe has systemd rate the units: 0 is the best, 10 the worst.
func TestUnitsAreRatedSafe(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze on this machine (Debian package systemd)")
	}
	for name, most := range map[string]float64{"fairwayd.service": 2, "fairway-agent.service": 5,
		"fairway-queue.service": 3, "fairway-mount@.service": 4.4} {
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
