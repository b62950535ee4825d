package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/cmd/fairway-demo/simmachine"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/client"
)

// simPastRuns is how often each program of the simulated machine has run before, at each of its sizes.
const simPastRuns = 8

// importPast gives the daemon the history of a machine that has been watched for two days.
func (d *demo) importPast(ctx context.Context, past []simmachine.PastRun) error {
	sum, err := d.daemon.history.Import(ctx, func(yield func(history.Run, error) bool) {
		for i := range past {
			if !yield(simRun(&past[i]), nil) {
				return
			}
		}
	})
	if err == nil && sum.Refused > 0 {
		err = fmt.Errorf("BUG: %d simulated runs were refused: %w", sum.Refused, sum.Errors[0])
	}
	return err
}

func simRun(p *simmachine.PastRun) history.Run {
	mode := history.Mode(p.Mode)
	if p.Mode == simmachine.MetaStorm { // how its processes share files is not known
		mode = ""
	}
	return history.Run{Job: p.ID, User: p.User, App: p.App, Nodes: p.NodeCount, Start: p.Start, End: p.End,
		Profile: &history.Profile{
			ReadBytes: p.ReadBytes, WriteBytes: p.WriteBytes, Mode: mode, IONodes: p.IONodes,
			PeakBytesPerSec:     p.PeakBytesPerSec,
			PeakNodeBytesPerSec: p.PeakNodeBytesPerSec, PeakOpsPerSec: p.PeakOpsPerSec, MetaOps: p.MetaOps,
			MetaQueue: &p.MetaQueue,
			IOSeconds: p.IOSeconds, StepSeconds: 1, Coverage: 1, From: "simulation",
		}}
}

// simRoutesAfter is how long the simulated nodes' forwarders may take to be seen.
const simRoutesAfter = 3 * time.Second

// tellJobs is the simulated machine's batch system until ctx ends: what runs at the beginning is found as by
// a list of jobs, later ones are told of as the prolog and the epilog do.
func (d *demo) tellJobs(ctx context.Context, runner *simmachine.Runner) {
	c, err := client.New("unix:"+d.conf.Listen.Socket, "")
	if err != nil {
		d.log.Error("the simulated jobs are not told of", "err", err)
		return
	}
	defer c.Close()
	first := true
	for wait := simRoutesAfter; ; wait = time.Second {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		var began []simmachine.Job
		var ended []topology.JobID
		if runner.Do(ctx, func(m *simmachine.Machine) { began, ended = m.Changes() }) != nil {
			return // the demo ends
		}
		if first {
			first, err = false, d.listJobs(ctx, began)
		} else {
			err = tell(ctx, c, began, ended)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("a simulated job was not told of", "err", err)
		}
	}
}

func (d *demo) listJobs(ctx context.Context, jobs []simmachine.Job) error {
	list := make([]dispatch.Listed, len(jobs))
	for i := range jobs {
		list[i] = dispatch.Listed{Request: simRequest(&jobs[i]), Start: jobs[i].Start}
	}
	slices.SortFunc(list, func(a, b dispatch.Listed) int { return a.Start.Compare(b.Start) })
	_, err := d.daemon.jobs.Reconcile(ctx, time.Now(), list)
	return err
}

func tell(ctx context.Context, c *client.Client, began []simmachine.Job, ended []topology.JobID) error {
	for _, id := range ended {
		if _, err := c.EndJob(ctx, id); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
	}
	for i := range began {
		if _, err := c.Dispatch(ctx, simRequest(&began[i])); err != nil {
			return fmt.Errorf("job %s: %w", began[i].ID, err)
		}
	}
	return nil
}

func simRequest(j *simmachine.Job) dispatch.Request {
	return dispatch.Request{Job: j.ID, User: j.User, App: j.App, Nodes: j.Nodes}
}
