package attack

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAttackLogs: a user writes a log with somebody else's job number among the logs that are imported, and leaves a
// file there that is read for ever.
func TestAttackLogs(t *testing.T) {
	s := newSite(t, "")
	logs := t.TempDir()
	copied := func(from, to string, uid int) {
		b, err := os.ReadFile(filepath.Join("../../../collector/logs", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(logs, to), b, 0o644)
		}
		if err == nil {
			err = os.Chown(filepath.Join(logs, to), uid, -1)
		}
		if err != nil {
			t.Skip("skipped: files cannot be given to others: ", err)
		}
	}
	// The accounts say that job 7700001 is another user's; the log's file is of uid 4711.
	copied("darshan/testdata/darshan/wave-3.10.darshan", "of-eve.darshan", 4711)
	copied("slurm/testdata/wave.slurm", "accounts", 0)
	attack(t, s, "a log with somebody else's job number", func() string {
		s.run("import", logs)
		var res struct{ Rows [][]any }
		text := s.run("query", "--json", "SELECT job_id FROM job")
		if err := json.Unmarshal([]byte(text), &res); err != nil || len(res.Rows) != 1 {
			t.Errorf("the archive has %s: %v", text, err)
		}
		if a := s.askLocal("GET", "/api/v1/jobs/7700001/rootcause", ""); a.code != 404 {
			t.Errorf("the job's page has the log: %d %.300s", a.code, a.body)
		}
		return "a row that decides nothing"
	})
	f, err := os.Create(filepath.Join(logs, "sparse.darshan"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip("skipped: this file system has no such files: ", err)
	}
	f.Close()
	few, err := os.Create(filepath.Join(logs, "bomb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(few)
	_, err = z.Write([]byte("JobID|JobName|User|Account|Partition|State|Submit|Start|End|NNodes|NodeList\n" +
		strings.Repeat("1|n|u|a|p|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|1|"+
			"cn[1-65000]\n", 20000)))
	if err := errors.Join(err, z.Close(), few.Chown(4711, -1), few.Close()); err != nil {
		t.Fatal(err)
	}
	attack(t, s, "a sparse file of 1 TB among the logs, and one of 60 kB that unpacks to 30 GB", func() string {
		c := exec.Command("prlimit", "--data=3000000000", binary(t, "fairwayd"), "import", logs, "--config",
			filepath.Join(s.dir, "fairwayd.toml"))
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case err = <-ended:
		case <-time.After(time.Minute):
			t.Error("the import reads on after a minute")
			_ = c.Process.Signal(syscall.SIGTERM)
			select {
			case err = <-ended:
			case <-time.After(time.Minute):
				t.Error("the import ignores SIGTERM")
				_ = c.Process.Kill()
				err = <-ended
			}
		}
		if !strings.Contains(out.String(), "sparse.darshan: it has") {
			t.Errorf("the import does not name it: %s, %v", out.String(), err)
		}
		if !strings.Contains(out.String(), "bomb.gz: the accounts of") {
			t.Errorf("a user's accounts are not refused: %s, %v", out.String(), err)
		}
		return "refused by name"
	})
}
