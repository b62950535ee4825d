package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// jobsFile holds what the simulated machine's batch system answers when it is asked which jobs there are.
const jobsFile = "jobs.json"

// importPast writes the history of a machine that has been watched for two days into the daemon's folder, before
// the daemon starts.
func importPast(stateDir string, past []simmachine.PastRun) (err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	h, _, err := history.Open(filepath.Join(stateDir, "history"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	sum, err := h.Import(context.Background(), func(yield func(history.Run, error) bool) {
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

// batch is the simulated machine's batch system: it lists the running jobs in a file, as squeue does, and reports
// each start and end to the daemon, as the prolog and the epilog do.
type batch struct {
	file    string
	running map[topology.JobID]simmachine.Job
}

// runBatch is the batch system until ctx ends. What runs at the beginning is in the list alone, as for a daemon
// that starts beside a machine at work.
func (d *demo) runBatch(ctx context.Context, runner *simmachine.Runner) {
	c, err := client.New("unix:"+d.socket, "")
	if err != nil {
		d.log.Error("the simulated jobs are not reported", "err", err)
		return
	}
	defer c.Close()
	b := batch{file: filepath.Join(d.dir, jobsFile), running: map[topology.JobID]simmachine.Job{}}
	for first := true; ; first = false {
		var began []simmachine.Job
		var ended []topology.JobID
		if runner.Do(ctx, func(m *simmachine.Machine) { began, ended = m.Changes() }) != nil {
			return // the demo ends
		}
		if err = b.list(began, ended); err == nil && !first {
			err = report(ctx, c, began, ended)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("a simulated job was not reported", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// squeueJob is a job in the answer of squeue --json.
type squeueJob struct {
	ID    json.Number `json:"job_id"`
	Name  string      `json:"name"`
	User  string      `json:"user_name"`
	State string      `json:"job_state"`
	Nodes string      `json:"nodes"`
	Start int64       `json:"start_time"` // Unix seconds
}

// list writes the file anew after some jobs began and ended; a reader finds the old one or the new one.
func (b *batch) list(began []simmachine.Job, ended []topology.JobID) error {
	for _, id := range ended {
		delete(b.running, id)
	}
	for _, j := range began {
		b.running[j.ID] = j
	}
	if len(began)+len(ended) == 0 {
		return nil
	}
	jobs := make([]squeueJob, 0, len(b.running))
	for _, id := range slices.Sorted(maps.Keys(b.running)) {
		j := b.running[id]
		jobs = append(jobs, squeueJob{ID: json.Number(id), Name: j.App, User: j.User, State: "RUNNING",
			Nodes: topology.FoldHostList(j.Nodes), Start: j.Start.Unix()})
	}
	text, err := json.Marshal(map[string]any{"jobs": jobs})
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(b.file+".new", b.file)
}

func report(ctx context.Context, c *client.Client, began []simmachine.Job, ended []topology.JobID) error {
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
