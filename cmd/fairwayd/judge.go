package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"fairway/remap/judge"
)

// Feed says where the list of exclusions is kept besides the API.
type Feed struct {
	File string `toml:"file"`
}

func (f Feed) validate() error {
	if f.File != "" && !filepath.IsAbs(f.File) {
		return fmt.Errorf("feed.file = %q: want an absolute path", f.File)
	}
	return nil
}

// DetectorState says how the detectors' state outlives a restart.
type DetectorState struct {
	SaveEvery time.Duration `toml:"save_every"`
	MaxAge    time.Duration `toml:"max_age"`
}

func (s DetectorState) validate() error {
	for _, v := range []struct {
		name        string
		value, most time.Duration
	}{{"save_every", s.SaveEvery, time.Hour}, {"max_age", s.MaxAge, 30 * 24 * time.Hour}} {
		if v.value < time.Second || v.value > v.most {
			return fmt.Errorf("detector_state.%s = %s: want 1s to %s", v.name, v.value, v.most)
		}
	}
	return nil
}

func (d *daemon) detectorState() string { return filepath.Join(d.conf.StateDir, "detectors") }

// loadDetectors takes up what the detectors knew. Without it they begin anew, and the log says why.
func (d *daemon) loadDetectors() {
	age, err := d.watch.LoadState(d.detectorState(), time.Now(), d.conf.DetectorState.MaxAge)
	switch {
	case err == nil:
		d.log.Info("the detectors go on from their saved state", "age", age.Round(time.Second))
	case errors.Is(err, fs.ErrNotExist):
	default:
		d.log.Warn("the detectors begin anew", "err", err)
	}
}

// openJudge takes up the findings of the journal and sets the detectors before the live frames.
func (d *daemon) openJudge(ctx context.Context) (err error) {
	d.watch = judge.NewWatch(d.board, d.conf.Detector, d.conf.Interference)
	d.loadDetectors()
	d.judge, err = judge.New(ctx, judge.Config{Settings: d.conf.Findings, Desk: d.desk, Situation: d.picture.Situation,
		Detector: d.watch, Store: d.store, Log: d.log})
	if err != nil {
		return err
	}
	d.picture.setFindings(d.judge.Findings)
	d.openProbe()
	return nil
}

// runJudge judges every second and keeps the feed's file, until ctx ends.
func (d *daemon) runJudge(ctx context.Context) {
	d.tasks.Go(func() { d.judge.Run(ctx) })
	d.tasks.Go(func() { d.watch.KeepState(ctx, d.detectorState(), d.conf.DetectorState.SaveEvery, d.log) })
	d.runProbe(ctx)
	if d.conf.Feed.File != "" {
		d.tasks.Go(func() { d.desk.KeepFeedFile(ctx, d.conf.Feed.File, d.log) })
	}
}
