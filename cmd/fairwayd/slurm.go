package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"fairway/collector/logs/slurm"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
)

// Slurm says how the batch system is asked which jobs there are.
type Slurm struct {
	Jobs  []string      `toml:"jobs" help:"Command that lists jobs, such as [\"squeue\", \"--json\"]; empty: hooks."`
	Every time.Duration `toml:"every" help:"How often it is run, 10s to 1h."`
}

func (s *Slurm) validate() error {
	switch {
	case len(s.Jobs) > 0 && s.Jobs[0] == "":
		return fmt.Errorf("slurm.jobs: the command's first word is empty")
	case s.Every < 10*time.Second || s.Every > time.Hour:
		return fmt.Errorf("slurm.every = %s: want 10s to 1h", s.Every)
	}
	return nil
}

// slurmAfter is how long after a start the jobs are asked for first: the agents, whom the plans of
// ended jobs concern, connect meanwhile.
const slurmAfter = 5 * time.Second

// jobsWithin is after how long a question is given up: the next one comes soon enough.
const jobsWithin = 10 * time.Second

// keepJobs compares the known jobs with the batch system's now and then, until ctx ends: a hook may
// have failed, or have been called while this daemon was away. Where it cannot be asked, what could not be
// taken back at a job's end is still tried again.
func (d *daemon) keepJobs(ctx context.Context) {
	next := time.NewTimer(slurmAfter)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		d.lookAtJobs(ctx, time.Now())
		next.Reset(d.conf.Slurm.Every)
	}
}

func (d *daemon) lookAtJobs(ctx context.Context, now time.Time) {
	if len(d.conf.Slurm.Jobs) > 0 {
		err := d.reconcile(ctx, now)
		if err == nil || ctx.Err() != nil {
			return
		}
		d.log.Warn("the batch system's jobs are not known; jobs begin and end by its hooks alone", "err", err)
	}
	again, err := d.jobs.TakeBackAgain(ctx, now)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("the plans of jobs that have ended could not be looked at", "err", err)
	}
	if len(again) > 0 {
		d.log.Warn("plans that could not be taken back at their job's end are taken back again", "jobs", again)
	}
}

func (d *daemon) reconcile(ctx context.Context, now time.Time) error {
	jobs, err := slurm.Ask(ctx, d.conf.Slurm.Jobs, jobsWithin, slurm.Options{Zone: time.Local})
	if err != nil {
		return err
	}
	d.jobs.Expect(expected(jobs))
	r, err := d.jobs.Reconcile(ctx, now, listed(jobs))
	if len(r.Began)+len(r.Ended)+len(r.Again) > 0 {
		d.log.Warn("the batch system knows better which jobs run; were its hooks called?", "began", r.Began, "ended",
			r.Ended, "taken_back_again", r.Again)
	}
	return err
}

// notYet are the states of a job without nodes, atEdge those in which one of its hooks may be under way.
var (
	notYet = []string{"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
	atEdge = []string{"CONFIGURING", "COMPLETING", "STAGE_OUT", "SIGNALING"}
)

// listed are the jobs that have nodes, under the number that their hooks use.
func listed(jobs []slurm.Job) (out []dispatch.Listed) {
	for i := range jobs {
		j := &jobs[i]
		if j.Step != "" || len(j.Nodes) == 0 || j.Start.IsZero() || slices.Contains(notYet, j.State) {
			continue
		}
		l := dispatch.Listed{Start: j.Start, Starting: slices.Contains(atEdge, j.State),
			Request: dispatch.Request{Job: hooksID(j), User: j.User, App: slurm.Application(j.Name, j.Comment),
				Project: project(j), Nodes: j.Nodes}}
		if l.QOS = j.QOS; j.Priority != nil {
			l.Priority = float64(max(*j.Priority, 0))
		}
		if j.Ended() {
			if l.End = j.End; l.End.IsZero() {
				continue
			}
		}
		out = append(out, l)
	}
	return out
}

// hooksID is the number that the job's hooks see, and project its account as they see it.
func hooksID(j *slurm.Job) topology.JobID {
	if j.RawID > 0 {
		return topology.JobID(strconv.FormatInt(j.RawID, 10))
	}
	return j.ID
}

func project(j *slurm.Job) string {
	if j.Account == "(null)" {
		return ""
	}
	return j.Account
}

// priorityOf is a job's priority for sharing; nil where the batch system is not asked for jobs.
func priorityOf(conf *Config) func(*remap.Job) float64 {
	if len(conf.Slurm.Jobs) == 0 {
		return nil
	}
	return conf.Queue.Priorities.Of
}

// expected are the jobs that wait and have a start planned.
func expected(jobs []slurm.Job) (out []dispatch.Expected) {
	for i := range jobs {
		j := &jobs[i]
		if j.Step == "" && j.State == "PENDING" && !j.Start.IsZero() && j.NodeCount != nil {
			out = append(out, dispatch.Expected{Job: hooksID(j), User: j.User,
				App: slurm.Application(j.Name, j.Comment), Project: project(j), Nodes: int(*j.NodeCount),
				Start: j.Start})
		}
	}
	return out
}
