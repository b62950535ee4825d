// Package config holds what fairwayd.toml says: the settings, their defaults, checks, and the files that they name.
package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/rootcause"
	"fairway/cmd/program"
	"fairway/collector/topology"
	"fairway/remap/cluster"
	"fairway/remap/desk"
	"fairway/remap/driver"
	"fairway/remap/policy/dfra"
	"fairway/remap/policy/evacuate"
	"fairway/remap/queue/tables"
	"fairway/webui/access"
)

// Config is the daemon's file. The help tags are what `fairwayd config` prints above each setting.
type Config struct {
	Name     string        `toml:"name" help:"The machine's name, on every screen."`
	StateDir string        `toml:"state_dir" help:"Directory of the store and the journal; absolute."`
	LogLevel program.Level `toml:"log_level" help:"debug, info, warn or error."`

	Listen  Listen           `toml:"listen"`
	Access  Access           `toml:"access"`
	Cluster cluster.Settings `toml:"cluster" help:"Daemons that keep one journal; docs/cluster.md."`
	Keeping
	Forwarder Forwarder     `toml:"forwarder"`
	Desk      desk.Settings `toml:"desk" help:"How plans are approved and run; docs/plans.md."`
	Judging
	Jobs
	Rules []evacuate.Rule `toml:"rule" help:"Running jobs behind ill forwarders; docs/decide.md."`
	Site

	View bool `toml:"-"` // fairwayd view: it shows another daemon's store
}

// Site is what only the site knows of its machine.
type Site struct {
	Mounts  rootcause.Mounts `toml:"mount" help:"File systems of the jobs' I/O logs (docs/rootcause.md)."`
	Nodes   []topology.Node  `toml:"node" help:"The machine's nodes; more are learnt from what reports."`
	Default topology.Mapping `toml:"default_mapping" help:"The site's mapping: compute node = forwarder."`
}

// Forwarder holds what is true of every forwarder that is not described by itself.
type Forwarder struct {
	PeakBytesPerSec float64 `toml:"peak_bytes_per_sec" help:"Peak of a forwarder in a direction, bytes/s; 0: unknown."`
}

// Default is closed: the socket and this host only, nobody but root writes, nothing is moved.
func Default() Config {
	return Config{
		Name:     "fairway",
		StateDir: "/var/lib/fairway",
		LogLevel: "info",
		Listen:   Listen{Socket: "/run/fairway/fairwayd.sock", HTTP: "127.0.0.1:7117"},
		Keeping:  Keeping{Store{Kind: StoreEmbedded, Sync: 500 * time.Millisecond}, defaultKeep()},
		Access: Access{OIDC: access.OIDC{Scopes: []string{"profile", "groups"},
			NameClaim: "preferred_username", GroupsClaim: "groups"}},
		Desk: desk.DefaultSettings(),
		Judging: Judging{Detector: failslow.DefaultSettings(), Findings: anomaly.DefaultSettings(),
			Probe: defaultProbe()},
		Jobs: Jobs{Dispatch{Policy: "dfra", Lend: true, Config: dfra.Defaults()}, Slurm{Every: time.Minute},
			Driver{Kind: DriverNone, Timeout: driver.DefaultFan().Timeout}, tables.Defaults()},
	}
}

// File is where the settings are, and how they are read.
var File = program.File[Config]{Path: "/etc/fairway/fairwayd.toml", Defaults: Default, Check: (*Config).Validate}

