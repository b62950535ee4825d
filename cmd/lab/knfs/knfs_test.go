package knfs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
)

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

func startSite(t *testing.T, clients, gateways int) *Site {
	t.Helper()
	if missing := Missing(); len(missing) > 0 {
		t.Skipf("skipped: this machine lacks %v", missing)
	}
	if n, err := Sweep(); err != nil || n > 0 {
		t.Logf("swept %d sites that were killed: %v", n, err)
	}
	bin, err := programs.Dir("fairway", "fairway-agent", "fairway-demo", "fairwayd") // in the guests and beside them
	if err != nil {
		t.Fatal(err)
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
