package api

import "time"

// JobNow is what a running job does, for the help desk: how much it moves, how long it waits and for what.
type JobNow struct {
	// MovedBytesPerSec is the mean of the last ten seconds, read and written, over all its nodes.
	MovedBytesPerSec *float64 `json:"moved_bytes_per_sec"`
	// Wait is the part of their time, 0..1, that its nodes behind one forwarder waited in the last minute beyond what
	// operations take elsewhere, those that waited the most; Cause is for what, where they waited.
	Wait    *float64 `json:"wait"`
	Cause   string   `json:"cause,omitempty"` // forwarder, neighbour, back end or own pattern
	Waiting bool     `json:"waiting"`         // more than 5 %: worth a look
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
