package papers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/leash"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/access"
	"fairway/webui/client"
)

// site is a little cluster under Slurm with everything that a site of fairway's runs.
type site struct {
	*Lab
	tb       *testbed.Testbed
	dir      string
	conf     daemon.Settings
	fairwayd *leash.Process
	api      *client.Client
}

// newSite starts a testbed with Slurm, agents, and a daemon with more settings; the caller must close it.
func (l *Lab) newSite(ctx context.Context, cfg testbed.Config, more func(daemon.Settings)) (_ *site, err error) {
	cfg.MountProgram, cfg.Slurm = l.program("fairway-mount"), true
	cfg.Hooks = testbed.Hooks(l.program("fairway"), "site", "--within", "10s")
	tb, err := l.newTestbed(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &site{Lab: l, tb: tb, dir: filepath.Join(filepath.Dir(tb.LogDir()), "site"), conf: daemon.Settings{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return nil, err
	}
	token, m := rand.Text(), tb.Machine()
	secret := filepath.Join(s.dir, "agents.token")
	if err := os.WriteFile(secret, []byte(token+"\n"), 0o600); err != nil {
		return nil, err
	}
	addr, err := leash.FreeAddr(tb.HostAddr().String())
	if err != nil {
		return nil, err
	}
	c := s.conf
	c["name"], c["node"], c["default_mapping"] = "results", m.Nodes, m.Default
	c["state_dir"] = filepath.Join(s.dir, "state")
	listen := c.Table("listen")
	listen["socket"], listen["http"], listen["agents"] = filepath.Join(s.dir, "fairwayd.sock"), "", addr
	listen["clear_text"] = true // the bridge is the testbed's own
	c.Table("access")["token"] = []daemon.Settings{{"name": "agents", "role": access.RoleAgent,
		"sha256": access.HashToken(token)}}
	desk := c.Table("desk")
	desk["mode"], desk["plans_per_minute"] = "auto", 100
	desk["self_approval"], desk["two_persons"], desk["max_excluded"] = true, false, 0.5
	c.Table("driver")["kind"] = "agents"
	c.Table("slurm")["jobs"] = tb.SlurmArgv("squeue", "--json")
	more(c)
	if s.api, err = client.New("unix:"+listen["socket"].(string), ""); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	if err := tb.StartAgents(ctx, testbed.Agents{Program: l.program("fairway-agent"), DaemonURL: "ws://" + addr,
		TokenFile: secret}); err != nil {
		return nil, err
	}
	return s, s.awaitNodes(ctx)
}

// newTestbed starts a testbed and says how long that took.
func (l *Lab) newTestbed(ctx context.Context, cfg testbed.Config) (*testbed.Testbed, error) {
	if cfg.MountProgram == "" {
		cfg.MountProgram = l.program("fairway-mount")
	}
	began := time.Now()
	tb, err := testbed.Start(ctx, cfg)
	if err == nil {
		l.say("%d forwarders of %.0f MB/s and %d compute nodes, after %.1f s", cfg.Forwarders,
			cfg.LinkBytesPerSec/1e6, cfg.ComputeNodes, time.Since(began).Seconds())
	}
	return tb, err
}

// start runs the daemon on the settings.
func (s *site) start(ctx context.Context) (err error) {
	s.fairwayd, err = daemon.Start(ctx, s.program("fairwayd"), s.dir, s.conf)
	return err
}

// restart runs the daemon on changed settings.
func (s *site) restart(ctx context.Context) error {
	if err := errors.Join(s.fairwayd.Terminate(), s.start(ctx)); err != nil {
		return err
	}
	return s.awaitNodes(ctx)
}

func (s *site) close() error {
	var errs []error
	if s.fairwayd != nil {
		errs = append(errs, s.fairwayd.Terminate())
	}
	if s.api != nil {
		s.api.Close()
	}
	return errors.Join(append(errs, s.tb.Close())...)
}

// awaitNodes waits until the daemon sees every compute node on its default forwarder, and what every forwarder does.
func (s *site) awaitNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	want := len(s.tb.Machine().Default)
	return until(ctx, "the daemon sees every node", func() (bool, error) {
		rows, err := s.api.Nodes(ctx, "compute", "")
		at := 0
		for _, r := range rows {
			if r.Forwarder == s.tb.Machine().Default[r.ID] {
				at++
			}
		}
		if at < want || err != nil {
			return false, err
		}
		o, err := s.api.Overview(ctx)
		for _, f := range o.Forwarders {
			if f.Value(collector.WriteBytes) == nil {
				return false, err
			}
		}
		return len(o.Forwarders) > 0, err
	})
}

// until polls until it is so; ctx bounds it.
func until(ctx context.Context, what string, so func() (bool, error)) error {
	for {
		ok, err := so()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// nodes are the compute nodes from first on.
func nodes(first, n int) []topology.NodeID {
	out := make([]topology.NodeID, n)
	for i := range out {
		out[i] = topology.NodeID(fmt.Sprintf("cn%03d", first+i))
	}
	return out
}

// submit hands a program to Slurm under its name, so many copies of it on each node.
func (s *site) submit(ctx context.Context, w *workload.Spec, on []topology.NodeID, copies int) (topology.JobID, error) {
	fillSpec(w, len(on))
	argv := append(w.Argv(s.Self), "--report")
	if copies > 1 {
		// Each copy in a folder of its own: a node has one change of a folder under way at a time.
		argv = []string{"sh", "-c", fmt.Sprintf(`for i in $(seq %d); do d=%s/%s.$SLURM_PROCID.$i; mkdir -p $d; `+
			`%s --dir $d & done; wait`, copies, testbed.MountPoint, w.Name, strings.Join(argv, " "))}
	}
	return s.tb.Submit(ctx, testbed.Job{Name: w.Name, Nodes: len(on), NodeList: on, Argv: argv})
}

// fillSpec sets what a mode does not use and a check wants.
func fillSpec(w *workload.Spec, ranks int) {
	w.Ranks = ranks
	w.BurstBytes = cmp.Or(w.BurstBytes, 1)
	w.BlockBytes = cmp.Or(w.BlockBytes, 256<<10)
	w.BurstFiles = cmp.Or(w.BurstFiles, 1)
	w.Period = cmp.Or(w.Period, time.Second)
	w.Duration = cmp.Or(w.Duration, 10*time.Minute)
}

// outcome is what a job's ranks reported.
type outcome struct {
	id       topology.JobID
	decision *dispatch.Answer // nil if the job ended before anybody asked
	bursts   []workload.Burst
}

// seconds is from the first rank's first byte to the last rank's last one.
func (o *outcome) seconds() float64 {
	from, to := o.bursts[0].Start, o.bursts[0].End
	for _, b := range o.bursts {
		if b.Start.Before(from) {
			from = b.Start
		}
		if b.End.After(to) {
			to = b.End
		}
	}
	return to.Sub(from).Seconds()
}

// wait waits for a job's end and for its profile, and reads what its ranks printed.
func (s *site) wait(ctx context.Context, id topology.JobID) (*outcome, error) {
	o := &outcome{id: id}
	err := until(ctx, fmt.Sprintf("job %s begins", id), func() (bool, error) {
		v, err := s.api.Job(ctx, id)
		o.decision = v.Decision
		return o.decision != nil || !v.End.IsZero(), err
	})
	if err != nil {
		return nil, err
	}
	state, err := s.tb.WaitJob(ctx, id)
	text, _ := os.ReadFile(filepath.Join(s.tb.LogDir(), fmt.Sprintf("job.%s.log", id)))
	if err != nil || state != "COMPLETED" {
		return nil, fmt.Errorf("job %s is %s (%v); it printed:\n%s", id, state, err, text)
	}
	if o.bursts, err = burstsOf("job "+string(id), text); err != nil {
		return nil, err
	}
	return o, s.awaitProfile(ctx, id)
}

// burstsOf reads what ranks printed.
func burstsOf(who string, text []byte) (bursts []workload.Burst, err error) {
	for line := range bytes.Lines(text) {
		var b workload.Burst
		if err := json.Unmarshal(line, &b); err != nil {
			return nil, fmt.Errorf("%s printed %q: %w", who, line, err)
		}
		bursts = append(bursts, b)
	}
	if len(bursts) == 0 {
		return nil, fmt.Errorf("%s reported nothing", who)
	}
	return bursts, nil
}

// behind maps compute nodes to forwarders, so many in a row to each.
func behind(compute, each int) topology.Mapping {
	m := topology.Mapping{}
	for i, n := range nodes(0, compute) {
		m[n] = topology.ForwarderID(fmt.Sprintf("fwd%03d", i/each))
	}
	return m
}

// awaitProfile waits until what an ended job did is known.
func (s *site) awaitProfile(ctx context.Context, id topology.JobID) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return until(ctx, fmt.Sprintf("job %s has a profile", id), func() (bool, error) {
		v, err := s.api.Job(ctx, id)
		return v.Profile != nil, err
	})
}

// run is one run of a program whose files are compared afterwards.
func (s *site) run(ctx context.Context, w *workload.Spec, on []topology.NodeID) (*outcome, error) {
	w.Keep, w.Bursts = w.Mode != workload.MetadataStorm, 1
	id, err := s.submit(ctx, w, on, 1)
	if err != nil {
		return nil, err
	}
	o, err := s.wait(ctx, id)
	if err != nil {
		return nil, err
	}
	return o, verify(ctx, s.tb, w)
}

// verify compares what the ranks wrote with what lies in the file system, and removes it.
func verify(ctx context.Context, tb *testbed.Testbed, w *workload.Spec) error {
	dir := workload.Dir(tb.Dir())
	for r := range w.Ranks {
		w.Rank = r
		if err := w.Verify(ctx, dir); err != nil {
			return fmt.Errorf("verify %s: %w", w.Name, err)
		}
	}
	return w.Remove(ctx, dir)
}

// decided is the line that the hook printed when a job started: what was decided and how long the job waited.
func (s *site) decided(id topology.JobID) (what string, waited float64, err error) {
	text, err := os.ReadFile(filepath.Join(s.tb.LogDir(), "hooks.log"))
	if err != nil {
		return "", 0, err
	}
	m := regexp.MustCompile(`(?m)^fairway: job ` + regexp.QuoteMeta(string(id)) + `: (.*), (\d+) ms$`).
		FindSubmatch(text)
	if m == nil {
		return "", 0, fmt.Errorf("the hook printed nothing of job %s:\n%s", id, text)
	}
	waited, err = strconv.ParseFloat(string(m[2]), 64)
	return string(m[1]), waited, err
}
