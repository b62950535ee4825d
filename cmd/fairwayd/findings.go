package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/collector/appendlog"
	"fairway/collector/pace"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap/desk"
	"fairway/remap/situation"
)

// judges are the parts that find what is wrong.
type judges struct {
	detectors *watch.Detectors
	ready     atomic.Pointer[watch.Detectors] // the same, for readers that are there before
	findings  *watch.Loop
	late      watch.Lateness  // this daemon's own
	canaries  *watch.Canaries // nil without a way to any forwarder
}

// saveDetectorsEvery bounds the evidence that a kill costs; a save takes milliseconds.
const saveDetectorsEvery = time.Minute

// load continues from the saved state of the detectors. Without it they begin anew, and the log says why.
func (j *judges) load(path string, memory time.Duration, log *slog.Logger) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var age time.Duration
	if err == nil {
		defer f.Close()
		age, err = j.detectors.LoadState(f, time.Now(), memory)
	}
	if err != nil {
		log.Warn("the detectors begin anew: their saved state cannot be used", "file", path, "err", err)
		return
	}
	log.Info("the detectors go on from their saved state", "age", age.Round(time.Second))
}

// keep saves what the detectors know every so often, and once more when ctx ends.
func (j *judges) keep(ctx context.Context, path string, log *slog.Logger) {
	save := func(time.Time) {
		state, err := j.detectors.State(time.Now())
		if err == nil {
			err = appendlog.ReplaceFile(path, state, 0o600)
		}
		if err != nil {
			log.Error("the detectors' state was not saved; after a restart they would learn anew", "err", err)
		}
	}
	pace.Every(ctx, saveDetectorsEvery, saveDetectorsEvery, save)
	save(time.Now())
}

// openFindings continues with the findings of the journal.
func (d *daemon) openFindings(ctx context.Context) (err error) {
	j := &d.judges
	j.detectors = watch.NewDetectors(d.board, d.conf.Detector)
	j.detectors.Speakers(d.agents.Intruders)
	j.load(filepath.Join(d.conf.StateDir, "detectors"), d.conf.Keep.Memory, d.log)
	j.ready.Store(j.detectors)
	j.findings, err = watch.New(ctx, watch.Config{Settings: d.desk.Settings().Bound(d.conf.Findings),
		Machine: func() *watch.Machine {
			return situation.ForWatch(d.situation.Situation(), d.desk.Feed().Exclusions)
		},
		Recorder: d.desk, Detector: j.detectors, Store: d.store, Acting: d.leads,
		Lateness: &j.late, Log: d.log}, time.Now())
	if err != nil {
		return err
	}
	d.situation.SetFindings(j.findings.Findings)
	if c := &d.conf.Probe; c.On() {
		limits := probe.DefaultLimits()
		limits.Timeout = c.Timeout
		j.canaries = watch.NewCanaries(j.findings, j.detectors, d.store.Append, limits, c.Way(d.conf.ForwarderAddrs()))
	}
	return nil
}

// runFindings judges every second, sends canaries and keeps the feed's file, until ctx ends.
func (d *daemon) runFindings(ctx context.Context) {
	d.tasks.Go(func() { d.judges.findings.Run(ctx) })
	d.tasks.Go(func() { d.judges.keep(ctx, filepath.Join(d.conf.StateDir, "detectors"), d.log) })
	if d.judges.canaries != nil {
		d.tasks.Go(func() { d.judges.canaries.Run(ctx) })
	}
	if d.conf.Feed.File != "" {
		d.tasks.Go(func() { d.desk.KeepFeedFile(ctx, d.conf.Feed.File, d.log) })
	}
}

// canary is the newest canary of a forwarder; nil without one.
func (j *judges) canary(f topology.ForwarderID) *anomaly.Canary {
	if j.canaries == nil {
		return nil
	}
	if c, ok := j.canaries.Newest(f); ok {
		return &c
	}
	return nil
}

// asked are the canaries that persons ask for; nil without a way to any forwarder.
func (j *judges) asked(d *desk.Desk) *desk.Canaries {
	if j.canaries == nil {
		return nil
	}
	return desk.NewCanaries(d, j.canaries)
}
