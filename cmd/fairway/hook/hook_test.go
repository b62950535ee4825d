package hook

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// hook runs the real program as Slurm's controller does: without PATH, HOME or SLURM_CONF.
func hook(t *testing.T, env []string, args ...string) (out string, took time.Duration) {
	t.Helper()
	path, err := programs.Path("fairway")
	if err != nil {
		t.Fatal(err)
	}
	for system, id := range map[string]string{"slurm": "SLURM_JOB_ID=", "pbs": "PBS_JOBID="} {
		if slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, id) }) && len(args) > 0 {
			args = append(args[:len(args):len(args)], "--system", system)
		}
	}
	cmd := exec.Command(path, append([]string{"hook"}, args...)...)
	cmd.Env = env
	begun := time.Now()
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("hook %v: %v\n%s", args, err, b)
	}
	return string(b), time.Since(begun)
}

var slurmEnv = []string{"SLURM_JOB_ID=12", "SLURM_JOB_NODELIST=cn[01-02]", "SLURM_JOB_NAME=run.sh",
	"SLURM_JOB_USER=wei", "SLURM_JOB_ACCOUNT=(null)", "SLURM_JOB_COMMENT=big app=ROMS"}

// slurmDaemon answers the hooks' requests with handle.
func slurmDaemon(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: handle}
	var wait sync.WaitGroup
	wait.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Close(); wait.Wait() })
	return "unix:" + path
}

// TestHookFailsOpen: whatever is wrong, the hook says so, exits with 0 and does not hold the job.
func TestHookFailsOpen(t *testing.T) {
	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) })
	deaf, err := net.Listen("unix", filepath.Join(t.TempDir(), "deaf.sock")) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	stop, fifo := filepath.Join(t.TempDir(), "nothing"), filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"no daemon", slurmEnv, []string{"dispatch", "--addr", "unix:" + stop}, "fairwayd does not answer"},
		{"a daemon that hangs", slurmEnv,
			[]string{"dispatch", "--addr", slurmDaemon(t, func(http.ResponseWriter, *http.Request) { <-hung })},
			"does not answer"},
		{"a daemon that is stopped", slurmEnv, []string{"end", "--addr", "unix:" + deaf.Addr().String()},
			"does not answer"},
		{"a daemon that refuses", slurmEnv,
			[]string{"dispatch", "--addr",
				slurmDaemon(t, func(w http.ResponseWriter,
					r *http.Request) {
					api.WriteProblem(w, r, api.ErrSignIn)
				})}, "not signed in"},
		{"an answer that is not JSON", slurmEnv,
			[]string{"dispatch", "--addr",
				slurmDaemon(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) })},
			"not what this version"},
		{"a plan that never comes to an end", slurmEnv,
			[]string{"dispatch", "--addr", slurmDaemon(t, answer(dispatch.Answer{Plan: "P-1", State: "applying"}))},
			"P-1 is still applying"},
		{"no Slurm", nil, []string{"dispatch", "--addr", "unix:" + stop}, "give --system slurm"},
		{"a bad host list", append(slurmEnv[:1:1], "SLURM_JOB_NODELIST=cn[1-"),
			[]string{"dispatch", "--addr", "unix:" + stop}, "SLURM_JOB_NODELIST: bad host list"},
		{"a bad flag", slurmEnv, []string{"dispatch", "--adr", "x"}, "unknown flag"},
		{"no token", slurmEnv, []string{"end", "--token-file", stop}, "token file"},
		{"no verb", slurmEnv, nil, "needs a verb"},
		{"a list of nodes that nobody writes", []string{"PBS_JOBID=12.pbs01", "PBS_NODEFILE=" + fifo},
			[]string{"dispatch", "--addr", "unix:" + stop}, "it hung for longer than --within 300ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			within := []string{"--within", "300ms"}
			switch c.name {
			case "no verb":
				within = nil
			// these answer, on a busy machine late
			case "a daemon that refuses", "an answer that is not JSON", "a plan that never comes to an end":
				within[1] = "5s"
			}
			out, took := hook(t, c.env, append(c.args, within...)...)
			if !strings.Contains(out, c.want) {
				t.Errorf("it says %q, without %q", out, c.want)
			}
			if took > time.Minute { // of 300 ms: it waited for the daemon, and not for a busy machine
				t.Errorf("it held the job for %s", took)
			}
		})
	}
}

func answer(a dispatch.Answer) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(a) }
}

func TestHookTellsTheJobAndWaitsForItsMove(t *testing.T) {
	asked := 0
	addr := slurmDaemon(t, func(w http.ResponseWriter, r *http.Request) {
		var q dispatch.Request
		err := json.NewDecoder(r.Body).Decode(&q)
		if err != nil || r.URL.Path != "/api/v1/dispatch" || q.Job != "12" || q.App != "ROMS" || q.User != "wei" ||
			q.Project != "" || len(q.Nodes) != 2 || q.Nodes[1] != "cn02" {
			t.Errorf("%s: %+v, %v", r.URL.Path, q, err)
		}
		a := dispatch.Answer{Plan: "P-000001", State: "applying"}
		if asked++; asked == 3 {
			a.State = "applied"
		}
		a.Decision.Action, a.Decision.Count = "upgrade", 4
		answer(a)(w, r)
	})
	out, _ := hook(t, slurmEnv, "dispatch", "--addr", addr)
	if asked != 3 || !strings.HasPrefix(out, "fairway: job 12: upgrade on 4 forwarders, plan P-000001 applied, ") {
		t.Errorf("asked %d times; %q", asked, out)
	}
	end := slurmDaemon(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/jobs/12/end" || r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("%s %v", r.URL.Path, r.Header)
		}
		_ = json.NewEncoder(w).Encode(dispatch.Ended{Known: true, Plans: []string{"P-000001"}})
	})
	if out, _ := hook(t, slurmEnv, "end", "--addr", end); out != "fairway: job 12 has ended; plans taken back: 1\n" {
		t.Errorf("%q", out)
	}
}

