package host

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"
)

// TestOpenFilesAreLogged: the log says how many agents the limit allows that is in force then.
func TestOpenFilesAreLogged(t *testing.T) {
	var text strings.Builder
	RaiseOpenFiles(slog.New(slog.NewTextHandler(&text, nil)))
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "agents_at_most=") || l.Cur < agentsFor(l.Cur) {
		t.Errorf("limit %d: %s", l.Cur, text.String())
	}
	if agentsFor(20000) != 19000 || agentsFor(10) != 0 {
		t.Errorf("20,000 files are for %d agents, 10 for %d", agentsFor(20000), agentsFor(10))
	}
}
