package enrol

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
)

func TestEnrol(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if made, err := HaveSecret(secret, false); err != nil || made == "" {
		t.Fatalf("the secret: %q, %v", made, err)
	}
	if made, err := HaveSecret(secret, false); err != nil || made != "" {
		t.Errorf("the secret was made twice: %q, %v", made, err)
	}
	e := Tokens(secret, nil, nil)
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
	before, err := readSecrets(secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := HaveSecret(secret, true); err != nil {
		t.Fatal(err)
	}
	after, err := readSecrets(secret)
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
