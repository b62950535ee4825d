package anomaly

import (
	"cmp"
	"slices"
)

// Condition says in which way a node fails, the same word on every layer and surface.
type Condition string

// The conditions of a node that is accused.
const (
	Slow       Condition = "slow"       // it answers, later than its peers
	Hung       Condition = "hung"       // it takes requests and completes none
	Dead       Condition = "dead"       // it refuses, or its senders call it down
	Silent     Condition = "silent"     // its agent does not report; its clients may still be well
	Unreadable Condition = "unreadable" // its agent is well, what its service counts cannot be read
)

// grades are the conditions, the worst last. What those who use a node see of it is worse than that it does not report.
var grades = [...]Condition{"", Unreadable, Silent, Slow, Hung, Dead}

// Worse reports whether a condition supersedes another one.
func (c Condition) Worse(than Condition) bool { return c.grade() > than.grade() }

func (c Condition) grade() int { return slices.Index(grades[:], c) }

// Serves reports whether a node in that condition may still be given work: a hung, dead or silent one may not.
func (c Condition) Serves() bool { return c == "" || c == Slow || c == Unreadable }

// condition is the one that a finding's kind implies where its detector did not say.
func (k Kind) condition() Condition {
	switch k {
	case FailSlow, TargetSlow, ClientSlow:
		return Slow
	case ForwarderSilent:
		return Silent
	}
	return ""
}

// graver orders two verdicts about one node: the higher level first, then the worse condition.
func graver(a, b *Verdict) int {
	return cmp.Or(-cmp.Compare(a.Level, b.Level), -cmp.Compare(a.Condition.grade(), b.Condition.grade()))
}
