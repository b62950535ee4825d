package remap

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Role is what a person may do; each includes the one before it.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Includes says whether a person of role r may do what needs the role need. An unknown role may
// do nothing.
func (r Role) Includes(need Role) bool {
	rank := map[Role]int{Viewer: 1, Operator: 2, Admin: 3}
	return rank[r] > 0 && rank[r] >= rank[need]
}

// Person is who asks: the name and role that the door established, and the door.
type Person struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	Via  string `json:"via"` // unix, token, session, proxy, or ViaPolicy
}

// Request asks for a remap.
type Request struct {
	Key    string // idempotency key; empty: none
	Job    string
	App    string // of the job; standing approvals are by application and user
	User   string
	Moves  []Move // From is filled in by the desk
	Reason string
	Force  bool
	// Dedicated keeps the targets for Job alone; it needs a Job.
	Dedicated bool
	// Ledger is what a policy expects; nil for people.
	Ledger *Ledger
}

// Answer is a person's word on a plan.
type Answer struct {
	Key    string // idempotency key; empty: none
	Hash   string // of the preview that the person saw; for approvals
	Reason string
}

// The refusals of the desk. Every error it returns wraps one of them or is a failure of the
// journal, and names the plan, node or setting it is about.
var (
	ErrNotFound   = errors.New("not found")
	ErrChanged    = errors.New("changed since it was previewed")
	ErrNotAllowed = errors.New("not allowed")
	ErrState      = errors.New("not possible now")
	ErrInvalid    = errors.New("invalid request")
	ErrConflict   = errors.New("idempotency key was used for another request")
	ErrClosed     = errors.New("the desk is closed")
)

// reasonLetters is the least that counts as a reason, maxReason the most that
// is kept.
const (
	reasonLetters = 10
	MaxReason     = 2000
)

// CheckReason refuses a reason that is too short to be read in an audit.
func CheckReason(reason string) error {
	if n := utf8.RuneCountInString(reason); n < reasonLetters {
		return fmt.Errorf("%w: reason %q has %d letters, at least %d are kept in the audit", ErrInvalid, reason, n,
			reasonLetters)
	}
	return CheckText(reason)
}

// CheckText refuses what would spoil a screen or a log.
func CheckText(reason string) error {
	switch {
	case len(reason) > MaxReason:
		return fmt.Errorf("%w: reason of %d bytes, at most %d", ErrInvalid, len(reason), MaxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason,
		func(r rune) bool { return r != '\n' && unicode.IsControl(r) }):
		return fmt.Errorf("%w: reason %.80q has control characters or is not UTF-8", ErrInvalid, reason)
	}
	return nil
}

// May says why p may not do what needs a role; nil where p may.
func (p Person) May(need Role, what string) error {
	if p.Name == "" {
		return fmt.Errorf("%w: %s needs a name to put in the audit", ErrNotAllowed, what)
	}
	if !p.Role.Includes(need) {
		return fmt.Errorf("%w: %s needs the role %s, %s is %q", ErrNotAllowed, what, need, p.Name, p.Role)
	}
	return nil
}
