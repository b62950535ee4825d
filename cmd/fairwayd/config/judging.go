package config

import (
	"fmt"
	"path/filepath"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap/alert"
)

// Judging says how forwarders are judged, and who hears of it.
type Judging struct {
	Detector failslow.Settings `toml:"detector" help:"How slow forwarders are found; docs/detection.md."`
	Findings anomaly.Settings  `toml:"findings" help:"What findings lead to; the desk's limits hold as well."`
	Probe    Probe             `toml:"probe" help:"Canary I/O through the forwarders; docs/findings.md."`
	Feed     Feed              `toml:"feed"`
	Alert    alert.Settings    `toml:"alert" help:"Who is called; docs/alerts.md."`
}

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

// On says whether canaries have a way to any forwarder.
func (p *Probe) On() bool { return p.Export != "" || len(p.Mounts) > 0 }

func (p *Probe) validate() error {
	for f, dir := range p.Mounts {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("probe.mounts.%s = %q: want an absolute path", f, dir)
		}
	}
	return nil
}

// Way is how a canary reaches a forwarder: through its mount where one is named, else by 9P.
func (p *Probe) Way(addr func(topology.ForwarderID) (string, bool)) func(topology.NodeID) (probe.Way, bool) {
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

// Feed says which file has the list of exclusions, besides the API.
type Feed struct {
	File string `toml:"file" help:"File of the exclusions for a scheduler's plug-in, absolute; empty: no file."`
}

func (f Feed) validate() error {
	if f.File != "" && !filepath.IsAbs(f.File) {
		return fmt.Errorf("feed.file = %q: want an absolute path", f.File)
	}
	return nil
}
