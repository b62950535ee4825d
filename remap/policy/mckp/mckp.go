// Package mckp arbitrates between jobs that want forwarders at once: the idle ones go where they save the most
// compute-node time, by an exact multiple-choice knapsack ("Arbitration Policies for On-Demand User-Level I/O
// Forwarding on HPC Platforms", IPDPS'21, has the idea). No job may become slower than its default mapping by more
// than a bound.
//
// Who may claim at all is decided by DFRA's tests. A job alone gets the fewest forwarders that bring
// it to its best time.
package mckp

import (
	"fmt"
	"math"
	"slices"

	"fairway/remap/policy/dfra"
)

// Policy returns the decider with a bound on harm: 0.05 lets a job become 5 % slower than on its
// default mapping.
func Policy(harm float64) func(dfra.Case) dfra.Decision {
	return func(c dfra.Case) dfra.Decision { return decide(c, harm) }
}

func decide(c dfra.Case, harm float64) dfra.Decision {
	// With room for every wish DFRA says what the job may claim: more forwarders, isolation, nothing.
	wish := dfra.Wish(c)
	wish.Reasons = slices.DeleteFunc(wish.Reasons, func(r dfra.Reason) bool {
		return r.Rule == "idle" ||
			r.Rule == "isolation"
	})
	own := claim(wish, float64(c.Job.Nodes))
	if len(own.Choices) == 1 {
		return dfra.KeepDefault(c).Because(wish.Reasons, wish)
	}
	claims := []Claim{own}
	for _, r := range c.Rivals {
		rival := dfra.Wish(dfra.Case{Config: c.Config, Job: r.Job, History: r.History, Forwarders: c.Forwarders})
		claims = append(claims, claim(rival, float64(r.Job.Nodes)))
	}
	idle := c.Healthy()
	chosen := Solve(claims, len(idle), harm)
	got := own.Choices[chosen[0]]
	reasons := append(slices.Clone(wish.Reasons), dfra.Reason{Rule: "arbitration", Value: float64(got.Forwarders),
		Threshold: 0, Passed: got.Forwarders > 0,
		Text: fmt.Sprintf(
			"%d of %d idle healthy forwarders save the most node time among %d jobs, with at most %g %% harm to any",
			got.Forwarders, len(idle), len(claims), 100*harm)})
	if got.Forwarders == 0 {
		return dfra.KeepDefault(c).Because(reasons, wish)
	}
	wish.Forwarders = slices.Clone(idle[:got.Forwarders])
	wish.Count, wish.Remap, wish.Reasons = got.Forwarders, true, reasons
	return wish.Decision
}

// claim lists a job's choices: the default mapping, and 1 to Wanted forwarders of its own.
func claim(w dfra.Wished, nodes float64) Claim {
	c := Claim{Weight: nodes, Choices: []Choice{{0, w.Seconds(w.Base, 1+len(w.Interference))}}}
	most := 0
	switch w.Action {
	case dfra.Upgrade:
		most = w.Wanted
	case dfra.Isolate:
		most = w.Base
	}
	for k := 1; k <= most; k++ {
		s := w.Seconds(k, 1)
		// A forwarder more that saves no time is not a choice.
		if k > 1 && s >= c.Choices[len(c.Choices)-1].Seconds {
			break
		}
		c.Choices = append(c.Choices, Choice{k, s})
	}
	if math.IsInf(c.Choices[0].Seconds, 0) || math.IsNaN(c.Choices[0].Seconds) {
		c.Choices = c.Choices[:1]
	}
	return c
}
