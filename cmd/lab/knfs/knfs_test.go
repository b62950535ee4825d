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
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // others than root run them, too
		t.Fatal(err)
	}
	for _, p := range []string{"fairway", "fairway-agent", "fairway-demo", "fairwayd"} {
		c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "netgo,osusergo", "-o", dir+"/",
			"./"+p)
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
	if n, err := Sweep(); err != nil || n > 0 {
		t.Logf("swept %d sites that were killed: %v", n, err)
	}
	bin := os.Getenv("FAIRWAY_BIN")
	if bin == "" {
		bin = buildPrograms(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
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
