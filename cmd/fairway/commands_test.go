package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairway/cli"
	"fairway/cmd/lab/conform/manual"
	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
)

// command runs one command line and returns what it printed and its exit code.
func command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, _, err := manual.Call(t, newRoot(), "", args...)
	if err != nil {
		out += err.Error()
	}
	return out, cli.Code(err)
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
