package decisions

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
)

// command runs one command line and returns what it printed and its exit code.
func command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, _, err := manual.Call(t, cli.NewRoot(Add), "", args...)
	if err != nil {
		out += err.Error()
	}
	return out, cli.Code(err)
}

func TestAuditVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	sit := remap.BuildSituation(remap.SituationParts{Machine: &topology.Machine{Nodes: []topology.Node{{ID: "fwd001",
		Role: topology.Forwarder}}}})
	set := desk.DefaultSettings()
	set.HealthyFloor, set.MaxExcluded = 0, 1
	d, _, err := desk.Open(desk.Config{Settings: set, Path: path,
		Situation: func() *remap.Situation { return sit }})
	if err != nil {
		t.Fatal(err)
	}
	by := remap.Person{Name: "olga", Role: remap.Operator}
	if _, err := d.Exclude(t.Context(), by, "fwd001", time.Hour,
		remap.Answer{Reason: "it is very slow today"}); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if out, code := command(t, "audit", "verify", path); code != program.Done || !strings.Contains(out, "is whole") {
		t.Errorf("%d %s", code, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(b, []byte("very slow"), []byte("very fast"), 1)
	if bytes.Equal(b, changed) {
		t.Fatal("the reason is not in the journal")
	}
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := command(t, "audit", "verify", path); code != program.Failed || !strings.Contains(out, "damaged") {
		t.Errorf("a changed journal: %d %s", code, out)
	}
}
