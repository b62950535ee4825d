package api

import (
	"time"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/remap/advise"
)

// FindingView is one finding with its life, the oldest change first.
type FindingView struct {
	anomaly.Finding
	remap.Options
	// Card is what is so, who suffers and what helps, as the first screen has it.
	Card    advise.Card      `json:"card"`
	Changes []anomaly.Change `json:"changes"`
}

// Exclude asks that a forwarder be kept out of allocation.
type Exclude struct {
	Reason string `json:"reason"`
	TTL    string `json:"ttl"` // how long, such as "4h"
	// Maintenance says that the forwarder is worked on: nothing is found of it meanwhile. From is when that begins;
	// absent: now.
	Maintenance bool      `json:"maintenance,omitempty"`
	From        time.Time `json:"from,omitzero"`
}

// Note is what a person writes about a finding, and about which moment of it; absent: now.
type Note struct {
	Text string    `json:"text"`
	At   time.Time `json:"at,omitzero"`
}

// Silence asks that a finding does not alert for a while; "0s" ends that.
type Silence struct {
	For    string `json:"for"` // such as "4h", 1m to 168h
	Reason string `json:"reason"`
}
