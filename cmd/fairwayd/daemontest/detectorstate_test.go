package daemontest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDetectorsGoOnAfterARestart: the daemon saves its detectors when it ends, takes them up at its
// next start, and says so when it cannot.
func TestDetectorsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	d := newRealDaemon(t, "")
	state := filepath.Join(filepath.Dir(d.conf), "state", "detectors")
	restart := func() {
		if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := d.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		d.cmd = nil
	}
	logged := func(what string) {
		t.Helper()
		text, err := os.ReadFile(d.log.Name())
		if err != nil || !strings.Contains(string(text), what) {
			t.Errorf("%v: the log does not say %q:\n%s", err, what, text)
		}
	}
	restart()
	b, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	d.start()
	logged("the detectors go on from their saved state")
	restart()
	if err := os.WriteFile(state, b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	logged("the detectors begin anew")
	logged("the saved state of the detectors is damaged")
}
