package testbed

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/cmd/lab/leash"
	"fairway/collector/topology"
)

// slurm is the batch system: munged and slurmctld on the scheduler node, a slurmd on each compute
// node. Everything it keeps is below dir.
type slurm struct {
	dir    string
	munged *leash.Process
	ctld   *leash.Process
}

func (s *slurm) conf() string   { return filepath.Join(s.dir, "slurm.conf") }
func (s *slurm) socket() string { return filepath.Join(s.dir, "munge", "socket") }

// startSlurm starts the batch system and waits until every compute node is idle.
func (tb *Testbed) startSlurm(ctx context.Context) error {
	if !tb.cfg.Slurm {
		return nil
	}
	sched, err := tb.find(schedulerName)
	if err != nil {
		return err
	}
	s := &slurm{dir: filepath.Join(tb.inst.Dir, "slurm")}
	if err := os.MkdirAll(filepath.Join(s.dir, "state"), 0o755); err != nil {
		return err
	}
	hooks, err := tb.writeHooks(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.conf(), []byte(tb.slurmConf(s, hooks)), 0o644); err != nil {
		return err
	}
	if err := tb.startMunged(ctx, sched, s); err != nil {
		return err
	}
	if s.ctld, err = tb.launch(sched, "slurmctld", "slurmctld", "-D", "-f", s.conf()); err != nil {
		return err
	}
	compute := tb.computeNodes()
	tb.slurm = s
	var last *leash.Process
	err = eachNode(compute, func(n *node) error {
		p, err := tb.launch(n, "slurmd", "slurmd", "-D", "-f", s.conf())
		if n == compute[len(compute)-1] {
			last = p
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := s.ctld.AwaitReady(ctx, readyWithin, tb.allIdle); err != nil {
		return fmt.Errorf("%w; the last slurmd's log ends:\n%s", err, last.Tail())
	}
	return nil
}

// startMunged starts the authentication service with a key of its own. It refuses to run as root.
func (tb *Testbed) startMunged(ctx context.Context, sched *node, s *slurm) error {
	const account = "munge"
	u, err := user.Lookup(account)
	if err != nil {
		return fmt.Errorf("munged needs the account %q, which its package makes: %w", account, err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.socket())
	key := make([]byte, 128)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(file("key"), key, 0o600),
		os.Chown(dir, uid, gid), os.Chown(file("key"), uid, gid)); err != nil {
		return err
	}
	s.munged, err = tb.launch(sched, "munged", "setpriv", "--reuid", account, "--regid", account, "--clear-groups",
		"munged", "-F", "--key-file="+file("key"), "--socket="+s.socket(), "--pid-file="+file("pid"),
		"--log-file="+file("log"), "--seed-file="+file("seed"))
	if err != nil {
		return err
	}
	return s.munged.AwaitReady(ctx, readyWithin, func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", s.socket())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// slurmConf has stand-ins for what is a testbed's own.
//
//go:embed slurm.conf
var slurmConf string

// slurmConf is a batch system for whole nodes that starts jobs within a second.
func (tb *Testbed) slurmConf(s *slurm, hooks []string) string {
	names := make([]string, tb.cfg.ComputeNodes)
	for i := range names {
		names[i] = string(tb.cfg.compute(i))
	}
	return strings.NewReplacer("SCHEDULER", schedulerName, "SOCKET", s.socket(), "DIR", s.dir, "NODES",
		strings.Join(names, ",")).Replace(slurmConf) + strings.Join(append(hooks, ""), "\n")
}

// Hooks report jobs' starts and ends, by the command fairway with further flags, to the daemon whose socket is in a
// folder of the testbed.
func Hooks(fairway, folder string, flags ...string) map[string][]string {
	hooks := map[string][]string{}
	for key, verb := range map[string]string{"PrologSlurmctld": "dispatch", "EpilogSlurmctld": "end"} {
		hooks[key] = append([]string{"sh", "-c", `exec "$@" --addr "unix:$TESTBED/` + folder + `/fairwayd.sock"`, "sh",
			fairway, "hook", verb, "--system", "slurm"}, flags...)
	}
	return hooks
}

// writeHooks writes the controller's hooks as scripts and returns their lines of slurm.conf.
func (tb *Testbed) writeHooks(s *slurm) ([]string, error) {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(tb.cfg.Hooks)) {
		file := filepath.Join(s.dir, key)
		text := fmt.Sprintf("#!/bin/sh\nexec >>%s 2>&1\nTESTBED=%s exec %s\n",
			leash.ShellWords(filepath.Join(tb.LogDir(), "hooks.log")), leash.ShellWords(tb.inst.Dir),
			leash.ShellWords(tb.cfg.Hooks[key]...))
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			return nil, err
		}
		lines = append(lines, key+"="+file)
	}
	return lines, nil
}

// allIdle says whether every compute node can take a job.
func (tb *Testbed) allIdle(ctx context.Context) error {
	out, err := tb.Slurm(ctx, "sinfo", "--noheader", "--Node", "--format=%N %T")
	if err != nil {
		return err
	}
	idle := 0
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == "idle" {
			idle++
		}
	}
	if idle != tb.cfg.ComputeNodes {
		return fmt.Errorf("%d of %d compute nodes are idle:\n%s", idle, tb.cfg.ComputeNodes, out)
	}
	return nil
}

// Slurm runs a command of the batch system (squeue, scontrol, sinfo, scancel, ...) on the
// scheduler node and returns its standard output.
func (tb *Testbed) Slurm(ctx context.Context, argv ...string) ([]byte, error) {
	return tb.slurmInput(ctx, "", argv...)
}

// cleanEnv is how a command of Slurm is run: a job inherits the submitter's environment, so it is given
// nothing of this process's.
func (s *slurm) cleanEnv() []string {
	return []string{"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"SLURM_CONF=" + s.conf()}
}

// SlurmArgv is a command line by which another program of this machine runs a command of the batch
// system on the scheduler node; nil without Slurm.
func (tb *Testbed) SlurmArgv(argv ...string) []string {
	sched, err := tb.find(schedulerName)
	if tb.slurm == nil || err != nil {
		return nil
	}
	enter := []string{"nsenter", fmt.Sprintf("--target=%d", sched.pid()), "--net", "--mount", "--uts"}
	return slices.Concat(enter, tb.slurm.cleanEnv(), argv)
}

func (tb *Testbed) slurmInput(ctx context.Context, input string, argv ...string) ([]byte, error) {
	if tb.slurm == nil {
		return nil, errors.New("this testbed was started without Slurm")
	}
	sched, err := tb.find(schedulerName)
	if err != nil {
		return nil, err
	}
	return sched.execInput(ctx, input, append(tb.slurm.cleanEnv(), argv...)...)
}

// Job is a program to run on some compute nodes, once on each.
type Job struct {
	Name  string
	Nodes int
	// NodeList chooses the nodes; without it the scheduler does.
	NodeList []topology.NodeID
	Argv     []string
	// Options are further ones of sbatch ("--comment=...").
	Options []string
}

// Submit hands a job to the batch system. Its output is in the log directory, as job.ID.log.
func (tb *Testbed) Submit(ctx context.Context, j Job) (topology.JobID, error) {
	argv := []string{"sbatch", "--parsable", "--job-name=" + j.Name, fmt.Sprintf("--nodes=%d", j.Nodes),
		"--ntasks-per-node=1", "--output=" + filepath.Join(tb.LogDir(), "job.%j.log"), "--chdir=/"}
	if len(j.NodeList) > 0 {
		names := make([]string, len(j.NodeList))
		for i, n := range j.NodeList {
			names[i] = string(n)
		}
		argv = append(argv, "--nodelist="+strings.Join(names, ","))
	}
	script := "#!/bin/sh\nexec srun " + leash.ShellWords(j.Argv...) + "\n"
	out, err := tb.slurmInput(ctx, script, append(argv, j.Options...)...)
	if err != nil {
		return "", fmt.Errorf("submit job %s: %w", j.Name, err)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	return topology.JobID(id), nil
}

// Spread starts a job on its NodeList without a batch system, once on each node, with the rank
// variables that srun sets. The programs end with the testbed.
func (tb *Testbed) Spread(j Job) error {
	for rank, id := range j.NodeList {
		n, err := tb.find(id)
		if err != nil {
			return fmt.Errorf("start job %s: %w", j.Name, err)
		}
		env := []string{"env", fmt.Sprintf("SLURM_PROCID=%d", rank), fmt.Sprintf("SLURM_NTASKS=%d", len(j.NodeList))}
		if _, err := tb.launch(n, "job-"+j.Name, append(env, j.Argv...)...); err != nil {
			return err
		}
	}
	return nil
}

// JobState returns the scheduler's word for a job's state (PENDING, RUNNING, COMPLETED, FAILED, ...).
func (tb *Testbed) JobState(ctx context.Context, id topology.JobID) (string, error) {
	out, err := tb.Slurm(ctx, "scontrol", "--oneliner", "show", "job", string(id))
	if err != nil {
		return "", err
	}
	for word := range strings.FieldsSeq(string(out)) {
		if state, found := strings.CutPrefix(word, "JobState="); found {
			return state, nil
		}
	}
	return "", fmt.Errorf("scontrol says no state of job %s: %q", id, out)
}

// WaitJob waits until a job has ended and returns its last state.
func (tb *Testbed) WaitJob(ctx context.Context, id topology.JobID) (string, error) {
	for {
		state, err := tb.JobState(ctx, id)
		if err != nil {
			return "", err
		}
		switch state {
		case "PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED":
		default:
			return state, nil
		}
		select {
		case <-ctx.Done():
			return state, fmt.Errorf("job %s is %s: %w", id, state, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
