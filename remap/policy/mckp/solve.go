package mckp

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
