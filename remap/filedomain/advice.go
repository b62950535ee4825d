package filedomain

import "fmt"

// Advice is what a user can set, and why.
type Advice struct {
	Method Method `json:"method"`
	// Hints are MPI_Info keys and values that ROMIO reads.
	Hints map[string]string `json:"hints"`
	// Effects say what each hint changes in this region's lock conflicts, by the estimate.
	Effects map[string]string `json:"effects"`
	Why     string            `json:"why"`
}

// maxBuffer bounds the advised collective buffer, bytes: ROMIO's default of 16 MB is enough to keep a
// server busy, more costs the application's memory.
const maxBuffer = 16 << 20

// Advise compares the methods on one region and names the one with the fewest lock conflicts, then
// the most aggregators, then the earlier in the paper; the hints match the number of aggregators to
// the servers, which is what group-cyclic needs and what ROMIO can be told.
func Advise(c Case) Advice {
	type score struct {
		conflicts int64
		used      int
	}
	scores := make(map[Method]score, len(methods))
	best := Even
	for i, m := range methods {
		c.Method = m
		a := Divide(c)
		s := score{a.conflicts(), a.AggregatorsUsed}
		scores[m] = s
		if b := scores[best]; i > 0 && (s.conflicts < b.conflicts || s.conflicts == b.conflicts && s.used > b.used) {
			best = m
		}
	}
	p := Matched(c.Aggregators, c.Servers)
	buffer := max(maxBuffer/c.StripeSize, 1) * c.StripeSize
	matched := c
	matched.Aggregators, matched.Method = p, StaticCyclic
	cyclic := Divide(matched)
	return Advice{
		Method: best,
		Effects: map[string]string{
			"romio_cb_write": fmt.Sprintf("%d aggregators write instead of every process: at most that many owners a stripe", p),
			"cb_nodes":       fmt.Sprintf("stripes dealt in turn: %d conflicts with %d aggregators, %d with %d", scores[StaticCyclic].conflicts, c.Aggregators, cyclic.conflicts(), p),
			// ROMIO's generic driver cuts at multiples of it, as the traced run of the tests shows.
			"striping_unit":   fmt.Sprintf("domains end where stripes do: %d conflicts cut evenly, %d cut at stripes", scores[Even].conflicts, scores[Aligned].conflicts),
			"striping_factor": fmt.Sprintf("the file lies on the %d servers that these counts are for; it has to be set before the file is made", c.Servers),
			"cb_buffer_size":  fmt.Sprintf("%d whole stripes go out at once, so no request ends inside one; conflicts stay as they are", buffer/c.StripeSize),
		},
		Hints: map[string]string{
			"romio_cb_write":  "enable",
			"cb_nodes":        fmt.Sprint(p),
			"cb_buffer_size":  fmt.Sprint(buffer),
			"striping_factor": fmt.Sprint(c.Servers),
			"striping_unit":   fmt.Sprint(c.StripeSize),
		},
		Why: fmt.Sprintf("%s has %d lock conflicts on %d servers where even has %d and aligned %d; %d aggregators (of %d) are %s",
			best, scores[best].conflicts, c.Servers, scores[Even].conflicts, scores[Aligned].conflicts, p, c.Aggregators, matchWords(p, c.Servers)),
	}
}

// conflicts adds the servers' conflicts up.
func (a Answer) conflicts() (sum int64) {
	for _, n := range a.Conflicts {
		sum += n
	}
	return sum
}

func matchWords(p, servers int) string {
	if p >= servers {
		return fmt.Sprintf("a multiple of the %d servers, so each always talks to the same one", servers)
	}
	return fmt.Sprintf("a divisor of the %d servers, so each server has one writer", servers)
}
