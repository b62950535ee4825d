package papers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	queuesource "fairway/collector/source/queue"
	"fairway/collector/topology"
	"fairway/remap/policy/share"
	"fairway/remap/queue"
)

// contender is a job that asks for more than the forwarder gives: so many writers on each of its nodes.
type contender struct {
	name, user string
	nodes      []topology.NodeID
	writers    int
}

// The two jobs of the paper's Figure 8, and four of two users as in its Figure 9.
var (
	twoJobs  = []contender{{"big", "ann", nodes(0, 4), 4}, {"small", "bob", nodes(4, 1), 16}}
	fourJobs = []contender{{"a", "ann", nodes(0, 4), 4}, {"b", "ann", nodes(4, 1), 16}, {"c", "bob", nodes(5, 2), 8},
		{"d", "bob", nodes(7, 1), 16}}
)

// contention is a queue in front of one forwarder, and the jobs before it.
type contention struct {
	*Lab
	tb *testbed.Testbed
}

func themisResults(ctx context.Context, l *Lab) (rows []Row, err error) {
	tb, err := l.newTestbed(ctx, testbed.Config{Forwarders: 1, ComputeNodes: 8, LinkBytesPerSec: pick(l, 12e6, 3e6),
		QueueProgram: l.program("fairway-queue")})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tb.Close()) }()
	c := &contention{l, tb}
	for _, step := range []func(context.Context) ([]Row, error){c.shares, c.reaction, c.opportunity, c.slowdown} {
		more, err := step(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	more, err := l.gathered(ctx)
	return append(rows, more...), err
}

// table gives the queue a policy and the jobs.
func (c *contention) table(ctx context.Context, policy string, jobs []contender) error {
	t := queue.Table{Policy: policy}
	for _, j := range jobs {
		size := float64(len(j.nodes))
		t.Jobs = append(t.Jobs, queue.Job{Row: share.Row{Job: j.name, User: j.user, Size: &size}, Nodes: j.nodes})
	}
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = queuesource.Ask(ctx, c.tb.QueueSocket("fwd000"), "PUT", "/table", body)
	return err
}

// wanted are the shares that a policy gives these jobs.
func wanted(policy string, jobs []contender) (map[string]float64, error) {
	p, err := share.ParsePolicy(policy)
	if err != nil {
		return nil, err
	}
	var t share.Table
	for _, j := range jobs {
		size := float64(len(j.nodes))
		t.Jobs = append(t.Jobs, share.Row{Job: j.name, User: j.user, Size: &size})
	}
	if err := t.Check(p); err != nil {
		return nil, err
	}
	return t.Answer(p, share.Inside).Shares, nil
}

// stats are what the queue in front of a forwarder has done for each job.
func stats(ctx context.Context, tb *testbed.Testbed, f topology.ForwarderID) (map[string]queue.Served, error) {
	var r queue.Report
	b, err := queuesource.Ask(ctx, tb.QueueSocket(f), "GET", "/report", nil)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	return r.Jobs, err
}

// load has jobs write until stop is called.
func (c *contention) load(ctx context.Context, jobs []contender) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, j := range jobs {
		w := workload.Spec{Name: j.name, Mode: workload.FilePerProcess, BurstBytes: 4 << 20, Period: time.Millisecond}
		fillSpec(&w, len(j.nodes))
		for rank, n := range j.nodes {
			argv := append([]string{"env", fmt.Sprint("SLURM_PROCID=", rank), fmt.Sprint("SLURM_NTASKS=", w.Ranks)},
				append(w.Argv(c.Self), "--streams", fmt.Sprint(j.writers))...)
			all.Go(func() {
				if _, err := c.tb.Exec(ctx, n, argv...); err != nil && ctx.Err() == nil {
					c.say("a writer of %s on %s ended: %v", j.name, n, err)
				}
			})
		}
	}
	return func() { cancel(); all.Wait() }
}

// busy waits until every job has had requests waiting three times in a row.
func (c *contention) busy(ctx context.Context, jobs []contender) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	seen := 0
	return until(ctx, "every job asks for more than it gets", func() (bool, error) {
		s, err := stats(ctx, c.tb, "fwd000")
		all := !slices.ContainsFunc(jobs, func(j contender) bool { return s[j.name].Waiting == 0 })
		if seen++; !all {
			seen = 0
		}
		return seen >= 3, err
	})
}

