package api

import (
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

// JobRow is a job in a list. An ended one has no nodes any more, only their number.
type JobRow struct {
	remap.Job
	NodeCount int       `json:"node_count"`
	End       time.Time `json:"end,omitzero"`
	// Now is what a running job does; absent of one that is not followed. Whole is what one did that has ended: its
	// means are over its life, its minutes the last.
	Now   *JobNow `json:"now,omitempty"`
	Whole *JobNow `json:"whole,omitempty"`
}

// JobView is one job: where its nodes are, what they do, what was decided for it, and what it did.
type JobView struct {
	JobRow
	JobWords
	Forwarders map[topology.ForwarderID]int `json:"forwarders"` // with the number of the job's nodes on each now
	Plans      []string                     `json:"plans"`      // newest first
	// Served are the forwarders over the run, known at its end.
	Served []topology.ForwarderID `json:"served_by"`
	// The newest second over all its nodes; nil where none of them reports.
	ReadBytesPerSec  *float64 `json:"read_bytes_per_sec"`
	WriteBytesPerSec *float64 `json:"write_bytes_per_sec"`
	MetaOpsPerSec    *float64 `json:"meta_ops_per_sec"`
	// SoFar is what a running job has done since it is watched, WatchedSince when that began: later
	// than the start where the daemon was started meanwhile. Its io_nodes are not known.
	SoFar        *history.Profile `json:"so_far"`
	WatchedSince time.Time        `json:"watched_since,omitzero"`
	// Neighbours are the jobs on a running job's forwarders that move bytes there now, the most first.
	Neighbours []Neighbour `json:"neighbours"`
	// Waits is a running job's last quarter of an hour; nil of one that is not followed.
	Waits *JobWaits `json:"waits,omitempty"`
	// Decision is what the policy decided at the job's start; nil when it was not asked since the
	// daemon's own start.
	Decision *dispatch.Answer `json:"decision"`
	// Profile is nil for a job that runs, or of which nothing was collected; Pending says that it is
	// being made.
	Pending bool             `json:"pending"`
	Profile *history.Profile `json:"profile"`
}

// JobWords are the first lines of a job's page.
type JobWords struct {
	// Answer says in one sentence what it lost to whom, what was done and how it is now: the answer to a ticket.
	Answer string `json:"answer"`
	// RunTime says which part of its time was I/O, whether that is too little to bother, and what its nodes' processors
	// and memory did; empty where nothing is known of its I/O. IOShare is that part, 0..1.
	RunTime string   `json:"run_time"`
	IOShare *float64 `json:"io_share"`
	// Shared are the storage targets that are slow for it and that other sites may use; for who may see all jobs.
	Shared []SharedTarget `json:"shared,omitempty"`
}

// ProfileView is what a job did.
type ProfileView struct {
	JobRow
	Served []topology.ForwarderID `json:"served_by"` // forwarders, over the run
	// Pending says that the job has ended and its profile is being made.
	Pending bool `json:"pending"`
	// Profile is null for a job that runs, or of which nothing was collected.
	Profile *history.Profile `json:"profile"`
}

// Neighbour is a job that shares forwarders with another one, now.
type Neighbour struct {
	Job              topology.JobID         `json:"job"`
	App              string                 `json:"app,omitempty"`
	On               []topology.ForwarderID `json:"on"` // both use them
	ReadBytesPerSec  float64                `json:"read_bytes_per_sec"`
	WriteBytesPerSec float64                `json:"write_bytes_per_sec"`
	// Takes is its part of the bytes on the job's forwarders, each counted by the job's own use of it,
	// 0..1. Relief is the job's part of the bytes on the forwarders that both use, counted by the
	// neighbour's use: what would leave them if the job went to others. nil: the job moves no bytes now.
	Takes  *float64 `json:"takes"`
	Relief *float64 `json:"relief"`
	// Finding names one that holds it responsible there.
	Finding string `json:"finding,omitempty"`
}

// JobNow is what a running job does, for the help desk: how much it moves, how long it waits and for what.
type JobNow struct {
	// MovedBytesPerSec is the mean of the last ten seconds, read and written, over all its nodes.
	MovedBytesPerSec *float64 `json:"moved_bytes_per_sec"`
	// Wait is the part of their time, 0..1, that its nodes behind one forwarder waited in the last minute beyond what
	// operations take elsewhere, those that waited the most; Cause is for what, where they waited.
	Wait  *float64 `json:"wait"`
	Cause string   `json:"cause,omitempty"` // forwarder, neighbour, back end or own pattern
	// Slow is the forwarder that a finding accuses of it, where Cause is one.
	Slow    string `json:"slow,omitempty"`
	Waiting bool   `json:"waiting"` // more than 5 %: worth a look
	// Forwarders counts those that its nodes use.
	Forwarders int `json:"forwarders"`
	// Moved are the last five minutes in steps of StepSeconds, bytes/s, the oldest first; null where not known.
	Moved       []*float64 `json:"moved"`
	StepSeconds int        `json:"step_seconds"`
}

// JobWaits is a running job's last quarter of an hour: what it moved, and how long it waited for what.
type JobWaits struct {
	End         time.Time `json:"end"` // of the newest step
	StepSeconds int       `json:"step_seconds"`
	// Moved are bytes/s of each step, the oldest first; null where not known.
	Moved []*float64 `json:"moved"`
	// Causes has a row of parts of its nodes' time, 0..1, for each cause.
	Causes []WaitCause `json:"causes"`
}

// WaitCause is one thing that a job waits for.
type WaitCause struct {
	Cause string     `json:"cause"`
	Text  string     `json:"text"` // what that is
	Waits []*float64 `json:"waits"`
	Now   *float64   `json:"now"` // mean of the last minute
}

// WaitsFrom is the part of its nodes' time from which on a job counts as waiting.
const WaitsFrom = 0.05
