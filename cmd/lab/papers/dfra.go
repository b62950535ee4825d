package papers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
	"fairway/remap"
)

// link is a forwarder's peak, low enough that two processors carry all of them, bytes/s.
func (l *Lab) link() float64 { return pick(l, 8e6, 2e6) }

// dfraResults runs every program first without a history, on its default forwarder, and then again as the policy
// decides by what the first run did.
func dfraResults(ctx context.Context, l *Lab) (rows []Row, err error) {
	s, err := l.newSite(ctx, testbed.Config{Forwarders: 6, ComputeNodes: 8, LinkBytesPerSec: l.link(),
		Mapping: behind(8, 4)},
		l.dfraSettings)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	d := &dfraRuns{site: s}
	for _, step := range []func(context.Context) error{d.scaleOut, d.isolation, d.avoidance, d.harm} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return d.rows(), nil
}

// dfraSettings scale the policy's thresholds down with the machine: one compute node fills a forwarder.
func (l *Lab) dfraSettings(c daemon.Settings) {
	d := c.Table("dispatch")
	d["policy"] = "dfra"
	d["v_min_bytes"], d["n_min"], d["f"], d["w_metadata"] = l.link(), 4.0, 1.0, 4.0
	c.Table("forwarder")["peak_bytes_per_sec"], d["cn_peak_bw"] = l.link(), l.link()
}

// dfraRuns collects one figure a repetition.
type dfraRuns struct {
	*site
	scale, back, avoid []float64
	hurt               map[string][]float64 // slowdown on the default forwarder, by the neighbour
	decide, remap      []float64            // ms
	worse, kept        []float64            // I/O time over the default mapping's
}

func (d *dfraRuns) rows() []Row {
	shared := "the testbed's forwarder gives a job its part of the link and no more; the paper's also thrashes its " +
		"cache"
	return []Row{
		{"I/O time of 4 writers, file per process, behind 1 forwarder over that with S = 4",
			"4.8x on average, up to 18.9x (scaling group, beside Table 5)", d.scale, "x", ">= 3.2x", shared, ""},
		{"slowdown of a bandwidth-bound job beside 3 nodes writing one file (N-1), default mapping",
			"2x to 100x (Figure 11a)", d.hurt[neighbourShared], "x", "", shared, ""},
		{"slowdown of the same job beside a metadata storm, default mapping", "2.4x to 33.3x (Table 3, DNDC)",
			d.hurt[neighbourMeta], "x", "", "metadata calls take a set time here", ""},
		{"speed of that job when the policy isolates it, of its speed alone", "slowdown near 1 (Figure 11b)", d.back,
			" %", ">= 90 %", "", ""},
		{"I/O time behind a forwarder at a tenth of its speed over that when it is avoided",
			"20x slower (Figure 15)", d.avoid, "x", ">= 5x", "the speed is a tenth here; the paper's was not measured",
			""},
		{"decision", "< 100 ms (beside Figure 16)", d.decide, " ms", "< 100 ms", "a smaller machine", ""},
		{"job start held up by decision and remap of its nodes, verified", "seconds at 16,384 nodes (Figure 16)",
			d.remap, " ms", "", "1 to 4 nodes here; remap by fairway-mount with the observation awaited", ""},
		{
			"I/O time of a program that the policy moved to forwarders whose links had just become slow, over that " +
				"behind " +
				"its default one", "none", d.worse, "x", "", "harm that nobody could foresee", ""},
		{"the same of its next run, the links as before: the check of harm leaves it on its default mapping until a " +
			"person has approved", "none", d.kept, "x", "<= 1.1x", "", ""},
	}
}

// twice runs a program without a history and then with one, and checks what was decided for the second run.
func (d *dfraRuns) twice(ctx context.Context, w workload.Spec, on []topology.NodeID, want string) (ratio float64,
	err error) {
	first, err := d.run(ctx, &w, on)
	if err != nil {
		return 0, err
	}
	second, err := d.again(ctx, w, on, want)
	if err != nil {
		return 0, err
	}
	return first.seconds() / second.seconds(), nil
}

// answerTries is how often a run is made again because the policy answered something else: a forwarder that was not
// idle yet, a plan that took longer than the prologue waits.
const answerTries = 6

