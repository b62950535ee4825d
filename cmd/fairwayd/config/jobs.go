package config

import (
	"fmt"
	"time"

	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/remap/queue/tables"
)

// Jobs says where jobs are known from, which forwarders they get, and how.
type Jobs struct {
	Dispatch Dispatch        `toml:"dispatch" help:"Which forwarders a job gets; sources: docs/decide.md."`
	Slurm    Slurm           `toml:"slurm" help:"How the batch system is asked; a job not listed has ended."`
	Driver   Driver          `toml:"driver"`
	Queue    tables.Settings `toml:"queue" help:"Shares of the jobs at each forwarder; docs/shares.md."`
}

// Dispatch says how a job's forwarders are decided.
type Dispatch struct {
	Policy    string  `toml:"policy" help:"What decides a job's forwarders: dfra, mckp or avoid."`
	HarmBound float64 `toml:"harm_bound" help:"How much slower than by default mckp may make a job: 0.05 is 5 %."`
	Windows   bool    `toml:"windows" help:"Whether periodic jobs get windows for their I/O; docs/periodic.md."`
	Lend      bool    `toml:"lend" help:"Whether forwarders of free nodes may be granted; docs/decide.md."`
	dfra.Config
}

func (d *Dispatch) validate() error {
	if _, err := dispatch.PolicyByName(d.Policy, d.HarmBound); err != nil {
		return fmt.Errorf("dispatch.%w", err)
	}
	if d.HarmBound < 0 || d.HarmBound > 10 {
		return fmt.Errorf("dispatch.harm_bound = %g: want 0 to 10", d.HarmBound)
	}
	if err := d.Config.Validate(); err != nil {
		return fmt.Errorf("dispatch.%w", err)
	}
	return nil
}

// Slurm says how the batch system is asked which jobs there are.
type Slurm struct {
	Jobs  []string      `toml:"jobs" help:"Command that lists jobs, such as [\"squeue\", \"--json\"]; empty: hooks."`
	Every time.Duration `toml:"every" help:"How often it is run, 10s to 1h."`
}

func (s *Slurm) validate() error {
	switch {
	case len(s.Jobs) > 0 && s.Jobs[0] == "":
		return fmt.Errorf("slurm.jobs: the command's first word is empty")
	case s.Every < 10*time.Second || s.Every > time.Hour:
		return fmt.Errorf("slurm.every = %s: want 10s to 1h", s.Every)
	}
	return nil
}

// Priority is a job's priority for sharing; nil where the batch system is not asked for jobs.
func (j *Jobs) Priority() func(*remap.Job) float64 {
	if len(j.Slurm.Jobs) == 0 {
		return nil
	}
	return j.Queue.Priorities.Of
}

// Driver says how compute nodes are moved.
type Driver struct {
	Kind    string        `toml:"kind" help:"How compute nodes are moved: none, agents, exec (a command) or ces."`
	Command []string      `toml:"command" help:"The command of the kind exec, a word an argument (docs/drivers.md)."`
	Timeout time.Duration `toml:"timeout" help:"Longest wait for the answer to one try."`
	Drain   bool          `toml:"drain" help:"Nodes with LNet prefer other routers than excluded ones; kind agents."`
}

// The kinds of driver.
const (
	DriverNone   = "none"
	DriverAgents = "agents"
	DriverExec   = "exec"
	DriverCES    = "ces"
)
