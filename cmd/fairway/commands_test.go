package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/console/consoletest"
	"fairway/remap"
	"fairway/remap/desk"
)

// command runs one command line and returns what it printed and its exit code.
func command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		out.WriteString(err.Error())
	}
	return out.String(), exitCode(err)
}

func TestCommandsOnADaemon(t *testing.T) {
	addr := daemon(t, consoletest.New(240, 7, time.Now()))
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"jobs", program.Done, []string{"JOB", "88231", "ROMS", "wei", "480"}},
		{"job 88231", program.Done, []string{"240 nodes on fwd002", "plans P-000142", "volume 58 GB > 20 GB",
			"upgrade by policy dfra",
			"so far read 3e+09 B", "waited for fwd002 12 %", "41 ended runs like it", "I/O time: least",
			"above 32 and below 9 of 41", "neighbour 88260 LAMMPS", "P-000093"}},
		{"job 88190", program.Done, []string{"mode N-N", "64 nodes did I/O"}},
		{"job 1", program.NotFound, []string{`job "1"`}},
		{"job", program.Usage, []string{"fairway job --help"}},
		{"plans", program.Done, []string{"PLAN", "STATE"}},
		{"plan show P-9", program.NotFound, []string{"P-9"}},
		{"audit", program.Done, []string{"excluded", "disk errors since the night"}},
		{"audit --actor nobody", program.Done, []string{"SEQ"}},
		{"occupancy", program.Done, []string{"MIN %", "not counted"}},
		{"occupancy --span year", program.Usage, []string{"hour, day, month"}},
		{"canary fwd003", program.Done, []string{"fwd003 ms", "write   41", "peers: 117 forwarders"}},
		{"findings silence F-0091 --for 2h", program.Done, []string{"suspect, silent until "}},
		{"findings silence", program.Usage, []string{"fairway findings silence --help"}},
		{"canary", program.Usage, []string{"fairway canary --help"}},
		{"jobs --colour", program.Usage, []string{"--colour"}},
	} {
		out, code := command(t, append([]string{"--addr", addr}, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("fairway %s: exit code %d, want %d\n%s", c.args, code, c.code, out)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				t.Errorf("fairway %s does not say %q:\n%s", c.args, want, out)
			}
		}
	}
	out, _ := command(t, "--addr", addr, "--json", "job", "88231")
	var v struct {
		ID         string         `json:"id"`
		Forwarders map[string]int `json:"forwarders"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.ID != "88231" || v.Forwarders["fwd003"] != 40 {
		t.Errorf("--json: %v\n%.300s", err, out)
	}
	if out, code := command(t, "--addr", "unix:"+filepath.Join(t.TempDir(), "nobody"),
		"jobs"); code != program.Unreachable {
		t.Errorf("nobody listens: %d %s", code, out)
	}
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
