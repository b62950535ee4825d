package api

import (
	"time"
)

// AuditEntry is one line of the append-only record of who did what.
type AuditEntry struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`          // user, or the policy's name
	From    string    `json:"from,omitempty"` // unix socket, remote address
	Action  string    `json:"action"`         // propose, approve, reject, apply, roll back, ...
	Subject string    `json:"subject"`        // plan or node
	Reason  string    `json:"reason,omitempty"`
	Result  string    `json:"result,omitempty"`
	Hash    string    `json:"hash,omitempty"` // of this line and the one before
}

// LastAct is what a person did last, and how it is taken back.
type LastAct struct {
	Seq uint64    `json:"seq"` // of the audit
	At  time.Time `json:"at"`
	Did string    `json:"did"` // in words
	// Undo says what taking it back does; empty where it cannot be, for the reason in WhyNot.
	Undo   string `json:"undo,omitempty"`
	WhyNot string `json:"why_not,omitempty"`
}

// Undo asks that an act be taken back; it is refused once the caller has done something else.
type Undo struct {
	Seq uint64 `json:"seq"`
}

// AuditQuery says which entries of the audit are wanted; an empty text is any.
type AuditQuery struct {
	Actor   string // a person's or a policy's whole name
	Subject string // a plan, a finding or an excluded forwarder
	// From (inclusive) and To (exclusive) are RFC 3339, or -2h before now.
	From, To string
	Limit    int // at most so many, the newest; 0 is the server's own limit
}

// Allow asks that every plan of a policy for an application be approved beforehand.
type Allow struct {
	App    string `json:"app"`
	User   string `json:"user,omitempty"` // empty: of every user
	TTL    string `json:"ttl"`            // how long, such as "720h"
	Reason string `json:"reason"`
}
