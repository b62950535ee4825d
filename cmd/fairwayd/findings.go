package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/interference"
	"fairway/anomaly/watch"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap/desk"
	"fairway/remap/situation"
)

// saveDetectorsEvery bounds the evidence that a kill costs; a save takes milliseconds.
const saveDetectorsEvery = time.Minute

func (d *daemon) detectorState() string { return filepath.Join(d.conf.StateDir, "detectors") }

// loadDetectors continues from the saved state of the detectors. Without it they begin anew, and the log says why.
func (d *daemon) loadDetectors() {
	f, err := os.Open(d.detectorState())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var age time.Duration
	if err == nil {
		defer f.Close()
		age, err = d.detectors.LoadState(f, time.Now(), d.conf.Keep.Memory)
	}
	if err != nil {
		d.log.Warn("the detectors begin anew: their saved state cannot be used", "file", d.detectorState(), "err", err)
		return
	}
	d.log.Info("the detectors go on from their saved state", "age", age.Round(time.Second))
}

// keepDetectors saves what the detectors know every so often, and once more when ctx ends.
func (d *daemon) keepDetectors(ctx context.Context) {
	tick := time.NewTicker(saveDetectorsEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		state, err := d.detectors.State(time.Now())
		if err == nil {
			err = desk.ReplaceFile(d.detectorState(), state, 0o600)
		}
		if err != nil {
			d.log.Error("the detectors' state was not saved; after a restart they would learn anew", "err", err)
		}
	}
}

// openFindings continues with the findings of the journal.
func (d *daemon) openFindings(ctx context.Context) (err error) {
	d.detectors = watch.NewDetectors(d.board, d.conf.Detector, interference.DefaultSettings())
	d.detectors.Speakers(d.agents.Intruders)
	d.loadDetectors()
	d.judging.Store(d.detectors)
	d.findings, err = watch.New(ctx, watch.Config{Settings: d.desk.Settings().Bound(d.conf.Findings),
		Machine: func() *watch.Machine {
			return situation.ForWatch(d.situation.Situation(), d.desk.Feed().Exclusions)
		},
		Recorder: d.desk, Detector: d.detectors, Store: d.store, Acting: d.leads,
		Lateness: &d.late, Log: d.log}, time.Now())
	if err != nil {
		return err
	}
	d.situation.SetFindings(d.findings.Findings)
	d.openProbe()
	return nil
}

// runFindings judges every second and keeps the feed's file, until ctx ends.
func (d *daemon) runFindings(ctx context.Context) {
	d.tasks.Go(func() { d.findings.Run(ctx) })
	d.tasks.Go(func() { d.keepDetectors(ctx) })
	d.runProbe(ctx)
	if d.conf.Feed.File != "" {
		d.tasks.Go(func() { d.desk.KeepFeedFile(ctx, d.conf.Feed.File, d.log) })
	}
}

// openProbe makes the canaries; runFindings runs them.
func (d *daemon) openProbe() {
	c := &d.conf.Probe
	if !c.On() {
		return
	}
	limits := probe.DefaultLimits()
	limits.Timeout, limits.IdleEvery, limits.SuspectEvery = c.Timeout, d.conf.Detector.IdleProbeEvery,
		d.conf.Detector.SuspectProbeEvery
	d.canaries = watch.NewCanaries(d.findings, d.detectors, d.store.Append, limits, c.Way(d.conf.ForwarderAddrs()))
}

// runProbe sends canaries until ctx ends.
func (d *daemon) runProbe(ctx context.Context) {
	if d.canaries != nil {
		d.tasks.Go(func() { d.canaries.Run(ctx) })
	}
}

// canary is the newest canary of a forwarder; nil without one.
func (d *daemon) canary(f topology.ForwarderID) *anomaly.Canary {
	if d.canaries == nil {
		return nil
	}
	if c, ok := d.canaries.Newest(f); ok {
		return &c
	}
	return nil
}

// asked are the canaries that persons ask for; nil without a way to any forwarder.
func (d *daemon) asked() *desk.Canaries {
	if d.canaries == nil {
		return nil
	}
	return desk.NewCanaries(d.desk, d.canaries)
}
