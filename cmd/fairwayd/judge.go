package main

import (
	"context"
	"fmt"
	"path/filepath"

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

// openJudge takes up the findings of the journal and sets the detectors before the live frames.
func (d *daemon) openJudge(ctx context.Context) (err error) {
	d.watch = judge.NewWatch(d.board, d.conf.Detector, d.conf.Interference)
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
	d.runProbe(ctx)
	if d.conf.Feed.File != "" {
		d.tasks.Go(func() { d.desk.KeepFeedFile(ctx, d.conf.Feed.File, d.log) })
	}
}
