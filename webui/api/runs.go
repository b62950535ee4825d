package api

import (
	"slices"
	"time"

	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// JobRuns compares a job with the runs like it: ended ones of the same user, application, project and
// number of nodes of which a profile is known. They are the runs that a prediction is from.
type JobRuns struct {
	Job     topology.JobID `json:"job"`
	User    string         `json:"user"`
	App     string         `json:"app"`
	Project string         `json:"project,omitempty"`
	Nodes   int            `json:"nodes"`
	// This is the job itself; what it has done so far while it runs, nil where nothing is known of it.
	This *RunRow  `json:"this"`
	Runs []RunRow `json:"runs"` // without the job itself, the newest first
	All  int      `json:"all"`  // how many there are; Runs has the newest of them
	// How the I/O time, the bandwidth and the metadata operations were spread over Runs; nil where none
	// of them did I/O.
	IOSeconds     *Spread `json:"io_seconds"`
	BytesPerSec   *Spread `json:"bytes_per_sec"`
	MetaOpsPerSec *Spread `json:"meta_ops_per_sec"`
	// MetaOnly says that these runs work on metadata: bytes for each operation are so few that a
	// bandwidth says nothing of them.
	MetaOnly bool `json:"meta_only"`
}

// fewBytes is how many bytes for each metadata operation still make no bandwidth: one page.
const fewBytes = 4096

// Compare places the job among Runs.
func (v *JobRuns) Compare() {
	var times, rates, ops []float64
	var bytes, meta float64
	all := v.Runs
	if v.This != nil {
		all = append(slices.Clone(all), *v.This)
	}
	for i := range all {
		r := &all[i]
		bytes, meta = bytes+r.ReadBytes+r.WriteBytes, meta+r.MetaOps
		if i < len(v.Runs) && r.BytesPerSec != nil {
			times, rates = append(times, r.IOSeconds), append(rates, *r.BytesPerSec)
			if r.MetaOpsPerSec != nil {
				ops = append(ops, *r.MetaOpsPerSec)
			}
		}
	}
	var mine, rate, did *float64
	if t := v.This; t != nil && t.BytesPerSec != nil {
		rate, did = t.BytesPerSec, t.MetaOpsPerSec
		if !t.Partial {
			mine = &t.IOSeconds
		}
	}
	v.IOSeconds, v.BytesPerSec, v.MetaOpsPerSec = SpreadOf(times, mine), SpreadOf(rates, rate), SpreadOf(ops, did)
	v.MetaOnly = meta > 0 && bytes < fewBytes*meta
}

// RunRow is one run in a list.
type RunRow struct {
	Job        topology.JobID `json:"job"`
	Start      time.Time      `json:"start"`
	End        time.Time      `json:"end,omitzero"`
	ReadBytes  float64        `json:"read_bytes"`
	WriteBytes float64        `json:"write_bytes"`
	MetaOps    float64        `json:"meta_ops"`
	Mode       topology.Mode  `json:"mode,omitempty"`
	// IOSeconds is the time in which it did I/O, BytesPerSec its mean bandwidth and MetaOpsPerSec its
	// mean metadata operations in that time; nil without I/O.
	IOSeconds     float64                `json:"io_seconds"`
	BytesPerSec   *float64               `json:"bytes_per_sec"`
	MetaOpsPerSec *float64               `json:"meta_ops_per_sec"`
	Forwarders    []topology.ForwarderID `json:"forwarders"`
	// Remapped says that a plan moved its nodes, Plan which; nil where that is not known, because the
	// run came from logs.
	Remapped *bool  `json:"remapped"`
	Plan     string `json:"plan,omitempty"`
	// Waits are the forwarders it waited for, the longest first; nil: not known.
	Waits []history.Wait `json:"waits"`
	// Partial says that watching began after its start.
	Partial bool `json:"partial,omitempty"`
}

// Spread is how values are spread over runs, and where a job stands among them.
type Spread struct {
	Runs   int     `json:"runs"`
	Min    float64 `json:"min"`
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
	Max    float64 `json:"max"`
	// This is the job's own value; nil where it is not known. Below and Above count the runs with a
	// smaller and a larger one.
	This  *float64 `json:"this"`
	Below int      `json:"below"`
	Above int      `json:"above"`
}

// SpreadOf sorts values of runs and places a job's own among them; nil without values. Quartiles lie
// between two values in proportion (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996,
// type 7).
func SpreadOf(values []float64, this *float64) *Spread {
	n := len(values)
	if n == 0 {
		return nil
	}
	v := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		place := q * float64(n-1)
		i := min(int(place), n-2)
		if n == 1 {
			return v[0]
		}
		return v[i] + (place-float64(i))*(v[i+1]-v[i])
	}
	s := &Spread{Runs: n, Min: v[0], Q1: at(0.25), Median: at(0.5), Q3: at(0.75), Max: v[n-1], This: this}
	if this != nil {
		for _, one := range v {
			if one < *this {
				s.Below++
			} else if one > *this {
				s.Above++
			}
		}
	}
	return s
}
