// Package share turns a sharing policy into shares of a forwarder's I/O and enforces them by lottery.
// It follows "Fine-grained Policy-driven I/O Sharing for Burst Buffers" (Karrels et al., ThemisIO):
// a policy is a chain of levels (group, user, and job, size or priority), each level is a transition
// matrix, and a job's share is its entry in the product of the matrices (section 3, equation 1).
// Shares are segments of [0,1]; a worker draws a number and serves the job whose segment it hits.
// What idle jobs leave goes to those with work (opportunity fairness), and servers that know only
// their own jobs agree on global shares every lambda (section 3.1).
package share

import (
	"fmt"
	"slices"
	"strings"
)

// Level is one step of a policy: what a share is divided among.
type Level string

// The levels. Group and User divide evenly; Job, Size and Priority come last and divide among jobs:
// evenly, by compute nodes, or by priority.
const (
	Group    Level = "group"
	User     Level = "user"
	EachJob  Level = "job"
	Size     Level = "size"
	Priority Level = "priority"
)

// rank orders the levels from the outside in; levels of one rank exclude each other.
var rank = map[Level]int{Group: 0, User: 1, EachJob: 2, Size: 2, Priority: 2}

// Policy is a chain of levels from the outside in; it always ends in EachJob, Size or Priority.
type Policy []Level

// ParsePolicy reads a policy's name as the paper writes it: levels joined by "-", an optional "then"
// between two of them, and "-fair" at the end: job-fair, user-then-size-fair, group-user-size-fair.
// A policy that names users or groups last divides each one's share evenly among its jobs. A level
// that is unknown, repeated or inside one that it contains is an error.
func ParsePolicy(name string) (Policy, error) {
	body, found := strings.CutSuffix(name, "-fair")
	if !found {
		return nil,
			fmt.Errorf("policy %q does not end in -fair (say job-fair, user-then-size-fair, group-user-size-fair)",
				name)
	}
	var p Policy
	then := true // a "then" may not come first, nor twice
	for word := range strings.SplitSeq(body, "-") {
		if word == "then" && !then {
			then = true
			continue
		}
		level := Level(word)
		r, known := rank[level]
		switch {
		case !known:
			return nil, fmt.Errorf("policy %q: %q is not one of group, user, job, size, priority", name, word)
		case slices.Contains(p, level):
			return nil, fmt.Errorf("policy %q: level %s comes twice", name, level)
		case len(p) > 0 && rank[p[len(p)-1]] >= r:
			return nil,
				fmt.Errorf(
					"policy %q: %s cannot come inside %s (the order is group, user, then one of job, size, priority)",
					name, level, p[len(p)-1])
		}
		p, then = append(p, level), false
	}
	if then {
		return nil, fmt.Errorf("policy %q: \"then\" needs a level after it", name)
	}
	if rank[p[len(p)-1]] < rank[EachJob] {
		p = append(p, EachJob)
	}
	return p, nil
}

// String is the policy's name with every level in it: user-fair reads user-job-fair.
func (p Policy) String() string {
	var b strings.Builder
	for _, l := range p {
		b.WriteString(string(l))
		b.WriteByte('-')
	}
	return b.String() + "fair"
}
