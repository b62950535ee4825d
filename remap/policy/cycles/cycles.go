// Package cycles finds periodic applications in the history of runs: those that compute, then do their
// I/O, and again. It says how long each part takes, how much it moves and how much that varies, as package periodic
// needs it (Aupy et al., Periodic I/O scheduling for super-computers, section 2).
package cycles

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// Limits say what counts as periodic; all are ours.
type Limits struct {
	// Phases is the least number of I/O phases of a run: three cycles say little of a spread.
	Phases int
	// Small is the share of a run's largest phase below which a phase is passed over, 0..1: a line of a
	// log, between two checkpoints.
	Small float64
	// Spread is the most that period and volume may vary, as the distance of their quartiles over the median.
	Spread float64
}

// Defaults returns the limits.
func Defaults() Limits { return Limits{Phases: 5, Small: 0.1, Spread: 0.2} }

// Stat is a quantity over the cycles of an application: median and quartiles.
type Stat struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// Spread is the distance of the quartiles over the median.
func (s Stat) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.High - s.Low) / s.Median
}

// Cycle is what the history says of one application.
type Cycle struct {
	App     string `json:"app"`
	User    string `json:"user"`
	Project string `json:"project,omitempty"`
	Nodes   int    `json:"nodes"`
	// Job is the newest run that shows it, Runs how many do, Cycles how many cycles they have.
	Job    topology.JobID `json:"job"`
	End    time.Time      `json:"end"` // of that run
	Runs   int            `json:"runs"`
	Cycles int            `json:"cycles"`
	// Period is from one phase's start to the next one's, seconds; Compute the part without I/O, and IO
	// the rest. Volume is what a phase moves, bytes.
	Period  Stat `json:"period_seconds"`
	Compute Stat `json:"compute_seconds"`
	IO      Stat `json:"io_seconds"`
	Volume  Stat `json:"volume_bytes"`
	// NodeBytesPerSec is the most that one of its nodes moved; 0 where that is not known.
	NodeBytesPerSec float64 `json:"node_bytes_per_sec,omitempty"`
	Periodic        bool    `json:"periodic"`
	Why             string  `json:"why"` // in words, with the numbers
}

// Of groups runs by application, user, project and size, and judges each group by all its runs. The
// order is that of the newest run, the newest first. Runs without a profile are left out.
func Of(runs []history.Run, lim Limits) []Cycle {
	groups := map[history.Key][]history.Run{}
	for _, r := range runs {
		if r.Profile != nil && !r.End.IsZero() {
			groups[r.Key()] = append(groups[r.Key()], r)
		}
	}
	out := make([]Cycle, 0, len(groups))
	for key, runs := range groups {
		slices.SortStableFunc(runs, func(a, b history.Run) int { return b.End.Compare(a.End) })
		out = append(out, judge(key, runs, lim))
	}
	slices.SortFunc(out, func(a, b Cycle) int {
		return cmp.Or(b.End.Compare(a.End), cmp.Compare(a.App, b.App), cmp.Compare(a.Job, b.Job))
	})
	return out
}

// judge says whether runs of a kind are periodic, phases being joined over the first gap (seconds) at which they are: a
// checkpoint may stall for some seconds, and short phases must not become one.
func judge(key history.Key, runs []history.Run, lim Limits) Cycle {
	asTheyAre := judgeAt(0, key, runs, lim)
	if asTheyAre.Periodic {
		return asTheyAre
	}
	for _, gap := range [...]float64{5, 10} {
		if c := judgeAt(gap, key, runs, lim); c.Periodic {
			return c
		}
	}
	return asTheyAre
}

func judgeAt(gap float64, key history.Key, runs []history.Run, lim Limits) Cycle {
	c := Cycle{App: key.App, User: key.User, Project: key.Project, Nodes: key.Nodes, Job: runs[0].Job, End: runs[0].End}
	var period, compute, io, volume []float64
	most := 0
	for i := range runs {
		p := runs[i].Profile
		c.NodeBytesPerSec = max(c.NodeBytesPerSec, p.PeakNodeBytesPerSec)
		phases := large(p.Phases, lim.Small)
		if gap > 0 && len(phases) > 0 {
			phases = history.Joined(phases, gap)
		}
		most = max(most, len(phases))
		if len(phases) < lim.Phases {
			continue
		}
		c.Runs++
		for k, ph := range phases[:len(phases)-1] { // the last one has no next
			t := phases[k+1].AtSeconds - ph.AtSeconds
			period, io, compute = append(period, t), append(io, ph.Seconds), append(compute, t-ph.Seconds)
		}
		for _, ph := range phases {
			volume = append(volume, ph.ReadBytes+ph.WriteBytes)
		}
	}
	if c.Runs == 0 {
		c.Why = fmt.Sprintf("not periodic: %d phases of I/O in a run at most, %d are needed", most, lim.Phases)
		return c
	}
	c.Cycles = len(period)
	c.Period, c.Compute, c.IO, c.Volume = stat(period), stat(compute), stat(io), stat(volume)
	switch {
	case c.Period.Spread() > lim.Spread:
		c.Why = fmt.Sprintf(
			"not periodic: half of its %d periods lie between %.0f and %.0f s, a spread of %.0f %% of the median; "+
				"%.0f %% is the most",
			c.Cycles, c.Period.Low, c.Period.High, 100*c.Period.Spread(), 100*lim.Spread)
	case c.Volume.Spread() > lim.Spread:
		c.Why = fmt.Sprintf(
			"not periodic: half of its phases move between %s and %s, a spread of %.0f %% of the median; %.0f "+
				"%% is the most",
			anomaly.Size(c.Volume.Low), anomaly.Size(c.Volume.High), 100*c.Volume.Spread(), 100*lim.Spread)
	case c.Compute.Median <= 0:
		c.Why = "not periodic: it does I/O all the time"
	default:
		c.Periodic = true
		c.Why = fmt.Sprintf(
			"every %.0f s (spread %.0f %%) %s (spread %.0f %%), after %.0f s of computation; %d cycles in %d runs",
			c.Period.Median, 100*c.Period.Spread(), anomaly.Size(c.Volume.Median), 100*c.Volume.Spread(),
			c.Compute.Median, c.Cycles, c.Runs)
	}
	return c
}

// large are the phases that move a share of what the largest one does.
func large(phases []history.Phase, share float64) []history.Phase {
	most := 0.0
	for _, p := range phases {
		most = max(most, p.ReadBytes+p.WriteBytes)
	}
	var out []history.Phase
	for _, p := range phases {
		if v := p.ReadBytes + p.WriteBytes; v > 0 && v >= share*most {
			out = append(out, p)
		}
	}
	return out
}

// stat is the median and the quartiles, each the nearest value.
func stat(values []float64) Stat {
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(q*float64(len(values)-1)+0.5)] }
	return Stat{Low: at(0.25), Median: at(0.5), High: at(0.75)}
}

// Machine is what the applications share. The processors of the paper are compute nodes here.
type Machine struct {
	Nodes           float64
	NodeBytesPerSec float64 // 0: the most that an application's node was seen to move
	BytesPerSec     float64 // of the I/O system
}

// Shared is what the machine's jobs share, as far as it is configured.
func Shared(m *topology.Machine) (out Machine) {
	for _, n := range m.Nodes {
		switch n.Role {
		case topology.Compute:
			out.Nodes++
			out.NodeBytesPerSec = max(out.NodeBytesPerSec, n.PeakBytesPerSec)
		case topology.Forwarder:
			out.BytesPerSec += n.PeakBytesPerSec
		}
	}
	return out
}