// moved is what each job moves in d under a policy, bytes/s.
func (c *contention) moved(ctx context.Context, policy string, jobs []contender,
	d time.Duration) (rate map[string]float64,
	total float64, err error) {
	if err := c.table(ctx, policy, jobs); err != nil {
		return nil, 0, err
	}
	time.Sleep(500 * time.Millisecond) // what is in flight belongs to the policy before
	before, err := stats(ctx, c.tb, "fwd000")
	if err != nil {
		return nil, 0, err
	}
	from := time.Now()
	time.Sleep(d)
	after, err := stats(ctx, c.tb, "fwd000")
	took := time.Since(from).Seconds()
	rate = map[string]float64{}
	for _, j := range jobs {
		rate[j.name] = float64(after[j.name].Bytes-before[j.name].Bytes) / took
		total += rate[j.name]
	}
	return rate, total, err
}

// shares measures each policy between two and between four jobs, and the total beside that in the order of arrival.
func (c *contention) shares(ctx context.Context) (rows []Row, err error) {
	span := pick(c.Lab, 20*time.Second, time.Second)
	whole := Row{Effect: "total under a policy, of that in the order of arrival", Paper: "policies reach the " +
		"hardware's speed (section 5.2)", Unit: " %", Bar: ">= 97 %"}
	for _, set := range [][]contender{twoJobs, fourJobs} {
		policies := []string{"size-fair", "job-fair"}
		if len(set) > 2 {
			policies = append(policies, "user-then-size-fair")
		}
		stop := c.load(ctx, set)
		defer stop()
		if err := errors.Join(c.table(ctx, "", set), c.busy(ctx, set)); err != nil {
			return nil, err
		}
		off, parts := map[string][]float64{}, map[string][]string{}
		for range c.repeat(3) {
			_, fifo, err := c.moved(ctx, "", set, span/2)
			if err != nil {
				return nil, err
			}
			for _, p := range policies {
				rate, total, err := c.moved(ctx, p, set, span)
				if err != nil {
					return nil, err
				}
				want, err := wanted(p, set)
				if err != nil {
					return nil, err
				}
				worst, text := 0.0, ""
				for _, j := range set {
					got := rate[j.name] / total
					worst = max(worst, 100*math.Abs(got-want[j.name]))
					text += fmt.Sprintf(" : %.3f", got)
				}
				c.say("%d jobs, %s:%s, total %.2f MB/s (%.2f by arrival)", len(set), p, text[2:], total/1e6, fifo/1e6)
				off[p], parts[p] = append(off[p], worst), append(parts[p], text[3:])
				whole.Values = append(whole.Values, 100*total/fifo)
			}
		}
		stop()
		for _, p := range policies {
			want, err := wanted(p, set)
			if err != nil {
				return nil, err
			}
			var text []string
			for _, j := range set {
				text = append(text, fmt.Sprintf("%.3f", want[j.name]))
			}
			rows = append(rows,
				Row{Effect: fmt.Sprintf("%d jobs, %s (%s): worst deviation of a share over %.0f s; got %s", len(set), p,
					strings.Join(text, " : "), span.Seconds(), parts[p][len(parts[p])/2]),
					Paper: themisPaper[fmt.Sprint(len(set), p)], Values: off[p], Bar: "<= 3",
					Why: "shares are drawn by lot: of 3,600 requests of 64 KiB in 20 s a tenth is 366 +- 19"})
		}
	}
	return append(rows, whole), nil
}

// themisPaper are the paper's figures.
var themisPaper = map[string]string{
	"2size-fair":           "3.96 to 1 for 4 to 1, 1.0 % (Figure 8a)",
	"2job-fair":            "10.6 and 10.6 GB/s (Figure 8b)",
	"4user-then-size-fair": "10.1 and 9.9 GB/s by user; 3.4 : 6.7 for 1 : 2, 3.9 : 6.0 for 4 : 6 (Figure 9)",
}

