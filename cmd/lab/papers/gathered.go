package papers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
)

// gatheredJobs are those of the paper's Figure 5 at an eighth: one over both forwarders, one at each.
var gatheredJobs = []contender{{"wide", "ann", nodes(0, 4), 8}, {"left", "bob", nodes(4, 2), 8},
	{"right", "bob", nodes(6, 2), 8}}

// gathered measures the global shares of two forwarders, which are 0.5, 0.25 and 0.25 by size, with an all-gather
// and without one.
func (l *Lab) gathered(ctx context.Context) (_ []Row, err error) {
	m := topology.Mapping{}
	for i, f := range []topology.ForwarderID{"fwd000", "fwd000", "fwd001", "fwd001", "fwd000", "fwd000", "fwd001",
		"fwd001"} {
		m[nodes(i, 1)[0]] = f
	}
	s, err := l.newSite(ctx, testbed.Config{Forwarders: 2, ComputeNodes: 8, LinkBytesPerSec: l.link(), Mapping: m,
		QueueProgram: l.program("fairway-queue")}, func(c daemon.Settings) {
		c.Table("queue")["policy"], c.Table("dispatch")["policy"] = "size-fair", "avoid"
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	rows := []Row{
		{Effect: "share of a job of 4 nodes on both of two forwarders, beside 2 nodes on each: local shares only",
			Paper: "67 % (Figure 5)", Unit: " %"},
		{Effect: "the same with an all-gather every 0.5 s; half is its global share", Paper: "50 % (Figure 5)",
			Unit: " %",
			Bar:  "47 % to 53 %", Why: "shares are drawn by lot"},
		{Effect: "time from the last job's first byte until that share over 2 s is at most 53 %",
			Paper: "by the second interval: 1 s (section 5.6)", Unit: " s",
			Why: "the 2 s of the window are part of it; the daemon gathers through the agents' orders"},
	}
	for range l.repeat(3) {
		for i, lambda := range []string{"0s", "500ms"} {
			s.conf.Table("queue")["lambda"] = lambda
			if err := s.restart(ctx); err != nil {
				return nil, err
			}
			share, took, err := s.wideShare(ctx)
			if err != nil {
				return nil, err
			}
			l.say("lambda %s: the wide job has %.1f %%; within its global share after %.1f s", lambda, 100*share, took)
			rows[i].Values = append(rows[i].Values, 100*share)
			if i == 1 && took > 0 {
				rows[2].Values = append(rows[2].Values, took)
			}
		}
	}
	return rows, nil
}

// wideShare runs the jobs and returns the wide one's share of all bytes once all of them run, and after how long it
// was no more than its global one; 0 if never.
func (s *site) wideShare(ctx context.Context) (share, took float64, err error) {
	var ids []topology.JobID
	defer func() {
		for _, id := range ids {
			_, e := s.tb.Slurm(context.WithoutCancel(ctx), "scancel", string(id))
			_, e2 := s.tb.WaitJob(context.WithoutCancel(ctx), id)
			err = errors.Join(err, e, e2)
		}
	}()
	for _, j := range gatheredJobs {
		w := workload.Spec{Name: j.name, Mode: workload.FilePerProcess, BurstBytes: 2 << 20, Period: time.Millisecond}
		fillSpec(&w, len(j.nodes))
		id, err := s.tb.Submit(ctx, testbed.Job{Name: j.name, Nodes: len(j.nodes), NodeList: j.nodes,
			Argv: append(w.Argv(s.Self), "--streams", fmt.Sprint(j.writers))})
		if err != nil {
			return 0, 0, err
		}
		ids = append(ids, id)
	}
	type look struct {
		at   time.Time
		wide float64
		all  float64
	}
	read := func() (l look, everybody bool, err error) {
		l.at, everybody = time.Now(), true
		sum := map[topology.JobID]float64{}
		for _, f := range []topology.ForwarderID{"fwd000", "fwd001"} {
			served, err := stats(ctx, s.tb, f)
			if err != nil {
				return l, false, err
			}
			for id, v := range served {
				sum[topology.JobID(id)] += float64(v.Bytes)
			}
		}
		for _, id := range ids {
			l.all += sum[id]
			everybody = everybody && sum[id] > 0
		}
		l.wide = sum[ids[0]]
		return l, everybody, nil
	}
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var first look
	if err := until(short, "every job writes", func() (ok bool, err error) {
		first, ok, err = read()
		return ok, err
	}); err != nil {
		return 0, 0, err
	}
	settle, span := 5*time.Second, pick(s.Lab, 20*time.Second, 2*time.Second)
	const window = 2 * time.Second
	looks := []look{first}
	for last := first; last.at.Sub(first.at) < settle+span; looks = append(looks, last) {
		time.Sleep(100 * time.Millisecond)
		if last, _, err = read(); err != nil {
			return 0, 0, err
		}
	}
	end, from := looks[len(looks)-1], looks[0]
	for _, l := range looks {
		if took > 0 || l.at.Sub(looks[0].at) < window {
			continue
		}
		from := looks[0]
		for _, f := range looks {
			if l.at.Sub(f.at) >= window {
				from = f
			}
		}
		if (l.wide-from.wide)/(l.all-from.all) <= 0.53 {
			took = l.at.Sub(looks[0].at).Seconds()
		}
	}
	for _, l := range looks {
		if l.at.Sub(looks[0].at) <= settle {
			from = l
		}
	}
	return (end.wide - from.wide) / (end.all - from.all), took, nil
}
