package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairwayd/enrol"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/alert"
	"fairway/webui/access"
	"fairway/webui/api"
)

// TestRevocationsOutliveTheDaemon: whose tokens are refused is refused after a restart, by a daemon that was restored
// from a backup, and where old records have left the journal; so is what an earlier version kept in a file.
func TestRevocationsOutliveTheDaemon(t *testing.T) {
	c := testConf(t)
	c.Access.Enrolment.SecretFile = filepath.Join(t.TempDir(), "secret")
	if _, err := enrol.HaveSecret(c.Access.Enrolment.SecretFile, false); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(c.StateDir, "revoked-nodes")
	write(t, older, "cn9 1700000000\n")
	if err := os.Chmod(c.StateDir, 0o750); err != nil {
		t.Fatal(err)
	}
	token := func(n topology.NodeID) string {
		text, err := enrol.Tokens(c.Access.Enrolment.SecretFile, nil, nil).NodeToken(n, time.Unix(1_600_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	revoked := func(when string, d *daemon, nodes ...topology.NodeID) {
		t.Helper()
		for _, n := range nodes {
			if code := connects(t, d, token(n)); code != http.StatusUnauthorized {
				t.Fatalf("%s: the revoked token of %s gets %d", when, n, code)
			}
		}
		if code := connects(t, d, token("cn7")); code == http.StatusUnauthorized {
			t.Errorf("%s: another node's token is refused", when)
		}
	}
	d := start(t, c)
	revoked("by the older file", d, "cn9")
	// The journal takes it as soon as the daemon leads, and the file goes; else the package's time runs out.
	for _, err := os.Stat(older); err == nil; _, err = os.Stat(older) {
		time.Sleep(20 * time.Millisecond)
	}
	revoked("recorded", d, "cn9")
	begun := time.Now().Truncate(time.Second)
	if err := enrol.Revoke(t.Context(), c.Listen.Socket, []string{"cn5", "cn6"}); err != nil {
		t.Fatal(err)
	}
	for _, nodes := range [][]string{{"cn\x1b5"}, {""}, nil} {
		if err := enrol.Revoke(t.Context(), c.Listen.Socket, nodes); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("the nodes %q: %v", nodes, err)
		}
	}
	revoked("at once", d, "cn5", "cn6", "cn9")
	if _, err := d.desk.Archive(t.Context(), time.Now().Add(time.Hour), 1); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	succeed(t, c, "backup", copied)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = start(t, c)
	revoked("after a restart", d, "cn5", "cn6", "cn9")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(c.StateDir); err != nil {
		t.Fatal(err)
	}
	succeed(t, c, "restore", copied)
	d = start(t, c)
	defer d.Close()
	revoked("after a restore", d, "cn5", "cn6", "cn9")
	listed := succeed(t, c, "tokens")
	for _, n := range []string{"cn5", "cn6", "cn9"} {
		if !strings.Contains(listed, "node "+n) {
			t.Errorf("%s is not listed:\n%s", n, listed)
		}
	}
	at := regexp.MustCompile(`node cn5 +revoked +at (\S+);`).FindStringSubmatch(listed)
	if at == nil {
		t.Fatalf("when cn5 was revoked is not listed:\n%s", listed)
	}
	if when, err := time.Parse(time.RFC3339, at[1]); err != nil || when.Before(begun) || when.After(time.Now()) {
		t.Errorf("cn5 was revoked at %s, after %s (%v)", when, begun, err)
	}
}

// connects is the answer to an agent's first request with a token.
func connects(t *testing.T, d *daemon, token string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+d.listeners.Addr(access.TCP)+"/api/v1/ingest", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// TestEveryFileOfTheStateHasItsPlace asks of each file of a state directory whether a backup has it and whether the
// daemons of a cluster share it; one that neither holds for says why not.
func TestEveryFileOfTheStateHasItsPlace(t *testing.T) {
	known := map[string]struct {
		backup, shared bool
		why            string
	}{
		"journal":       {true, true, ""},
		"history":       {true, false, "jobs' starts and ends are shared as notes; an old run is each daemon's own"},
		"store":         {true, false, "agents send each second to every daemon"},
		"archive":       {true, false, "each daemon's own: made of its seconds and of logs that were imported there"},
		"alerts":        {true, false, "who was called by this daemon while it led; the next one may call again"},
		"detectors":     {true, false, "evidence of each daemon's own seconds"},
		"format":        {true, false, "the version of this directory"},
		"cluster":       {false, false, "Raft's own log: a restored daemon takes part with an empty one"},
		"revoked-nodes": {false, false, "of an earlier version; it goes into the journal at the start"},
		"spool-KIND":    {false, false, "seconds on their way to the store's server, which is backed up there"},
		"migrate.json":  {false, false, "how far a migration between stores has come; it begins anew without"},
	}
	for name, k := range known {
		if !(k.backup && k.shared) && k.why == "" {
			t.Errorf("%s is not in the backup and shared, and nothing says why", name)
		}
	}
	// What a daemon makes, and what the source names: a file that is made in rare cases is there too.
	found := map[string]bool{}
	c := testConf(t)
	c.Alert.Receivers = []alert.Receiver{{Name: "n", Kind: "exec", Command: []string{"true"}}}
	d := start(t, c)
	if _, err := d.desk.Exclude(t.Context(), remap.Person{Name: "o", Role: remap.Operator}, "fwd1", time.Hour,
		remap.Answer{Reason: "a test of the state"}); err == nil {
		t.Log("excluded")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(c.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		found[e.Name()] = true
	}
	sources, err := filepath.Glob("*.go")
	inside, insideErr := filepath.Glob("*/*.go")
	if err := errors.Join(err, insideErr); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`filepath\.Join\([\w.]*[sS]tateDir, (?:fmt\.Sprintf\()?("[^"]+"|\w+)`)
	for _, path := range append(sources, inside...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllSubmatch(b, -1) {
			name := strings.Trim(string(m[1]), `"`)
			switch name {
			case "formatFile":
				name = "format"
			case "olderRevoked":
				name = "revoked-nodes"
			case "spool-":
				name = "spool-KIND"
			case "migrate-%s-%s.json":
				name = "migrate.json"
			case "journal.*.gz":
				name = "journal"
			case "name": // a copy's
				continue
			}
			found[name] = true
		}
	}
	for name := range found {
		if _, ok := known[name]; !ok {
			t.Errorf("%s of the state directory: is it in the backup, and shared in a cluster? if not, why", name)
		}
	}
	for name := range known {
		if !found[name] {
			t.Errorf("%s is in no state directory", name)
		}
	}
	copied := filepath.Join(t.TempDir(), "copy")
	succeed(t, c, "backup", copied)
	for _, e := range entries {
		_, err := os.Stat(filepath.Join(copied, e.Name()))
		if is := err == nil; is != known[e.Name()].backup {
			t.Errorf("%s is in the backup: %v", e.Name(), is)
		}
	}
}