// reaction is the time from a new job's first request until it has had 90 % of its share over half a second.
func (c *contention) reaction(ctx context.Context) ([]Row, error) {
	row := Row{Effect: "time from a new job's first byte until it has 90 % of its share over half a second, job-fair",
		Paper: "not reported beside the figures' 1 s samples (Figure 8)", Unit: " s", Bar: "<= 2 s"}
	stop := c.load(ctx, twoJobs[:1])
	defer stop()
	if err := errors.Join(c.table(ctx, "job-fair", twoJobs), c.busy(ctx, twoJobs[:1])); err != nil {
		return nil, err
	}
	for range c.repeat(3) {
		took, err := c.join(ctx)
		if err != nil && c.Quick && ctx.Err() == nil { // a machine too busy for the job to ask for its share
			c.say("the reaction is not measured: %v", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		row.Values = append(row.Values, took)
	}
	return []Row{row}, nil
}

// join starts the small job beside the big one.
func (c *contention) join(ctx context.Context) (seconds float64, err error) {
	type look struct {
		at         time.Time
		big, small float64
	}
	first, err := stats(ctx, c.tb, "fwd000")
	if err != nil {
		return 0, err
	}
	stop := c.load(ctx, twoJobs[1:])
	defer stop()
	var looks []look
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		s, err := stats(ctx, c.tb, "fwd000")
		if err != nil {
			return 0, err
		}
		if l := (look{time.Now(), float64(s["big"].Bytes), float64(s["small"].Bytes)}); l.small >
			float64(first["small"].Bytes) {
			looks = append(looks, l)
			i := 0
			for i+1 < len(looks) && l.at.Sub(looks[i+1].at) >= 500*time.Millisecond {
				i++
			}
			if from := looks[i]; l.at.Sub(from.at) >= 500*time.Millisecond {
				small, big := l.small-from.small, l.big-from.big
				if small/(small+big) >= 0.9*0.5 {
					return l.at.Sub(looks[0].at).Seconds(), nil
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return 0, fmt.Errorf("the new job never got its share: %w", ctx.Err())
}

// opportunity is what a job moves while the other has nothing to do.
func (c *contention) opportunity(ctx context.Context) ([]Row, error) {
	row := Row{Effect: "speed of a job while the other idles, of the forwarder's in the order of arrival, job-fair",
		Paper: "idle jobs' share is used by the others (section 3)", Unit: " %", Bar: ">= 97 %"}
	stop := c.load(ctx, twoJobs[:1])
	defer stop()
	if err := errors.Join(c.table(ctx, "", twoJobs), c.busy(ctx, twoJobs[:1])); err != nil {
		return nil, err
	}
	span := pick(c.Lab, 5*time.Second, time.Second)
	for range c.repeat(3) {
		_, fifo, err := c.moved(ctx, "", twoJobs, span)
		if err != nil {
			return nil, err
		}
		_, fair, err := c.moved(ctx, "job-fair", twoJobs, span)
		if err != nil {
			return nil, err
		}
		row.Values = append(row.Values, 100*fair/fifo)
	}
	return []Row{row}, nil
}

// slowdown is that of a small job with one writer, beside a big one with many.
func (c *contention) slowdown(ctx context.Context) ([]Row, error) {
	rows := []Row{
		{
			Effect: "I/O time of a job of one node and one writer beside 4 nodes with 16 writers, over alone: order " +
				"of arrival",
			Paper: "+60.6 %, +45.3 % (molecular dynamics, weather), 2.7x (asynchronous training; Figure 13)", Unit: "x",
			Why: "this job does nothing but I/O; the paper's compute as well"},
		{Effect: "the same, size-fair (its share is a fifth: 5x at most)", Paper: "+0.1 %, +4.6 %, +12.9 %", Unit: "x",
			Bar: "<= 5x"},
	}
	job := workload.Spec{Name: "little", Mode: workload.FilePerProcess, BurstBytes: pick[int64](c.Lab, 4096, 512) << 10}
	little := contender{"small", "bob", nodes(4, 1), 1}
	for range c.repeat(3) {
		alone, err := c.together(ctx, job, little.nodes)
		if err != nil {
			return nil, err
		}
		stop := c.load(ctx, twoJobs[:1])
		defer stop()
		for i, policy := range []string{"", "size-fair"} {
			if err := errors.Join(c.table(ctx, policy, twoJobs), c.busy(ctx, twoJobs[:1])); err != nil {
				return nil, err
			}
			took, err := c.together(ctx, job, little.nodes)
			if err != nil {
				return nil, err
			}
			rows[i].Values = append(rows[i].Values, took/alone)
		}
		stop()
	}
	return rows, nil
}

// together runs a program's ranks on nodes at the same time, and compares what they wrote.
func (c *contention) together(ctx context.Context, w workload.Spec, on []topology.NodeID) (seconds float64, err error) {
	fillSpec(&w, len(on))
	w.Keep, w.Bursts = w.Mode != workload.MetadataStorm, 1
	outs, errs := make([][]byte, len(on)), make([]error, len(on))
	var all sync.WaitGroup
	for rank, n := range on {
		all.Go(func() {
			argv := slices.Concat([]string{"env", fmt.Sprint("SLURM_PROCID=", rank),
				fmt.Sprint("SLURM_NTASKS=", len(on))}, w.Argv(c.Self), []string{"--report"})
			outs[rank], errs[rank] = c.tb.Exec(ctx, n, argv...)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	var o outcome
	if o.bursts, err = burstsOf(w.Name, slices.Concat(outs...)); err != nil {
		return 0, err
	}
	if w.Keep {
		err = verify(ctx, c.tb, &w)
	}
	return o.seconds(), err
}
