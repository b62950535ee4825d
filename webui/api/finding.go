package api

import (
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
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
	// Shared says who else uses the storage target that it is about; nil where no other sites are known.
	Shared *SharedTarget `json:"shared,omitempty"`
}

// SharedTarget says who of this and other sites accuses a storage target, and whose job does most of the I/O there.
type SharedTarget struct {
	Target topology.NodeID `json:"target"`
	Text   string          `json:"text"`
	// Lines are what moves there now, and of which sites that is not known.
	Lines []string `json:"lines"`
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
