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

// Merge adds verdicts to those of nearer judges; of two about the same the higher level stays, of two alarms the worse
// condition: a node that is silent and slow is one incident. Else it is the one that came first: scores of different
// tests cross from second to second, and a finding's sentence would jump.
func Merge(to, more []Verdict) []Verdict {
	if len(more) == 0 {
		return to
	}
	at := make(map[subject]int, len(to)+len(more))
	for i := range to {
		if about := to[i].about(); at[about] == 0 {
			at[about] = i + 1
		}
	}
	for i := range more {
		v, about := &more[i], more[i].about()
		k := at[about]
		switch {
		case k == 0:
			to = append(to, *v)
			at[about] = len(to)
		case v.Level > to[k-1].Level, v.Level == Alarm && v.Level == to[k-1].Level &&
			v.condition().Worse(to[k-1].condition()):
			to[k-1] = *v
		}
	}
	return to
}

// about is what a verdict is about; jobs may each do the same on one node.
func (v *Verdict) about() subject {
	s := subjectOf(v.Node, v.Kind, v.Culprits)
	s.node = v.Node
	return s
}

func (v *Verdict) condition() Condition { return cmp.Or(v.Condition, v.Kind.condition()) }
