package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/remap/dfra"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

// Dispatch says how a job's forwarders are decided.
type Dispatch struct {
	Policy    string        `toml:"policy"`
	LiveAfter time.Duration `toml:"live_after"`
	dfra.Config
}

// policies are the deciders that a site may choose from.
var policies = map[string]dispatch.Policy{
	"dfra": dfra.Decide,
}

func policyNames() string {
	var names []string
	for n := range policies {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (d *Dispatch) validate() error {
	if policies[d.Policy] == nil {
		return fmt.Errorf("dispatch.policy = %q: want one of %s", d.Policy, policyNames())
	}
	if d.LiveAfter < 0 || d.LiveAfter > 24*time.Hour {
		return fmt.Errorf("dispatch.live_after = %s: want 0s to 24h", d.LiveAfter)
	}
	if err := d.Config.Validate(); err != nil {
		return fmt.Errorf("dispatch.%w", err)
	}
	return nil
}

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
	limits := d.conf.Dispatch.Config
	if limits.FwdPeakBW == 0 {
		limits.FwdPeakBW = d.conf.Forwarder.PeakBytesPerSec
	}
	d.jobs = dispatch.New(dispatch.Config{
		Desk: d.desk, History: h, Situation: d.picture.Situation, Frames: d.board.Visit, Seconds: d.store,
		Name: d.conf.Dispatch.Policy, Policy: policies[d.conf.Dispatch.Policy], Limits: limits,
		LiveAfter: d.conf.Dispatch.LiveAfter, Log: d.log,
	})
	d.picture.setJobs(d.jobs.Running)
	return nil
}
