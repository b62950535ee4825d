package decisions

import (
	"strings"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/cmd/program"
)

func TestDecisionsOnADaemon(t *testing.T) {
	s, slow := simsite.NewSlow(t, simsite.Options{})
	s.Run(0)
	s.TellJobs(1)
	flags := s.Flags(simsite.OperatorSecret)
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
		{"plans", program.Done, []string{"PLAN", "STATE"}},
		{"plan", program.Usage, []string{"plan needs an ID"}},
		{"plan P-9", program.NotFound, []string{"P-9"}},
		{"plan show P-9", program.NotFound, []string{"P-9"}},
		{"plan reject P-9 --reason no-such-plan", program.NotFound, []string{"P-9"}},
		{"plan approve P-9 --preview x", program.Usage, []string{"--preview needs --reason"}},
		{"remap c00000 --to nowhere --reason its-forwarder-is-slow", program.Usage, []string{"nowhere"}},
		{"exclude " + string(slow) + " --reason its-disk-is-dying", program.Done, []string{" is drained until "}},
		{"audit", program.Done, []string{"exclude", "its-disk-is-dying"}},
		{"audit --actor nobody", program.Done, []string{"SEQ"}},
		{"exclusions", program.Done, []string{string(slow), "its-disk-is-dying"}},
		{"return " + string(slow) + " --reason its-disk-was-replaced", program.Done,
			[]string{string(slow) + " is in allocation again; drained still: 0 forwarders\n"}},
		{"exclusions", program.Done, []string{"no forwarder is drained"}},
		{"drain fwd007 --from 2199-01-01T00:00:00Z --reason new-firmware", program.Usage, []string{"--maintenance"}},
		{"drain fwd007 --maintenance --from tomorrow --reason new-firmware", program.Usage, []string{"--from"}},
		{"findings", program.Done, []string{finding}},
		{"findings " + finding, program.Done, []string{finding, string(slow), "by detectors"}},
		{"findings silence " + finding + " --for 2h", program.Done, []string{", silent until "}},
		{"findings silence", program.Usage, []string{"fairway findings silence --help"}},
		{"findings note " + finding + " --reason the-vendor-knows", program.Done, []string{finding}},
		{"standing", program.Done, []string{"APPLICATION"}},
		{"standing allow --app wrf --reason wrf-may-always-move", program.Done, []string{"plans for wrf of user all"}},
		{"standing revoke S-1 --reason none-of-that-name", program.NotFound, []string{"S-1"}},
		{"rules", program.Done, []string{"any other job that waits"}},
		{"rules test", program.Done, []string{"the rules would have moved 0"}},
	} {
		out, code := command(t, append(flags, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("fairway %s: exit code %d, want %d\n%s", c.args, code, c.code, out)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				t.Errorf("fairway %s does not say %q:\n%s", c.args, want, out)
			}
		}
	}
}
