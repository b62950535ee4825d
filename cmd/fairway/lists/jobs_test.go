package lists

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
)

func TestListsOfADaemon(t *testing.T) {
	s, _ := simsite.NewSlow(t, simsite.Options{})
	s.Run(0)
	job := string(s.TellJobs(1))
	flags := s.Flags(simsite.OperatorSecret)
	run := func(line string) (string, int) { return command(t, append(flags, strings.Fields(line)...)...) }
	for range 200 { // until the daemon shows the second in which the job runs
		if out, _ := run("jobs"); strings.Contains(out, job) {
			break
		}
		time.Sleep(50 * time.Millisecond)
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
		{"nodes", program.Done, []string{"NODE", "fwd001"}},
		{"node fwd001", program.Done, []string{"fwd001", "METRIC", "read_bytes"}},
		{"occupancy", program.Done, []string{"MIN %"}},
		{"occupancy --span year", program.Usage, []string{"hour, day, month"}},
		{"alerts", program.Done, []string{"no [[alert.receiver]]"}},
		{"sessions", program.Done, []string{"BEGUN"}},
		{"report", program.Done, []string{"# "}},
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
