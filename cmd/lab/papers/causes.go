package papers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/darshanlog"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// causeRanks are the processes of the job that is to be explained, behind one forwarder.
const causeRanks = 3

// slowBackEnd is what a write takes in the storage behind the one slow forwarder, seconds.
const slowBackEnd = 0.2

// neighbourSeconds is how long the neighbour has been at work when the job begins: a forwarder counts as filled after
// 20 s.
const neighbourSeconds = 40

// madeCause is one thing that makes jobs slow, and what must be named for it. N-1 costs nothing on the testbed, whose
// servers take no locks: there it is the pattern that must be named.
type madeCause struct {
	effect string
	want   []string // rules, of which one must be the main cause
	run    func(*causeRuns, context.Context, int) (*explained, error)
}

// explained is one run of the slow job.
type explained struct {
	rule, text string
	sure       float64 // the rule's figure, a share
	slower     float64 // than the reference; 0: without one
}

var madeCauses = []madeCause{
	{"small scattered requests (512 bytes, from a file's last to its first)", []string{"small"}, (*causeRuns).small},
	{"metadata: files made, looked at and removed", []string{"metadata"}, (*causeRuns).storm},
	{"N-1: one file written by all ranks in blocks of 2 MiB", []string{"shared-file"}, (*causeRuns).shared},
	{"a neighbour that fills the job's forwarder", []string{"highbw"}, (*causeRuns).neighbour},
	{"storage behind the job's forwarder that takes 200 ms a write", []string{"fail_slow"}, (*causeRuns).backEnd},
}

// causeRuns are the runs on one site.
type causeRuns struct {
	*site
	alone map[int64]float64 // seconds of the undisturbed job, by the bytes of a rank
	count int
}

