package attack

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs a command of fairwayd with the site's settings and returns what it prints.
func (s *site) run(args ...string) string {
	s.t.Helper()
	args = append(args, "--config", filepath.Join(s.dir, "fairwayd.toml"))
	out, err := exec.Command(binary(s.t, "fairwayd"), args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("fairwayd %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// enrolled is the settings of nodes' own tokens.
func enrolled(t *testing.T) string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "nodes")
	if err := os.WriteFile(secret, []byte("the-secret-behind-the-tokens-of-nodes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[access.enrolment]\nsecret_file = %q\n", secret)
}

// letsIn waits at most so long for a daemon to refuse an agent's token, and says whether it did not.
func (s *site) letsIn(token string, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if s.ask("GET", "/api/v1/ingest", token, "").code == http.StatusUnauthorized {
			return false
		}
	}
	return true
}

// TestAttackRevoked: a thief of a node's token tries it at each daemon of three after it was revoked at one, and at a
// daemon that was restored from its backup.
func TestAttackRevoked(t *testing.T) {
	all, _ := threeDaemons(t, enrolled(t), nil)
	leads(t, all)
	token := all[0].run("enroll", "cn1")
	attack(t, all[2], "a stolen token, revoked at another daemon", func() string {
		if !all[2].letsIn(token, time.Second) {
			t.Error("the token did not open before it was revoked")
		}
		all[1].run("tokens", "revoke", "cn1")
		for i, s := range all {
			if s.letsIn(token, 20*time.Second) {
				t.Errorf("daemon %d lets the thief in", i)
			}
		}
		return "401 at all three"
	})
	alone := newSite(t, enrolled(t))
	token = alone.run("enroll", "cn1")
	alone.run("tokens", "revoke", "cn1")
	attack(t, alone, "a stolen token, and a daemon that was restored from its backup", func() string {
		if alone.letsIn(token, 20*time.Second) {
			t.Error("the daemon lets the thief in at once")
		}
		return "401"
	})
	copied := filepath.Join(alone.dir, "copy")
	alone.run("backup", copied)
	alone.kill()
	if err := os.RemoveAll(filepath.Join(alone.dir, "state")); err != nil {
		t.Fatal(err)
	}
	alone.run("restore", copied)
	alone.start()
	if alone.letsIn(token, 3*time.Second) {
		t.Error("the restored daemon lets the thief in")
	}
}
