package remap

import (
	"errors"
	"fmt"
)

// Role is what a person may do; each includes the one before it.
type Role string

// The roles.
const (
	// User sees what belongs to the own jobs, and nothing of others.
	User     Role = "user"
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Includes says whether a person of role r may do what needs the role need. An unknown role may
// do nothing.
func (r Role) Includes(need Role) bool {
	rank := map[Role]int{User: 1, Viewer: 2, Operator: 3, Admin: 4}
	return rank[r] > 0 && rank[r] >= rank[need]
}

// Person is who asks: the name and role that the listener established, and how they came in.
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
	// Rule is the rule of the site's settings that asks; Act says that it approves, too.
	Rule string
	Act  bool
}

// Answer is a person's decision about a plan.
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
	ErrNotLeading = errors.New("this daemon does not lead its cluster")
)

// May returns why p may not do what needs a role; nil where p may.
func (p Person) May(need Role, what string) error {
	if why := p.lacks(need, what); why != "" {
		return fmt.Errorf("%w: %s", ErrNotAllowed, why)
	}
	return nil
}

// lacks says what p lacks to do what needs a role; empty: nothing.
func (p Person) lacks(need Role, what string) string {
	switch {
	case p.Name == "":
		return what + " needs a name to put in the audit"
	case !p.Role.Includes(need):
		return fmt.Sprintf("%s needs the role %s, %s is %q", what, need, p.Name, p.Role)
	}
	return ""
}
