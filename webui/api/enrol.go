package api

import "fairway/collector/topology"

// Enrolment asks for a node's own token, by a join token.
type Enrolment struct {
	Node topology.NodeID `json:"node"`
}

// Enrolled is a node's own token.
type Enrolled struct {
	Node  topology.NodeID `json:"node"`
	Token string          `json:"token"`
}