// Validate refuses settings that cannot work, by the name of the first.
func (c *Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("name is empty: screens need one")
	case !filepath.IsAbs(c.StateDir):
		return fmt.Errorf("state_dir = %q: want an absolute path", c.StateDir)
	case c.Listen.Socket == "" && c.Listen.HTTP == "" && c.Listen.Agents == "":
		return errors.New("listen.socket and listen.http are both empty: nobody could ask anything")
	case !slices.Contains([]string{DriverNone, DriverAgents, DriverExec, DriverCES}, c.Driver.Kind):
		return fmt.Errorf("driver.kind = %q: want %s, %s, %s or %s (fwdmount is called agents now)", c.Driver.Kind,
			DriverNone, DriverAgents, DriverExec, DriverCES)
	case c.Driver.Drain && c.Driver.Kind != DriverAgents:
		return fmt.Errorf("driver.drain needs driver.kind = %q: the nodes' agents change their routes", DriverAgents)
	case c.Driver.Kind == DriverExec && len(c.Driver.Command) == 0:
		return errors.New("driver.command is empty: the kind exec needs one")
	case c.Driver.Timeout < time.Millisecond:
		return fmt.Errorf("driver.timeout = %s: want at least 1ms", c.Driver.Timeout)
	case c.Forwarder.PeakBytesPerSec < 0:
		return fmt.Errorf("forwarder.peak_bytes_per_sec = %g: want 0 (not known) or more", c.Forwarder.PeakBytesPerSec)
	}
	for _, room := range []struct {
		prefix string
		err    error
	}{
		{"", c.Listen.Validate()}, {"", c.Store.validate()}, {"", c.Keep.validate()}, {"", c.Cluster.Validate()},
		{"", c.Desk.Validate()}, {"detector.", c.Detector.Validate()}, {"findings.", c.Findings.Validate()},
		{"", c.Probe.validate()}, {"", c.Feed.validate()}, {"alert.", c.Alert.Validate()}, {"", c.Slurm.validate()},
		{"", c.Dispatch.validate()}, {"queue.", c.Queue.Validate()},
	} {
		if room.err != nil {
			return fmt.Errorf("%s%w", room.prefix, room.err)
		}
	}
	if c.Queue.Policy == tables.ByWindows && !c.Dispatch.Windows {
		return fmt.Errorf("queue.policy = %q: dispatch.windows is false, so that no job has a window", c.Queue.Policy)
	}
	if c.Queue.ByPriority() && len(c.Slurm.Jobs) == 0 {
		return fmt.Errorf(
			"queue.policy = %q: jobs' priorities are the batch system's, and slurm.jobs does not say how to ask it",
			c.Queue.Policy)
	}
	if err := evacuate.Validate(c.Rules); err != nil {
		return err
	}
	if err := c.Mounts.Check(); err != nil {
		return fmt.Errorf("[[mount]] %w", err)
	}
	return c.validateNodes()
}

func (c *Config) validateNodes() error {
	roles := map[topology.NodeID]topology.Role{}
	for i, n := range c.Nodes {
		switch {
		case n.ID == "":
			return fmt.Errorf("[[node]] number %d has no id", i+1)
		case n.Role == topology.RoleUnknown:
			return fmt.Errorf("[[node]] %s: role is missing or unknown: want compute, forwarder, storage or metadata",
				n.ID)
		case roles[n.ID] != topology.RoleUnknown:
			return fmt.Errorf("[[node]] %s is listed twice", n.ID)
		}
		roles[n.ID] = n.Role
	}
	for cn, f := range c.Default {
		if r := roles[f.Node()]; r != topology.Forwarder && r != topology.RoleUnknown {
			return fmt.Errorf("default_mapping: %s = %q, which is a %s node", cn, f, r)
		}
	}
	return nil
}

// Roles are those of the configured nodes.
func (c *Config) Roles() map[topology.NodeID]topology.Role {
	out := make(map[topology.NodeID]topology.Role, len(c.Nodes))
	for _, n := range c.Nodes {
		out[n.ID] = n.Role
	}
	return out
}

// Machine is the configured part of the machine.
func (c *Config) Machine() *topology.Machine {
	return &topology.Machine{Name: c.Name, Nodes: c.Nodes, Default: c.Default}
}

// ForwarderAddrs returns where the configured forwarders' file services listen.
func (c *Config) ForwarderAddrs() func(topology.ForwarderID) (string, bool) {
	addrs := map[topology.ForwarderID]string{}
	for _, n := range c.Nodes {
		if n.Role == topology.Forwarder && n.Addr != "" {
			addrs[topology.ForwarderID(n.ID)] = n.Addr
		}
	}
	return func(id topology.ForwarderID) (string, bool) {
		addr, ok := addrs[id]
		return addr, ok
	}
}

// Renamed returns the new name of settings that have had another one.
func (c *Config) Renamed() map[string]string {
	return map[string]string{"relay": "queue", "dispatch.fwd_peak_bw": "forwarder.peak_bytes_per_sec",
		"access.oidc.default": "access.oidc.roles.*", "store.victoria": "store.prometheus"}
}
