package rootcause

import (
	"cmp"
	"slices"
)

// ownRules are the causes that lie in the job itself, in the order in which they explain its time: metadata beside
// which hardly any bytes moved, requests that no target serves well, a file that all wait for, and what is left idle.
var ownRules = []string{"open-close", "metadata", "small", "unaligned", "random", "redundant", "rewritten",
	"shared-file",
	"independent", "collective", "nonconsec", "procs-per-ost", "one-process", "imbalance", "one-file", "serial"}

// Main is the first of the causes of some answers; nil without a cause. What acted on the job from outside goes
// before what it did itself, the longest first: without it the same program would have been faster. Answers may be nil.
func Main(answers ...*Answer) *Clause {
	var causes []Clause
	for _, a := range answers {
		if a == nil {
			continue
		}
		for _, c := range a.Reasons {
			if c.Cause {
				causes = append(causes, c)
			}
		}
	}
	if len(causes) == 0 {
		return nil
	}
	rank := func(c *Clause) int {
		if c.outside {
			return -1
		}
		if i := slices.Index(ownRules, c.Rule); i >= 0 {
			return i
		}
		return len(ownRules)
	}
	first := slices.MinFunc(causes, func(a, b Clause) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Value, a.Value))
	})
	return &first
}
