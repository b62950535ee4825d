package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
)

func TestEnrolAndRevoke(t *testing.T) {
	dir := t.TempDir()
	c := defaultConfig()
	c.StateDir, c.Access.Enrolment.SecretFile = dir, filepath.Join(dir, "secret")
	if made, err := c.haveSecret(false); err != nil || made == "" {
		t.Fatalf("the secret: %q, %v", made, err)
	}
	if made, err := c.haveSecret(false); err != nil || made != "" {
		t.Errorf("the secret was made twice: %q, %v", made, err)
	}
	e := c.enrolment(nil)
	var out bytes.Buffer
	if err := enrol(&out, e, "cn5", ""); err != nil || !strings.HasPrefix(out.String(), "fwn1.") {
		t.Fatalf("printed %q, %v", out.String(), err)
	}
	if err := enrol(&out, e, "cn6", dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "cn6.token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the node's file: %v, %v", info, err)
	}
	if err := enrol(&out, e, "../cn7", dir); err == nil {
		t.Error("a name that leaves the directory was taken")
	}
	now := time.Unix(1_700_000_000, 0)
	if err := c.revoke([]string{"cn5"}, now); err != nil {
		t.Fatal(err)
	}
	if err := c.revoke([]string{"cn5"}, now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := c.revoke([]string{"cn6 1"}, now); err == nil {
		t.Error("a name with a space was taken")
	}
	got, err := readRevoked(c.revoked())
	if err != nil || len(got) != 1 || !got["cn5"].Equal(now) {
		t.Errorf("revoked %v, %v", got, err)
	}
	out.Reset()
	listed, err := c.listTokens()
	if err != nil || len(listed.Revoked) != 1 || listed.Revoked[0] != (revokedNode{"cn5", now.UTC()}) {
		t.Fatalf("listed %+v, %v", listed, err)
	}
	if err := listed.print(&out); err != nil || !strings.Contains(out.String(), "node cn5") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
	before, err := readSecrets(c.Access.Enrolment.SecretFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.haveSecret(true); err != nil {
		t.Fatal(err)
	}
	after, err := readSecrets(c.Access.Enrolment.SecretFile)
	if err != nil || len(after) != 2 || after[1] != before[0] || after[0] == before[0] {
		t.Errorf("rotated from %d to %d secrets, %v", len(before), len(after), err)
	}
}

func FuzzRevoked(f *testing.F) {
	f.Add([]byte("cn5 1700000000\n"))
	f.Add([]byte("cn5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		out := map[topology.NodeID]time.Time{}
		if parseRevoked(b, "f", out) == nil && bytes.Count(b, []byte("\n"))+1 < len(out) {
			t.Errorf("%d nodes from %q", len(out), b)
		}
	})
}