// TestHookPassesTheWindow: the window of the daemon's answer reaches the job by a file that its environment names, and
// goes with it; those of the other running jobs are written anew at each start and end.
func TestHookPassesTheWindow(t *testing.T) {
	var given atomic.Bool
	given.Store(true)
	addr := slurmDaemon(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/end") {
			_ = json.NewEncoder(w).Encode(dispatch.Ended{Job: "12", Known: true,
				Windows: map[topology.JobID]string{"11": "60.000@1795430100.000 0.000-30.000"}})
			return
		}
		a := dispatch.Answer{Job: "12"}
		if given.Load() {
			a.Windows = map[topology.JobID]string{"11": "90.000@1795430000.000 40.000-52.000"}
			a.Window = &dispatch.IOWindow{Text: "90.000@1795430000.000 0.000-12.000",
				Words: "I/O window 12 s every 90 s", StartInSeconds: 41}
			a.Given = []string{"I/O window 12 s every 90 s, best started in 41 s"}
		}
		_ = json.NewEncoder(w).Encode(a)
	})
	dir := t.TempDir()
	out, _ := hook(t, slurmEnv, "dispatch", "--addr", addr, "--env-dir", dir)
	if !strings.Contains(out, "fairway: job 12: I/O window 12 s every 90 s, best started in 41 s") {
		t.Errorf("dispatch says %q", out)
	}
	file := filepath.Join(dir, "job.12.window")
	if out, _ := hook(t, slurmEnv, "env", "--env-dir", dir); out != "export FAIRWAY_IO_WINDOW="+file+"\n" {
		t.Errorf("the environment is %q, expected %s", out, file)
	}
	other := filepath.Join(dir, "job.11.window")
	for path, every := range map[string]time.Duration{file: 90 * time.Second, other: 90 * time.Second} {
		if w, err := readWindow(path); err != nil || w.Every != every || w.Open[0].End == 0 {
			t.Errorf("%s holds %v, %v", path, w, err)
		}
	}
	if out, _ := hook(t, slurmEnv, "end", "--addr", addr, "--env-dir", dir); !strings.Contains(out, "has ended") {
		t.Errorf("end says %q", out)
	}
	if w, err := readWindow(other); err != nil || w.Every != time.Minute {
		t.Errorf("after an end the other one's window is %v, %v", w, err)
	}
	if _, err := readWindow(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ended job's window is still there: %v", err)
	}
	hook(t, slurmEnv, "dispatch", "--addr", addr, "--env-dir", dir)
	if w, err := readWindow(other); err != nil || w.Every != time.Minute {
		t.Errorf("an older window took the newer one's place: %v, %v", w, err)
	}
	hook(t, slurmEnv, "end", "--addr", addr, "--env-dir", dir)
	given.Store(false)
	hook(t, slurmEnv, "dispatch", "--addr", addr, "--env-dir", dir)
	if out, _ := hook(t, slurmEnv, "env", "--env-dir", dir); out != "" {
		t.Errorf("a job without a window gets %q", out)
	}
}

// TestHookPassesHints: a user who asks gets a file of hints and the variable that names it, both go with the job, and
// whoever has set the variable keeps the own file.
func TestHookPassesHints(t *testing.T) {
	addr := slurmDaemon(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/end") {
			_ = json.NewEncoder(w).Encode(dispatch.Ended{Job: "12", Known: true})
			return
		}
		var q dispatch.Request
		a := dispatch.Answer{Job: "12"}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		} else if q.Hints {
			a.Hints = &dispatch.ROMIOHints{Run: "7",
				Hints: map[string]string{"cb_nodes": "4", "striping_unit": "65536"}}
			a.Given = []string{"ROMIO hints from job 7: cb_nodes 4, striping_unit 65536"}
		}
		_ = json.NewEncoder(w).Encode(a)
	})
	dir := t.TempDir()
	asks := append([]string{"SLURM_JOB_COMMENT=app=ROMS,hints=romio"}, slurmEnv[:len(slurmEnv)-1]...)
	for _, c := range []struct {
		env  []string
		args []string
		want bool
	}{{slurmEnv, nil, false}, {asks, nil, true}, {slurmEnv, []string{"--hints"}, true}} {
		out, _ := hook(t, c.env, append([]string{"dispatch", "--within", "1m", "--addr", addr, "--env-dir", dir},
			c.args...)...)
		if strings.Contains(out, "ROMIO hints from job 7: cb_nodes 4, striping_unit 65536\n") != c.want {
			t.Errorf("dispatch says %q", out)
		}
		file := filepath.Join(dir, "job.12.romio")
		text, err := os.ReadFile(file)
		if c.want && (err != nil || string(text) != "cb_nodes 4\nstriping_unit 65536\n") || !c.want && err == nil {
			t.Errorf("the file is %q, %v", text, err)
		}
		env, want := slurmEnv, ""
		if c.want {
			want = "export ROMIO_HINTS=" + file + "\n"
		}
		if out, _ := hook(t, env, "env", "--env-dir", dir); out != want {
			t.Errorf("the environment is %q, expected %q", out, want)
		}
		if out, _ := hook(t, append(env[:len(env):len(env)], "ROMIO_HINTS=/home/wei/h"), "env", "--env-dir",
			dir); out != "" {
			t.Errorf("who has hints gets %q", out)
		}
		hook(t, slurmEnv, "end", "--within", "1m", "--addr", addr, "--env-dir", dir)
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("after its end there are %v", left)
		}
	}
}
