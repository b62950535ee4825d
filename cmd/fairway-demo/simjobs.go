package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"fairway/cmd/lab/simmachine"
	"fairway/collector/appendlog"
	"fairway/collector/pace"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/client"
)

// jobsFile holds what the simulated machine's batch system answers when it is asked which jobs there are.
const jobsFile = "jobs.json"

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
	for first := true; first || pace.Wait(ctx, time.Second); first = false {
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
	return appendlog.ReplaceFile(b.file, text, 0o600)
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
