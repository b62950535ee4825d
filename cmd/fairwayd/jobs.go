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

// jobs are the parts that know the jobs and decide for them.
type jobs struct {
	history  *history.Store
	dispatch *dispatch.Dispatcher
	effects  *effect.Meter
	evacuate *evacuate.Policy
}

// openJobs opens the history and the dispatcher over it.
func (d *daemon) openJobs() error {
	path := filepath.Join(d.conf.StateDir, "history")
	h, sum, err := history.Open(path)
	if err != nil {
		return err
	}
	d.jobs.history = h
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
	d.jobs.dispatch = dispatch.New(dispatch.Config{
		Desk: d.desk, History: h, Runs: d.member.Runs(), Situation: d.situation.Situation, Frames: d.board.Visit,
		Seconds: d.store,
		Name:    d.conf.Dispatch.Policy, Policy: policy, Limits: limits,
		LiveAfter: liveAfter, Lend: d.conf.Dispatch.Lend, Windows: d.conf.Dispatch.Windows, Logs: logs,
		Shares: d.conf.Queue.Policy,
		Log:    d.log,
	})
	d.situation.SetJobs(d.jobs.dispatch.Running)
	d.jobs.effects = effect.NewMeter(effect.Config{Desk: d.desk, Situation: d.situation.Situation, Seconds: d.store,
		Log: d.log})
	d.jobs.evacuate = evacuate.New(evacuate.Config{Desk: d.desk, Situation: d.situation.Fresh, Rules: d.conf.Rules,
		Demand:   func(j *remap.Job) *float64 { return dispatch.Demand(d.jobs.dispatch, j) },
		CanLimit: d.sharing.CanLimit, Running: d.jobsAt, Log: d.log})
	return nil
}

// userOf returns the user of a job; empty: unknown.
func (d *daemon) userOf(id topology.JobID) string {
	run, _, err := d.jobs.dispatch.Job(id)
	if err != nil {
		return ""
	}
	return run.User
}

func (d *daemon) jobsAt(at time.Time) ([]remap.Job, error) { return dispatch.RanAt(d.jobs.history, at) }