// causeResults runs a job with known causes of slow I/O and asks fairway why it took as long as it did: from the job's
// Darshan log and from what was found of its forwarder meanwhile.
func causeResults(ctx context.Context, l *Lab) (_ []Row, err error) {
	s, err := l.newSite(ctx, testbed.Config{Forwarders: 4, ComputeNodes: 16, LinkBytesPerSec: 2 * l.link(),
		Mapping: behind(16, 4)},
		func(c daemon.Settings) {
			c.Table("dispatch")["policy"], c.Table("desk")["mode"] = "avoid", "observe"
		})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c := &causeRuns{site: s, alone: map[int64]float64{}}
	if err := os.Mkdir(c.logs(), 0o700); err != nil {
		return nil, err
	}
	// A calm program on a node of each forwarder: by it forwarders are compared.
	calm := workload.Spec{Name: "calm", Mode: workload.FilePerProcess, BurstBytes: 4 << 20, BytesPerSec: l.link() / 8,
		Period: time.Second, Duration: time.Hour}
	id, err := s.submit(ctx, &calm, []topology.NodeID{"cn003", "cn007", "cn011", "cn015"}, 1)
	if err != nil {
		return nil, err
	}
	defer s.tb.Slurm(context.WithoutCancel(ctx), "scancel", string(id)) // it may have ended
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(pick(l, 40*time.Second, time.Second)): // the detectors learn what is usual
	}
	var rows []Row
	for _, made := range madeCauses[:pick(l, len(madeCauses), 3)] {
		row, err := c.explainAll(ctx, made)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// explainAll makes a cause in each repetition.
func (c *causeRuns) explainAll(ctx context.Context, made madeCause) (Row, error) {
	row := Row{Unit: " %", Paper: "named by hand (section III-F)"}
	var named, wrong []string
	var slower []float64
	for i := range c.repeat(3) {
		e, err := made.run(c, ctx, i)
		if err != nil {
			return Row{}, fmt.Errorf("%s: %w", made.effect, err)
		}
		c.say("%s %d: %s (%.0f %%): %s", made.effect, i+1, e.rule, 100*e.sure, e.text)
		named = append(named, e.rule)
		if !slices.Contains(made.want, e.rule) {
			wrong = append(wrong, fmt.Sprintf("run %d of %q was explained by %q: %s", i+1, made.effect, e.rule, e.text))
			continue
		}
		row.Values = append(row.Values, 100*e.sure)
		if e.slower > 0 {
			slower = append(slower, e.slower)
		}
	}
	row.Effect = made.effect
	if len(slower) > 0 {
		row.Effect += fmt.Sprintf(" (%.1fx the time of the job undisturbed)", anomaly.Median(slower))
	}
	row.Effect += "; share of " + strings.Join(slices.Compact(slices.Sorted(slices.Values(named))), ", ")
	row.Bar = fmt.Sprintf("%s in %d of %d", strings.Join(made.want, " or "), len(named), len(named))
	row.Failed = strings.Join(wrong, "; ")
	return row, nil
}

func (c *causeRuns) small(ctx context.Context, _ int) (*explained, error) {
	return c.explain(ctx, workload.Spec{Mode: workload.Backwards, BurstBytes: pick[int64](c.Lab, 4<<20, 1<<20),
		BlockBytes: 512}, nodes(0, causeRanks))
}

func (c *causeRuns) storm(ctx context.Context, _ int) (*explained, error) {
	return c.explain(ctx, workload.Spec{Mode: workload.MetadataStorm, BurstFiles: pick(c.Lab, 1000, 200)},
		nodes(0, causeRanks))
}

func (c *causeRuns) shared(ctx context.Context, _ int) (*explained, error) {
	return c.explain(ctx, workload.Spec{Mode: workload.SharedFile, BurstBytes: pick[int64](c.Lab, 32, 4) << 20,
		BlockBytes: 2 << 20}, nodes(0, causeRanks))
}

// neighbour writes as fast as it can from the other nodes of the job's forwarder.
func (c *causeRuns) neighbour(ctx context.Context, i int) (*explained, error) {
	w := workload.Spec{Mode: workload.FilePerProcess, BurstBytes: 48 << 20, BlockBytes: 1 << 20}
	if _, err := c.undisturbed(ctx, w.BurstBytes, nodes(0, 1)); err != nil {
		return nil, err
	}
	loud := workload.Spec{Name: fmt.Sprint("loud", i), Mode: workload.FilePerProcess, BurstBytes: 1 << 26,
		BlockBytes: 1 << 20, Period: time.Millisecond, Duration: 5 * time.Minute}
	id, err := c.submit(ctx, &loud, nodes(1, causeRanks-1), 2)
	if err != nil {
		return nil, err
	}
	defer c.tb.Slurm(context.WithoutCancel(ctx), "scancel", string(id)) // it may have ended
	if err := until(ctx, "the neighbour has been at it for a while", func() (bool, error) {
		v, err := c.api.Job(ctx, id)
		return err == nil && v.SoFar != nil && v.SoFar.IOSeconds > neighbourSeconds, nil
	}); err != nil {
		return nil, err
	}
	e, err := c.explain(ctx, w, nodes(0, 1))
	if err != nil {
		return nil, err
	}
	if e.rule == "highbw" && !strings.Contains(e.text, "job "+string(id)) {
		e.rule += " of the wrong job"
	}
	if _, err := c.tb.Slurm(ctx, "scancel", string(id)); err != nil {
		return nil, err
	}
	_, err = c.tb.WaitJob(ctx, id)
	return e, err
}

// backEnd has writes delayed behind one forwarder, another in each repetition: what was found of the one before may
// not be over.
func (c *causeRuns) backEnd(ctx context.Context, i int) (*explained, error) {
	fwd := topology.NodeID(fmt.Sprintf("fwd%03d", i))
	slow := testbed.Fault{Kind: testbed.SlowData, Node: fwd, Amount: slowBackEnd}
	w := workload.Spec{Mode: workload.FilePerProcess, BurstBytes: 20 << 20, BlockBytes: 1 << 20}
	if _, err := c.undisturbed(ctx, w.BurstBytes, nodes(4*i, causeRanks)); err != nil {
		return nil, err
	}
	if err := c.tb.Inject(ctx, slow); err != nil {
		return nil, err
	}
	e, err := c.explain(ctx, w, nodes(4*i, causeRanks))
	if err != nil {
		return nil, err
	}
	if e.rule == "fail_slow" && !strings.Contains(e.text, string(fwd)) {
		e.rule += " of the wrong forwarder"
	}
	return e, c.tb.Clear(ctx, slow)
}

// undisturbed is how long the job takes that writes a file per process in order, with nothing in its way.
func (c *causeRuns) undisturbed(ctx context.Context, bytes int64, on []topology.NodeID) (float64, error) {
	key := bytes * int64(len(on))
	if c.alone[key] == 0 {
		o, err := c.run(ctx, &workload.Spec{Name: fmt.Sprint("alone", key), Mode: workload.FilePerProcess,
			BurstBytes: bytes, BlockBytes: 1 << 20}, on)
		if err != nil {
			return 0, err
		}
		c.alone[key] = o.seconds()
	}
	return c.alone[key], nil
}

// explain runs the job and asks why it took as long as it did.
func (c *causeRuns) explain(ctx context.Context, w workload.Spec, on []topology.NodeID) (*explained, error) {
	alone := 0.0
	var err error
	if w.Mode != workload.MetadataStorm {
		if alone, err = c.undisturbed(ctx, w.BurstBytes, on); err != nil {
			return nil, err
		}
	}
	c.count++
	w.Name = fmt.Sprint("cause", c.count)
	w.Keep, w.Bursts = w.Mode != workload.MetadataStorm, 1
	fillSpec(&w, len(on))
	argv := append(w.Argv(c.Self), "--report", "--profile", c.logs())
	id, err := c.tb.Submit(ctx, testbed.Job{Name: w.Name, Nodes: len(on), NodeList: on, Argv: argv})
	if err != nil {
		return nil, err
	}
	o, err := c.wait(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := verify(ctx, c.tb, &w); err != nil {
		return nil, err
	}
	e, err := c.why(ctx, id, w.Name)
	if err != nil {
		return nil, err
	}
	if alone > 0 {
		e.slower = o.seconds() / alone
	}
	return e, nil
}

func (c *causeRuns) logs() string { return filepath.Join(c.dir, "darshan") }

// why imports the job's Darshan log as a site's cron job does, and asks as a user does: fairway why.
func (c *causeRuns) why(ctx context.Context, id topology.JobID, app string) (*explained, error) {
	file, err := darshanlog.Collect(c.logs(), darshanlog.Job{ID: id, UID: os.Geteuid(), Exe: app, FS: "fuse",
		MountPoint: testbed.MountPoint})
	if err != nil {
		return nil, fmt.Errorf("the log of job %s: %w", id, err)
	}
	if file == "" {
		return nil, fmt.Errorf("job %s: its ranks left no log in %s", id, c.logs())
	}
	out, err := exec.CommandContext(ctx, c.program("fairwayd"), "import", "--dir",
		filepath.Join(c.dir, "state", "archive"), file).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("fairwayd import: %w: %s", err, bytes.TrimSpace(out))
	}
	out, err = exec.CommandContext(ctx, c.program("fairway"), "--json", "--addr",
		"unix:"+filepath.Join(c.dir, "fairwayd.sock"), "why", string(id)).Output()
	if err != nil {
		return nil, fmt.Errorf("fairway why %s: %w", id, err)
	}
	var v api.JobCause
	if err := json.Unmarshal(out, &v); err != nil {
		return nil, fmt.Errorf("fairway why %s: %w", id, err)
	}
	if len(v.Logs) != 1 {
		return nil, fmt.Errorf("fairway why %s: %d logs, expected 1", id, len(v.Logs))
	}
	if main := v.Logs[0].Main; main != nil {
		return &explained{rule: main.Rule, text: main.Text, sure: float64(main.Value)}, nil
	}
	return &explained{rule: "none", text: fmt.Sprintf("nothing is named: %s", out)}, nil
}
