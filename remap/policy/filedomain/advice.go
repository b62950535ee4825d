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

// Comparison is what one method costs on a case.
type Comparison struct {
	Method Method `json:"method"`
	// Conflicts and LockRequests are of each server; a conflict is a change of owner.
	Conflicts       []int64 `json:"conflicts"`
	LockRequests    []int64 `json:"lock_requests"`
	AggregatorsUsed int     `json:"aggregators_used"`
	// Requests counts the byte ranges that the aggregators ask for, over all of them.
	Requests int64 `json:"requests"`
	// Owners are, of each stripe of the window that was asked for, the aggregators that write in it, in
	// file order.
	Owners [][]int32 `json:"owners"`
}

// TotalConflicts adds the servers' conflicts up.
func (m *Comparison) TotalConflicts() int64 { return sum(m.Conflicts) }

// TotalLocks adds the servers' lock requests up.
func (m *Comparison) TotalLocks() int64 { return sum(m.LockRequests) }

func sum(v []int64) (all int64) {
	for _, n := range v {
		all += n
	}
	return all
}

// Window is a run of stripes of a region, as a chart of the owners shows it.
type Window struct {
	// First counts from the region's first stripe.
	First   int64 `json:"first"`
	Stripes int   `json:"stripes"`
	// Cut is the stripe of the window, from 0, in which the even division changes owner first.
	Cut int `json:"cut"`
}

// Window chooses at most so many stripes around the first change of owner of the even division.
func (c Case) Window(stripes int) Window {
	all, cut := c.stripes(), min(c.evenBounds()[1], c.End-1)/c.StripeSize-c.first()
	n := min(int64(stripes), all)
	first := max(0, min(cut-n/2, all-n))
	return Window{First: first, Stripes: int(n), Cut: int(min(cut-first, n-1))}
}

// Compare divides a checked case by every method, in the paper's order, and keeps the owners of the
// stripes in a window.
func Compare(c Case, w Window) []Comparison {
	out := make([]Comparison, len(methods))
	for i, m := range methods {
		c.Method = m
		a := Divide(c)
		out[i] = Comparison{Method: m, Conflicts: a.Conflicts, LockRequests: a.LockRequestsPerServer,
			AggregatorsUsed: a.AggregatorsUsed, Owners: owners(c, &a, w)}
		for _, d := range a.Domains {
			out[i].Requests += int64(len(d))
		}
	}
	return out
}

// owners finds who writes in the stripes of a window.
func owners(c Case, a *Answer, w Window) [][]int32 {
	out := make([][]int32, w.Stripes)
	first := c.first() + w.First
	begin, end := first*c.StripeSize, (first+int64(w.Stripes))*c.StripeSize
	for owner, d := range a.Domains {
		for _, e := range d {
			if e[0] >= end || e[0]+e[1] <= begin {
				continue
			}
			for k := max(e[0], begin) / c.StripeSize; k <= (min(e[0]+e[1], end)-1)/c.StripeSize; k++ {
				own := &out[k-first]
				if n := len(*own); n == 0 || (*own)[n-1] != int32(owner) {
					*own = append(*own, int32(owner))
				}
			}
		}
	}
	return out
}

// Advise compares the methods on one region and names the best one, see Choose.
func Advise(c Case) Advice { return Choose(c, Compare(c, Window{})) }

// Choose names, of a case's comparison, the method with the fewest lock conflicts, then the most
// aggregators, then the earlier in the paper; the hints match the number of aggregators to the servers,
// which is what group-cyclic needs and what ROMIO's hints can express.
func Choose(c Case, compared []Comparison) Advice {
	type score struct {
		conflicts int64
		used      int
	}
	scores := make(map[Method]score, len(compared))
	best := Even
	for i := range compared {
		m := &compared[i]
		s := score{m.TotalConflicts(), m.AggregatorsUsed}
		scores[m.Method] = s
		if b := scores[best]; i > 0 && (s.conflicts < b.conflicts || s.conflicts == b.conflicts && s.used > b.used) {
			best = m.Method
		}
	}
	p := Matched(c.Aggregators, c.Servers)
	buffer := max(maxBuffer/c.StripeSize, 1) * c.StripeSize
	matched := c
	matched.Aggregators, matched.Method = p, StaticCyclic
	cyclic := Divide(matched)
	dealt := fmt.Sprintf("stripes dealt in turn: %s with %s", counted(scores[StaticCyclic].conflicts, "conflict"),
		counted(c.Aggregators, "aggregator"))
	fit := "its " + counted(p, "aggregator") + " fit: " + matchWords(p, c.Servers)
	if p != c.Aggregators {
		dealt += fmt.Sprintf(", %d with %d", sum(cyclic.Conflicts), p)
		fit = fmt.Sprintf("of %d aggregators %d would do: %s", c.Aggregators, p, matchWords(p, c.Servers))
	}
	return Advice{
		Method: best,
		Effects: map[string]string{
			"romio_cb_write": fmt.Sprintf("%s instead of every process: at most that many owners a stripe", writers(p)),
			"cb_nodes":       dealt,
			// ROMIO's generic driver cuts at multiples of it, as the traced run of the tests shows.
			"striping_unit": fmt.Sprintf("domains end where stripes do: %s cut evenly, %d cut at stripes",
				counted(scores[Even].conflicts, "conflict"), scores[Aligned].conflicts),
			"striping_factor": fmt.Sprintf("the counts are for a file on %s; it has to be set before the file is made",
				counted(c.Servers, "server")),
			"cb_buffer_size": fmt.Sprintf("%s at once, so no request ends inside one; conflicts stay as they are",
				wholeStripes(buffer/c.StripeSize)),
		},
		Hints: map[string]string{
			"romio_cb_write":  "enable",
			"cb_nodes":        fmt.Sprint(p),
			"cb_buffer_size":  fmt.Sprint(buffer),
			"striping_factor": fmt.Sprint(c.Servers),
			"striping_unit":   fmt.Sprint(c.StripeSize),
		},
		Why: fmt.Sprintf("%s has %s on %s where even has %d and aligned %d; %s",
			best, counted(scores[best].conflicts, "lock conflict"), counted(c.Servers, "server"),
			scores[Even].conflicts, scores[Aligned].conflicts, fit),
	}
}

func wholeStripes(n int64) string {
	if n == 1 {
		return "1 whole stripe goes out"
	}
	return fmt.Sprintf("%d whole stripes go out", n)
}

func writers(n int) string {
	if n == 1 {
		return "1 aggregator writes"
	}
	return fmt.Sprintf("%d aggregators write", n)
}

// counted is a number of things as people say it: 1 server, 2 servers.
func counted[T int | int64](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func matchWords(p, n int) string {
	if p >= n {
		return fmt.Sprintf("a multiple of %s, so each always talks to the same one", counted(n, "server"))
	}
	return fmt.Sprintf("a divisor of %s, so each server has one writer", counted(n, "server"))
}
