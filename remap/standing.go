package remap

import "time"

// Mode says how far the desk goes by itself.
type Mode string

// The modes.
const (
	ModeObserve Mode = "observe" // plans are proposed, none is applied
	ModeApprove Mode = "approve" // a person approves, a plan or once and for all an application
	ModeAuto    Mode = "auto"    // plans of policies are approved by rule, within the guard rails
)

// ViaPolicy is Person.Via of a policy: its proposals may be approved by rule.
const ViaPolicy = "policy"

// ViaRule is Person.Via of an approval by rule: nobody gave it in that moment.
const ViaRule = "rule"

// Standing is a person's yes to every plan of a policy for an application, given beforehand.
type Standing struct {
	ID     string    `json:"id"`
	App    string    `json:"app"`
	User   string    `json:"user,omitempty"` // empty: of every user
	By     string    `json:"by"`
	Via    string    `json:"via,omitempty"` // the listener that By came through
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	// Lapsed says why it does not hold at present, of one that is listed.
	Lapsed string `json:"lapsed,omitempty"`
}

// MaxStanding bounds how long a standing approval holds: somebody looks at it once in a while.
const MaxStanding = 366 * 24 * time.Hour
