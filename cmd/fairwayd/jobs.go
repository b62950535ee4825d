package main

import (
	"context"
	"path/filepath"
	"time"

	"fairway/cmd/fairwayd/iologs"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/effect"
	"fairway/remap/policy/evacuate"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
)

// liveAfter is how long a neighbour is watched before that overrides its history: a phase of I/O or two.
const liveAfter = time.Minute

// openJobs opens the history and the dispatcher over it.
func (d *daemon) openJobs() error {
	path := filepath.Join(d.conf.StateDir, "history")
	h, sum, err := history.Open(path)
	if err != nil {
		return err
	}
	d.history = h
	for _, bad := range sum.Damaged {
		d.log.Warn("a run of the history cannot be read and is left out", "err", bad)
	}
	d.log.Info("history read", "file", path, "runs", sum.Runs, "running", sum.Running, "torn_bytes", sum.TornBytes)
	policy, err := dispatch.PolicyByName(d.conf.Dispatch.Policy, d.conf.Dispatch.HarmBound)
	if err != nil {
		return err
	}
	limits := d.conf.Dispatch.Config
	limits.FwdPeakBW = d.conf.Forwarder.PeakBytesPerSec
	var logs func(context.Context, history.Run) ([]iolog.Log, error)
	if a := iologs.Open(d.conf.StateDir, self); a != nil {
		logs = a.JobLogs
	}
	d.jobs = dispatch.New(dispatch.Config{
		Desk: d.desk, History: h, Runs: d.runs(), Situation: d.situation.Situation, Frames: d.board.Visit,
		Seconds: d.store,
		Name:    d.conf.Dispatch.Policy, Policy: policy, Limits: limits,
		LiveAfter: liveAfter, Lend: d.conf.Dispatch.Lend, Windows: d.conf.Dispatch.Windows, Logs: logs,
		Shares: d.conf.Queue.Policy,
		Log:    d.log,
	})
	d.situation.SetJobs(d.jobs.Running)
	d.effects = effect.NewMeter(effect.Config{Desk: d.desk, Situation: d.situation.Situation, Seconds: d.store,
		Log: d.log})
	d.evacuate = evacuate.New(evacuate.Config{Desk: d.desk, Situation: d.situation.Fresh, Rules: d.conf.Rules,
		Demand: d.demand, CanLimit: d.sharing.CanLimit, Running: d.jobsAt, Log: d.log})
	return nil
}

// demand is the most that a job's nodes moved together, in this run so far or in the last one like it, bytes/s; nil
// where neither is known.
func (d *daemon) demand(j *remap.Job) (most *float64) {
	take := func(p *history.Profile) {
		if p != nil && (most == nil || p.PeakBytesPerSec > *most) {
			most = &p.PeakBytesPerSec
		}
	}
	now, _ := d.jobs.SoFar(j.ID)
	take(now)
	if last, known := d.history.Predict(history.Key{User: j.User, App: j.App, Project: j.Project,
		Nodes: len(j.Nodes)}); known {
		take(last.Run.Profile)
	}
	return most
}

// jobsKnown says that the batch system has reported a job. The view is made before the history is
// opened; nobody can ask before that.
func (d *daemon) jobsKnown() bool { return d.history != nil && d.history.Known() }

// userOf returns the user of a job; empty: unknown.
func (d *daemon) userOf(id topology.JobID) string {
	run, _, err := d.jobs.Job(id)
	if err != nil {
		return ""
	}
	return run.User
}

// jobsAt lists the jobs that ran in a past second, with their nodes.
func (d *daemon) jobsAt(at time.Time) ([]remap.Job, error) {
	runs, err := d.history.At(at)
	if err != nil {
		return nil, err
	}
	jobs := make([]remap.Job, len(runs))
	for i := range runs {
		r := &runs[i]
		jobs[i] = remap.Job{ID: r.Job, User: r.User, App: r.App, Project: r.Project, Nodes: r.NodeList, Start: r.Start}
	}
	return jobs, nil
}
