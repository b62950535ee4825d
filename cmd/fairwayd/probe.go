package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap/desk"
)

// Probe says how canary I/O reaches the forwarders; without export and mounts no canaries are sent.
type Probe struct {
	Export  string                          `toml:"export" help:"9P attach name where canaries may write; empty: none."`
	File    string                          `toml:"-"`
	UID     uint32                          `toml:"uid" help:"User ID that owns it."`
	Bytes   int                             `toml:"-"`
	Timeout time.Duration                   `toml:"-"`
	Mounts  map[topology.ForwarderID]string `toml:"mounts" help:"Canaries by file: forwarder = its mounted directory."`
}

func defaultProbe() Probe {
	return Probe{File: ".fairway-canary", Bytes: 256 << 10, Timeout: probe.DefaultLimits().Timeout}
}

func (p *Probe) on() bool { return p.Export != "" || len(p.Mounts) > 0 }

func (p *Probe) validate() error {
	for f, dir := range p.Mounts {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("probe.mounts.%s = %q: want an absolute path", f, dir)
		}
	}
	return nil
}

// way is how a canary reaches a forwarder: through its mount where one is named, else by 9P.
func (p *Probe) way(addr func(topology.ForwarderID) (string, bool)) func(topology.NodeID) (probe.Way, bool) {
	return func(n topology.NodeID) (probe.Way, bool) {
		f := topology.ForwarderID(n)
		file := p.File + "." + string(n) // each forwarder its own: they share the file system
		if dir, ok := p.Mounts[f]; ok {
			return probe.ByFile{Dir: dir, File: file, Size: p.Bytes}, true
		}
		if at, ok := addr(f); ok && p.Export != "" {
			return probe.By9P{Addr: at, Export: p.Export, File: file, UID: p.UID, Size: p.Bytes}, true
		}
		return nil, false
	}
}

// openProbe makes the canaries; runFindings runs them.
func (d *daemon) openProbe() {
	c := &d.conf.Probe
	if !c.on() {
		return
	}
	limits := probe.DefaultLimits()
	limits.Timeout, limits.IdleEvery, limits.SuspectEvery = c.Timeout, d.conf.Detector.IdleProbeEvery,
		d.conf.Detector.SuspectProbeEvery
	d.canaries = watch.NewCanaries(d.findings, d.detectors, d.store.Append, limits, c.way(d.conf.forwarderAddrs()))
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
