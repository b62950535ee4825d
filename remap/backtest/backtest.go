// Package backtest replays a history of jobs through policies on a modelled machine. It says what each would have
// granted, what that would have used, and who would have gained or lost.
//
// The times are a model's (see expected), good for comparing policies on the same history and not
// for promising seconds. It is a pure function of its input.
package backtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// Machine is the modelled site.
type Machine struct {
	Compute    int // compute nodes
	Forwarders int // those of the default mapping, and spare ones
	// DefaultRatio is the compute nodes per forwarder of the default mapping: the first
	// Compute/DefaultRatio forwarders serve, the others are spare.
	DefaultRatio int
	FwdBW, CNBW  float64 // peak bandwidths, bytes/s
	// Slow of the default forwarders, evenly spread, run at SlowShare of their bandwidth all the time,
	// and every policy but FFM knows it.
	Slow      int
	SlowShare float64
}

// TaihuLight is the machine of FAST'19: 40,960 compute nodes, 240 forwarders of which 80 are mapped,
// 2.5 GB/s a forwarder and a 32nd of it a compute node.
func TaihuLight() Machine {
	return Machine{Compute: 40960, Forwarders: 240, DefaultRatio: 512, FwdBW: 2.5e9, CNBW: 2.5e9 / 32, SlowShare: 0.2}
}

// Validate names the field that cannot be.
func (m Machine) Validate() error {
	switch {
	case m.Compute < 1 || m.Compute > 1<<20:
		return fmt.Errorf("compute nodes = %d: want 1 to %d", m.Compute, 1<<20)
	case m.DefaultRatio < 1:
		return fmt.Errorf("default ratio = %d: want at least 1", m.DefaultRatio)
	case m.Forwarders < m.mapped() || m.Forwarders > 1<<16:
		return fmt.Errorf("forwarders = %d: want at least the %d that %d compute nodes need at %d a forwarder",
			m.Forwarders, m.mapped(), m.Compute, m.DefaultRatio)
	case m.FwdBW <= 0 || m.CNBW <= 0:
		return fmt.Errorf("bandwidths %g and %g bytes/s: want more than 0", m.FwdBW, m.CNBW)
	case m.Slow < 0 || m.Slow > m.mapped() || m.SlowShare <= 0 || m.SlowShare > 1:
		return fmt.Errorf("%d slow forwarders at a share of %g: want 0 to %d at more than 0, at most 1", m.Slow,
			m.SlowShare, m.mapped())
	}
	return nil
}

// mapped counts the forwarders of the default mapping.
func (m Machine) mapped() int { return (m.Compute + m.DefaultRatio - 1) / m.DefaultRatio }

// Policy is a decider under its name.
type Policy struct {
	Name   string
	Decide func(dfra.Case) dfra.Decision
	// Arbitrates says that it looks at the jobs that start within the same minute together.
	Arbitrates bool
	// RoundRobin is how many contiguous compute nodes share a forwarder, over all forwarders in turn; 0: the default
	// mapping.
	RoundRobin int
}

// FFM is the fixed mapping: nothing is ever changed, slow forwarders included.
var FFM = Policy{Name: "ffm"}

// RR is DFRA's rival in its figure 12: 32 compute nodes to one, round robin. It spreads every job and isolates none.
var RR = Policy{Name: "rr-32", RoundRobin: 32}

// ErrNoJobs says that a history has no job that can be replayed.
var ErrNoJobs = errors.New("no job with an end and at least one compute node")

// Run replays runs, in any order, through a policy.
func Run(m Machine, limits dfra.Config, runs []history.Run, p Policy) (*Result, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	s := newSim(m, limits, p)
	if err := s.load(runs); err != nil {
		return nil, err
	}
	s.play()
	return s.result(), nil
}

// job is one run in the replay.
type job struct {
	run  *history.Run
	end  time.Time
	past *dfra.Run // what the run itself did, as the history of a later one; nil: not known
	// seen is what was known when it started, and of how many runs.
	seen   *dfra.Run
	depth  int
	blocks []block // its compute nodes
	placed bool
	on     []share
	alone  bool // its forwarders are dedicated to it

	granted bool // its nodes left their default forwarders
	action  dfra.Action
	seconds float64 // expected I/O time; 0 without volume
	mark    int     // of the last look for neighbours
}

// share is a forwarder, the part of the job's nodes on it, and its load so far when the job came.
type share struct {
	fwd  int
	part float64
	then float64
}

// event is a job's start or end.
type event struct {
	at    time.Time
	start bool
	job   *job
}

// load turns runs into jobs and events in order; of one instant, ends come first.
func (s *sim) load(runs []history.Run) error {
	for i := range runs {
		r := &runs[i]
		if r.End.IsZero() || r.Nodes < 1 || r.End.Before(r.Start) {
			continue
		}
		j := &job{run: r, end: r.End}
		if !r.End.After(r.Start) {
			j.end = r.Start.Add(time.Second)
		}
		if r.Profile != nil {
			j.past = dispatch.Past(r)
		}
		s.jobs = append(s.jobs, j)
		s.events = append(s.events, event{r.Start, true, j}, event{j.end, false, j})
	}
	if len(s.jobs) == 0 {
		return ErrNoJobs
	}
	slices.SortStableFunc(s.events, func(a, b event) int {
		if c := a.at.Compare(b.at); c != 0 || a.start == b.start {
			return c
		}
		if b.start {
			return -1
		}
		return 1
	})
	return nil
}
