package knfs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// buildPrograms builds what runs in the guests and beside them.
func buildPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range []string{"fairway", "fairway-agent", "fairway-demo", "fairwayd"} {
		c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "netgo,osusergo", "-o", dir+"/", "./"+p)
		c.Dir = "../.."
		if p != "fairwayd" {
			c.Env = append(os.Environ(), "CGO_ENABLED=0")
		}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", p, err, out)
		}
	}
	return dir
}

func startSite(t *testing.T, clients, gateways int) *Site {
	t.Helper()
	if missing := Missing(); len(missing) > 0 {
		t.Skipf("skipped: this machine lacks %v", missing)
	}
	bin := os.Getenv("FAIRWAY_BIN")
	if bin == "" {
		bin = buildPrograms(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := Start(ctx, Config{Programs: bin, Guest: []string{filepath.Join(bin, "fairway-demo"), "inside"},
		Clients: clients, Gateways: gateways})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the site started in %s", s.Started)
	return s
}

func TestSite(t *testing.T) {
	s := startSite(t, 2, 2)
	for _, n := range []string{"be1", "gw1", "gw2", "cn1", "cn2"} {
		out, err := s.Run(t.Context(), n, "grep nfs /proc/self/mounts; cat /proc/loadavg /proc/uptime; free -m|head -2; ps ax | tail -8")
		t.Logf("%s: %v\n%s", n, err, out)
	}
	out, err := s.Run(t.Context(), "cn1", "cd /mnt/pfs; time dd if=/dev/zero of=x bs=32k count=200 conv=fsync; time cat x >/dev/null; ls -l")
	t.Logf("%v %s", err, out)
	out, err = s.Run(t.Context(), "cn2", "cd /mnt/pfs; time dd if=x of=/dev/null bs=32k; ls -l")
	t.Logf("%v %s", err, out)
}
