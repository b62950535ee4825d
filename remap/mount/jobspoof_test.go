package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fairway/collector/topology"
)

// TestWhoseJobAProcessIs: a number in the environment counts below a step of that job that root runs, and nowhere else.
func TestWhoseJobAProcessIs(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, parent, uid int, title string) {
		dir := filepath.Join(proc, fmt.Sprint(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (a name) x) S %d 1 1 0", pid, parent)
		for name, text := range map[string]string{"stat": stat, "cmdline": title + "\x00"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(dir, uid, -1); err != nil {
			t.Skip("skipped: files cannot be given to others: ", err)
		}
	}
	process(10, 1, 0, "slurmstepd: [12.batch]")
	process(11, 10, 1001, "/bin/sh")
	process(12, 11, 1001, "roms")
	process(20, 1, 1002, "slurmstepd: [12.0]") // anybody may call itself so
	process(21, 20, 1002, "evil")
	process(30, 1, 0, "slurmstepd: [112.0]")
	process(31, 30, 1002, "evil")
	process(41, 1, 1002, "evil")
	for _, c := range []struct {
		pid  uint32
		id   topology.JobID
		want bool
	}{{12, "12", true}, {11, "12", true}, {12, "1", false}, {21, "12", false}, {31, "12", false}, {41, "12", false},
		{99, "12", false}} {
		if got := belowStep(proc, c.pid, c.id); got != c.want {
			t.Errorf("process %d and job %s: %v", c.pid, c.id, got)
		}
	}
	if !ownedByRoot(proc, 10) || ownedByRoot(proc, 20) {
		t.Error("root's processes are not known")
	}
}

// TestWhoseJobAControlGroupIs: Slurm's groups are known by either plug-in, those that a user names alike are not.
func TestWhoseJobAControlGroupIs(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n":                                      "12",
		"0::/system.slice/cn7_slurmstepd.scope/job_12/step_batch\n":                                          "12",
		"0::/../../system.slice/slurmstepd.scope/job_12\n":                                                   "12",
		"11:cpuset:/\n4:memory:/slurm/uid_1001/job_12/step_0/task_0\n1:name=systemd:/system.slice/x\n":       "12",
		"4:freezer:/slurm_cn7/uid_1001/job_12\n":                                                             "12",
		"0::/system.slice/slurmstepd.scope/job_12/step_0/user/slurm/uid_1/job_99/\n":                         "12",
		"0::/user.slice/user-1002.slice/user@1002.service/job_99\n":                                          "",
		"0::/user.slice/user-1002.slice/user@1002.service/app.slice/slurmstepd.scope/job_99/step_0\n":        "",
		"0::/user.slice/user-1002.slice/user@1002.service/slurm/uid_1001/job_99\n":                           "",
		"0::/user.slice/user-1002.slice/x\n1::/system.slice/slurmstepd.scope/job_x\n":                        "",
		"0::/user.slice/user-1002.slice/user@1002.service/a\\012 0::\\system.slice/slurmstepd.scope/job_9\n": "",
	} {
		got := ""
		if m := slurmCgroup.FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%q is of job %q, want %q", text, got, want)
		}
	}
}
