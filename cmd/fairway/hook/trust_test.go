package hook

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/remap/dispatch"
)

// TestHookTrustsNoEnvironment runs the program as LSF does, with the job's environment: neither another batch system's
// words in it nor what says where the daemon is and whom to trust counts.
func TestHookTrustsNoEnvironment(t *testing.T) {
	var got dispatch.Request
	addr := slurmDaemon(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&got)
		if r.Header.Get("Authorization") != "" {
			t.Error("the job's token was sent")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"job":"12","policy":"dfra"}`))
	})
	evil := slurmDaemon(t, func(http.ResponseWriter, *http.Request) { t.Error("the job's own daemon is asked") })
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-the-job"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"LSB_JOBID=12", "LSB_HOSTS=cn9", "LSFUSER=eve", "FAIRWAY_ADDR=" + evil, "FAIRWAY_SITE=elsewhere",
		"FAIRWAY_TOKEN_FILE=" + token, "SSL_CERT_FILE=/tmp/eve.pem", "HTTPS_PROXY=http://eve", "PATH=/home/eve"}
	env = append(env, slurmWords...)
	out, _ := hook(t, env, "dispatch", "--addr", addr, "--system", "lsf")
	if got.Job != "12" || got.User != "eve" || len(got.Nodes) != 1 || got.Nodes[0] != "cn9" {
		t.Errorf("sent %+v: %s", got, out)
	}
	if out, _ := hook(t, env, "dispatch", "--system", "lsf", "--within", "300ms"); !strings.Contains(out,
		"does not answer") {
		t.Errorf("without --addr it says %q", out)
	}
}

// slurmWords are of another user's job of Slurm's.
var slurmWords = []string{"SLURM_JOB_USER=alice", "SLURM_JOB_NODELIST=cn[1-4]", "SLURM_JOB_NAME=vasp"}

// TestEnvDirIsItsOwners: a link is not followed, and of what lies in the folder only what hooks write reaches a job.
func TestEnvDirIsItsOwners(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	addr := slurmDaemon(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(dispatch.Answer{Job: "12",
			Window: &dispatch.IOWindow{Text: "90.000@1795430000.000 0.000-12.000"}})
	})
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "job.12.env")
	for _, link := range []string{file + ".new", file} {
		if err := os.Symlink(victim, link); err != nil {
			t.Fatal(err)
		}
	}
	hook(t, slurmEnv, "dispatch", "--addr", addr, "--env-dir", dir)
	if b, err := os.ReadFile(victim); err != nil || string(b) != "kept" {
		t.Errorf("a link was followed: %q, %v", b, err)
	}
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		uid  int
		link bool
		want string
	}{
		"as it is written": {"FAIRWAY_IO_WINDOW=1\nROMIO_HINTS=/x\n", 0o644, -1, false,
			"export FAIRWAY_IO_WINDOW=1\nexport ROMIO_HINTS=/x\n"},
		"other names": {"LD_PRELOAD=/home/eve/x.so\nPATH=/home/eve\nROMIO_HINTS=/x\n", 0o644, -1, false,
			"export ROMIO_HINTS=/x\n"},
		"control letters":   {"ROMIO_HINTS=/x\x1b[2J\n", 0o644, -1, false, ""},
		"open to everybody": {"ROMIO_HINTS=/x\n", 0o666, -1, false, "want a file"},
		"another's":         {"ROMIO_HINTS=/x\n", 0o644, 4711, false, "want a file"},
		"a link":            {"ROMIO_HINTS=/x\n", 0o644, -1, true, "too many levels"},
	} {
		t.Run(name, func(t *testing.T) {
			os.Remove(file)
			at := file
			if c.link {
				at = filepath.Join(t.TempDir(), "elsewhere")
				if err := os.Symlink(at, file); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(at, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(at, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(at, c.uid, -1); err != nil {
				t.Skip("skipped: files cannot be given to others: ", err)
			}
			out, _ := hook(t, slurmEnv, "env", "--env-dir", dir)
			if strings.HasPrefix(c.want, "export") && out != c.want || !strings.Contains(out, c.want) ||
				c.want == "" && out != "" {
				t.Errorf("it prints %q, want %q", out, c.want)
			}
		})
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if out, _ := hook(t, slurmEnv, "env", "--env-dir", dir); !strings.Contains(out, "its owner alone") {
		t.Errorf("a folder that is open to everybody: %q", out)
	}
	out, _ := hook(t, slurmEnv, "dispatch", "--addr", addr, "--env-dir", dir)
	if !strings.Contains(out, "its owner alone") {
		t.Errorf("a folder that is open to everybody: %q", out)
	}
}

// TestNothingOfAnOlderJobOfItsNumber: numbers come again, and what was left for the job before is gone whether the
// daemon answers something, nothing, or not at all.
func TestNothingOfAnOlderJobOfItsNumber(t *testing.T) {
	addr := slurmDaemon(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(dispatch.Answer{Job: "12"})
	})
	for name, args := range map[string][]string{
		"nothing to say":         {"dispatch", "--addr", addr},
		"no daemon":              {"dispatch", "--addr", "unix:/nonexistent"},
		"a token that is not":    {"dispatch", "--addr", "http://127.0.0.1:1", "--token-file", "/nonexistent"},
		"its end, and no daemon": {"end", "--addr", "unix:/nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, of := range []string{"env", "romio", "window"} {
				old := filepath.Join(dir, "job.12."+of)
				if err := os.WriteFile(old, []byte("ROMIO_HINTS=/of/the/job/before\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, _ := hook(t, slurmEnv, append(args, "--env-dir", dir)...)
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left are %v, %v: the hook says %s", left, err, out)
			}
		})
	}
}
