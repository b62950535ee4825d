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

// Choice is one way to serve a job: on so many forwarders of its own, in an expected I/O time.
type Choice struct {
	Forwarders int     // taken from the pool; 0 is the default mapping
	Seconds    float64 // of I/O, in any unit that all choices of all jobs share
}

// Claim is one job with its choices. The first choice is the default mapping and costs nothing.
type Claim struct {
	Weight  float64 // of a second saved: the job's compute nodes
	Choices []Choice
}

// Solve chooses one choice per claim so that the weighted time saved over the default mappings is
// greatest and no more than capacity forwarders are taken. A choice slower than the job's default by
// more than harm (0.05 is 5 %) is never taken. Of equally good answers it takes the one with fewer
// forwarders, then the earlier choice.
//
// It is the multiple-choice knapsack problem, solved exactly by dynamic programming over the
// capacity: O(choices x capacity) steps for all claims together.
func Solve(claims []Claim, capacity int, harm float64) (chosen []int) {
	capacity = max(0, capacity)
	best := make([]float64, capacity+1) // by forwarders available, over the claims so far
	pick := make([][]int, len(claims))
	for i, c := range claims {
		next := make([]float64, capacity+1)
		pick[i] = make([]int, capacity+1)
		for room := range next {
			next[room] = best[room] // the default mapping
			for k, o := range c.Choices {
				if k == 0 || o.Forwarders > room || o.Seconds > (1+harm)*c.Choices[0].Seconds {
					continue
				}
				if v := best[room-o.Forwarders] + c.Weight*(c.Choices[0].Seconds-o.Seconds); v > next[room] {
					next[room], pick[i][room] = v, k
				}
			}
		}
		best = next
	}
	chosen = make([]int, len(claims))
	// The smallest room that is as good as all of it leaves the most for others.
	room := capacity
	for room > 0 && best[room-1] >= best[capacity] {
		room--
	}
	for i := len(claims) - 1; i >= 0; i-- {
		chosen[i] = pick[i][room]
		if k := chosen[i]; k > 0 {
			room -= claims[i].Choices[k].Forwarders
		}
	}
	return chosen
}
