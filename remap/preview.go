package remap

import ()

// Preview is what approving a plan would do now, in words, and the hash that binds an approval
// to it.
type Preview struct {
	Plan   Plan     `json:"plan"` // with From as observed now
	Title  string   `json:"title"`
	Lines  []string `json:"lines"`
	Checks []Check  `json:"checks"`
	Hash   string   `json:"hash"`
	Needs  int      `json:"needs"` // approvals
	// MayApprove is empty when the caller may approve, else why not.
	MayApprove string `json:"may_approve"`
	// Frozen is the part of the situation that the preview was made of.
	Frozen Frozen `json:"-"`
	// Options is what the caller may do with the plan.
	Options Options `json:"options"`
}

// Check is one precondition of a plan. An amber one asks for a second approval, a red one forbids.
type Check struct {
	Name  string     `json:"name"`
	Level CheckLevel `json:"level"`
	Text  string     `json:"text"`
}

// CheckLevel grades a check.
type CheckLevel string

// The levels of a check.
const (
	Green CheckLevel = "ok"
	Amber CheckLevel = "amber"
	Red   CheckLevel = "red"
)
