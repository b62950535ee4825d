package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
	"fairway/collector/topology"
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
	s, slow := simsite.NewSlow(t, simsite.Options{})
	s.Run(0)
	job := string(s.TellJobs(1))
	flags := as(t, s, simsite.OperatorSecret)
	run := func(line string) (string, int) { return command(t, append(flags, strings.Fields(line)...)...) }
	for range 200 { // until the daemon shows the second in which the job runs
		if out, _ := run("jobs"); strings.Contains(out, job) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	finding := ""
	for _, f := range s.Loop.Findings() {
		if f.Kind.Accuses() && f.Open() {
			finding = f.ID
		}
	}
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"jobs", program.Done, []string{"JOB", job}},
		{"job " + job, program.Done, []string{"nodes on fwd", "by policy dfra", "1 ended run like it"}},
		{"job 87012", program.Done, []string{"nodes did I/O"}},
		{"job 1", program.NotFound, []string{`job "1"`}},
		{"job", program.Usage, []string{"fairway job --help"}},
		{"plans", program.Done, []string{"PLAN", "STATE"}},
		{"plan show P-9", program.NotFound, []string{"P-9"}},
		{"exclude " + string(slow) + " --reason its-disk-is-dying", program.Done, nil},
		{"audit", program.Done, []string{"exclude", "its-disk-is-dying"}},
		{"exclusions", program.Done, []string{string(slow), "its-disk-is-dying"}},
		{"drain fwd007 --from 2199-01-01T00:00:00Z --reason new-firmware", program.Usage, []string{"--maintenance"}},
		{"drain fwd007 --maintenance --from tomorrow --reason new-firmware", program.Usage, []string{"--from"}},
		{"audit --actor nobody", program.Done, []string{"SEQ"}},
		{"occupancy", program.Done, []string{"MIN %"}},
		{"occupancy --span year", program.Usage, []string{"hour, day, month"}},
		{"canary fwd008", program.Done, []string{"fwd008 ms", "write "}},
		{"findings silence " + finding + " --for 2h", program.Done, []string{", silent until "}},
		{"findings silence", program.Usage, []string{"fairway findings silence --help"}},
		{"canary", program.Usage, []string{"fairway canary --help"}},
		{"jobs --colour", program.Usage, []string{"--colour"}},
	} {
		out, code := run(c.args)
		if code != c.code {
			t.Errorf("fairway %s: exit code %d, want %d\n%s", c.args, code, c.code, out)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				t.Errorf("fairway %s does not say %q:\n%s", c.args, want, out)
			}
		}
	}
	out, _ := run("--json job " + job)
	var v struct {
		ID         string         `json:"id"`
		Forwarders map[string]int `json:"forwarders"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.ID != job || len(v.Forwarders) == 0 {
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
