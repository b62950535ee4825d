package api

import (
	"time"

	"fairway/collector/topology"
)

// Enrolment asks for a node's own token, by a join token.
type Enrolment struct {
	Node topology.NodeID `json:"node"`
}

// Revocation names nodes whose tokens are refused, and up to when these were issued; in a request the zero time is now.
type Revocation struct {
	Nodes map[topology.NodeID]time.Time `json:"nodes"`
}

// Enrolled is a node's own token.
type Enrolled struct {
	Node  topology.NodeID `json:"node"`
	Token string          `json:"token"`
}