// again is a run with a history that the policy answers as expected.
func (d *dfraRuns) again(ctx context.Context, w workload.Spec, on []topology.NodeID, want string) (*outcome, error) {
	for try := 1; ; try++ {
		o, err := d.run(ctx, &w, on)
		if err != nil {
			return nil, err
		}
		what, waited, err := d.decided(o.id)
		if err == nil && strings.HasPrefix(what, want) {
			d.remap = append(d.remap, waited)
			if o.decision != nil {
				d.decide = append(d.decide, 1000*o.decision.TookSeconds)
			}
			return o, nil
		}
		if try == answerTries {
			return nil, fmt.Errorf("job %s (%s): the policy's answer is %q, expected %q: %w, %+v", o.id, w.Name, what,
				want, err, o.decision)
		}
		d.say("job %s (%s) does not count: the policy's answer is %q, expected %q", o.id, w.Name, what, want)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

func (d *dfraRuns) scaleOut(ctx context.Context) error {
	for i := range d.repeat(3) {
		ratio, err := d.twice(ctx, workload.Spec{Name: fmt.Sprint("scale", i), Mode: workload.FilePerProcess,
			BurstBytes: pick[int64](d.Lab, 24, 2) << 20}, nodes(0, 4), "upgrade on 4 forwarders")
		if err != nil {
			return err
		}
		d.say("scale-out %d: %.2fx", i+1, ratio)
		d.scale = append(d.scale, ratio)
	}
	return nil
}

// The neighbours of the isolated job.
const (
	neighbourShared = "n-1"
	neighbourMeta   = "meta"
)

// slowMetadata is what a metadata call takes at every forwarder during the storms, seconds.
const slowMetadata = 0.05

// isolation measures a job alone, beside a neighbour on the same forwarder, and beside it as the policy decides.
func (d *dfraRuns) isolation(ctx context.Context) error {
	d.hurt = map[string][]float64{}
	var slow []testbed.Fault // everywhere, as behind one metadata server: no forwarder is worse than another
	for _, n := range d.tb.Machine().Nodes {
		if n.Role == topology.Forwarder {
			slow = append(slow, testbed.Fault{Kind: testbed.SlowMeta, Node: n.ID, Amount: slowMetadata})
		}
	}
	neighbours := []struct {
		kind   string
		w      workload.Spec
		copies int
		fault  []testbed.Fault
	}{
		{neighbourShared, workload.Spec{Mode: workload.SharedFile, BurstBytes: 1 << 28}, 1, nil},
		{neighbourMeta, workload.Spec{Mode: workload.MetadataStorm, BurstFiles: 1e5}, 8, slow},
	}
	for _, n := range neighbours[:pick(d.Lab, 2, 1)] {
		for _, f := range n.fault {
			if err := d.tb.Inject(ctx, f); err != nil {
				return err
			}
		}
		n.w.Name, n.w.Duration = "neighbour-"+n.kind, pick(d.Lab, 10*time.Second, 6*time.Second)
		id, err := d.submit(ctx, &n.w, nodes(1, 3), n.copies)
		if err != nil {
			return err
		}
		if _, err := d.tb.WaitJob(ctx, id); err != nil {
			return err
		}
		if err := d.awaitProfile(ctx, id); err != nil { // its history
			return err
		}
		for i := range d.repeat(3) {
			if err := d.isolate(ctx, n.kind, i, n.w, n.copies); err != nil {
				return err
			}
		}
	}
	for _, f := range slow {
		if err := d.tb.Clear(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (d *dfraRuns) isolate(ctx context.Context, kind string, i int, n workload.Spec, copies int) error {
	victim := workload.Spec{Name: fmt.Sprintf("victim-%s%d", kind, i), Mode: workload.FilePerProcess,
		BurstBytes: pick[int64](d.Lab, 24, 3) << 20}
	alone, err := d.run(ctx, &victim, nodes(0, 1))
	if err != nil {
		return err
	}
	n.Duration = 5 * time.Minute
	id, err := d.submit(ctx, &n, nodes(1, 3), copies)
	if err != nil {
		return err
	}
	defer d.tb.Slurm(context.WithoutCancel(ctx), "scancel", string(id)) // it may have ended
	if err := d.awaitLive(ctx, id); err != nil {
		return err
	}
	unknown := victim
	unknown.Name += "-unknown" // no history: its default forwarder
	beside, err := d.run(ctx, &unknown, nodes(0, 1))
	if err != nil {
		return err
	}
	isolated, err := d.again(ctx, victim, nodes(0, 1), "isolate on 1 forwarder")
	if err != nil {
		return err
	}
	d.hurt[kind] = append(d.hurt[kind], beside.seconds()/alone.seconds())
	d.back = append(d.back, 100*alone.seconds()/isolated.seconds())
	d.say("beside %s: %.1f s alone, %.1f s beside it, %.1f s isolated", kind, alone.seconds(), beside.seconds(),
		isolated.seconds())
	if _, err := d.tb.Slurm(ctx, "scancel", string(id)); err != nil {
		return err
	}
	_, err = d.tb.WaitJob(ctx, id)
	return err
}

// awaitLive waits until a job has been watched for long enough that the policy looks at what it does now.
func (d *dfraRuns) awaitLive(ctx context.Context, id topology.JobID) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return until(ctx, fmt.Sprintf("job %s is watched", id), func() (bool, error) {
		v, err := d.api.Job(ctx, id)
		return err == nil && v.SoFar != nil && time.Since(v.WatchedSince) > 5*time.Second, nil
	})
}

// avoidance has a job's default forwarder slow and kept out by an operator.
func (d *dfraRuns) avoidance(ctx context.Context) error {
	slow := testbed.Fault{Kind: testbed.SlowLink, Node: "fwd001", Amount: d.link() / 10}
	if err := d.tb.Inject(ctx, slow); err != nil {
		return err
	}
	for i := range d.repeat(3) {
		w := workload.Spec{Name: fmt.Sprint("avoid", i), Mode: workload.FilePerProcess,
			BurstBytes: pick[int64](d.Lab, 4096, 512) << 10}
		first, err := d.run(ctx, &w, nodes(4, 2))
		if err != nil {
			return err
		}
		if _, err := d.api.Exclude(ctx, "fwd001", time.Hour, "a tenth of its speed"); err != nil {
			return err
		}
		w.Name += "-avoided" // no history: one forwarder, but not that one
		second, err := d.again(ctx, w, nodes(4, 2), "off forwarders that may not carry it")
		if err != nil {
			return err
		}
		if _, err := d.api.Return(ctx, "fwd001", "the next repetition"); err != nil {
			return err
		}
		d.avoid = append(d.avoid, first.seconds()/second.seconds())
		d.say("avoidance %d: %.1f s, %.1f s", i+1, first.seconds(), second.seconds())
	}
	return d.tb.Clear(ctx, slow)
}

// harm has the policy move a program to forwarders that become slow in that moment, and runs it again: what did harm is
// not done a second time without a person.
func (d *dfraRuns) harm(ctx context.Context) error {
	on := nodes(0, 4)
	for i := range d.repeat(3) {
		w := workload.Spec{Name: fmt.Sprint("harm", i), Mode: workload.FilePerProcess,
			BurstBytes: pick[int64](d.Lab, 12, 2) << 20}
		usual, err := d.run(ctx, &w, on)
		if err != nil {
			return err
		}
		var slow []testbed.Fault
		for f := 1; f < 6; f++ {
			slow = append(slow, testbed.Fault{Kind: testbed.SlowLink, Node: topology.NodeID(fmt.Sprintf("fwd%03d", f)),
				Amount: d.link() / 8})
			if err := d.tb.Inject(ctx, slow[len(slow)-1]); err != nil {
				return err
			}
		}
		moved, err := d.again(ctx, w, on, "upgrade on 4 forwarders")
		if err != nil {
			return err
		}
		for _, f := range slow {
			if err := d.tb.Clear(ctx, f); err != nil {
				return err
			}
		}
		check, kept, err := d.held(ctx, w, on)
		if err != nil {
			return err
		}
		d.worse = append(d.worse, moved.seconds()/usual.seconds())
		d.kept = append(d.kept, kept.seconds()/usual.seconds())
		d.say("harm %d: %.1f s, %.1f s moved, then %.1f s: %s", i+1, usual.seconds(), moved.seconds(), kept.seconds(),
			check)
	}
	return nil
}

// held is a run whose plan waits for a person because of the harm that the last one did.
func (d *dfraRuns) held(ctx context.Context, w workload.Spec, on []topology.NodeID) (check string, o *outcome,
	err error) {
	w.Keep, w.Bursts = true, 1
	id, err := d.submit(ctx, &w, on, 1)
	if err != nil {
		return "", nil, err
	}
	seen := ""
	patience, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = until(patience, fmt.Sprintf("job %s is left where it is because of harm", id), func() (bool, error) {
		v, err := d.api.Job(patience, id)
		if err != nil || v.Decision == nil || v.Decision.Plan == "" {
			if !v.End.IsZero() {
				err = fmt.Errorf("it ended, and the policy's answer was %+v", v.Decision)
			}
			return false, err
		}
		p, err := d.api.Plan(patience, v.Decision.Plan)
		if err == nil && p.State != remap.Proposed {
			err = fmt.Errorf("plan %s is %s; %s", p.ID, p.State, seen)
		}
		for _, c := range p.Checks {
			if seen += fmt.Sprintf("%s %s: %s; ", c.Name, c.Level, c.Text); c.Name == "harm" && c.Level == remap.Amber {
				check = c.Text
			}
		}
		return check != "", err
	})
	if err != nil {
		return "", nil, err
	}
	if o, err = d.wait(ctx, id); err != nil {
		return "", nil, err
	}
	return check, o, verify(ctx, d.tb, &w)
}
