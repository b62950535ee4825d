// Package filedomain divides the file region of a collective MPI-IO operation among its aggregators. It estimates
// what each division costs in file locks, and advises hints. The methods are
// those of "Scalable I/O and adaptive file domain partitioning" (Northwestern): even, stripe-aligned,
// stripe-size, static-cyclic, group-cyclic and transpose.
//
// The lock model is static: a server's locks cover whole stripes, a request takes one lock for each
// stripe it touches, and a server sees a conflict whenever the next stripe in file order has another
// owner than the one before. Real lock managers grow and merge extents, so this is an estimate.
package filedomain

import (
	"fmt"
	"slices"
)

// Method is a way of dividing a file region.
type Method string

// The methods, with the paper's names.
const (
	Even         Method = "even"          // equal byte ranges, ROMIO's default
	Aligned      Method = "aligned"       // even, each boundary moved to the nearest stripe boundary
	StripeSize   Method = "stripe-size"   // aligned, one request a stripe
	StaticCyclic Method = "static-cyclic" // stripe k to aggregator k mod P for the life of the file
	GroupCyclic  Method = "group-cyclic"  // static-cyclic inside sub-regions, one group of aggregators each
	Transpose    Method = "transpose"     // stripes taken server by server, cut into contiguous runs
)

// methods lists them in the order of the paper.
var methods = []Method{Even, Aligned, StripeSize, StaticCyclic, GroupCyclic, Transpose}

// Case is one collective operation: bytes [Start, End) of a file whose stripe k, of StripeSize bytes,
// lies on server k mod Servers, to be divided among Aggregators processes.
type Case struct {
	Start       int64  `json:"start"`
	End         int64  `json:"end"`
	StripeSize  int64  `json:"stripe_size"`
	Servers     int    `json:"servers"`
	Aggregators int    `json:"aggregators"`
	Method      Method `json:"method"`
}

// The largest case that is taken; they bound the memory of an answer.
const (
	maxStripes     = 16 << 20
	maxAggregators = 1 << 20
	maxServers     = 1 << 20
)

// Check names the field that makes a case impossible.
func (c Case) Check() error {
	switch {
	case c.Start < 0:
		return fmt.Errorf("start: %d is negative", c.Start)
	case c.End <= c.Start:
		return fmt.Errorf("end: %d is not behind start %d (end is exclusive)", c.End, c.Start)
	case c.StripeSize < 1:
		return fmt.Errorf("stripe_size: %d is not a positive number of bytes", c.StripeSize)
	case c.Servers < 1 || c.Servers > maxServers:
		return fmt.Errorf("servers: %d is not in 1..%d", c.Servers, maxServers)
	case c.Aggregators < 1 || c.Aggregators > maxAggregators:
		return fmt.Errorf("aggregators: %d is not in 1..%d", c.Aggregators, maxAggregators)
	case !slices.Contains(methods, c.Method):
		return fmt.Errorf("method: %q is not one of %v", c.Method, methods)
	case c.stripes() > maxStripes:
		return fmt.Errorf("end: the region has %d stripes, more than the %d that are taken at once", c.stripes(),
			maxStripes)
	}
	return nil
}

// first and stripes give the region's first stripe and how many it touches.
func (c Case) first() int64   { return c.Start / c.StripeSize }
func (c Case) stripes() int64 { return (c.End-1)/c.StripeSize - c.first() + 1 }

// Extent is a byte range: offset and length. In JSON it is the pair [offset, length].
type Extent [2]int64

// Answer is a division with its cost under the package's lock model.
type Answer struct {
	// Domains holds each aggregator's requests in the order they are made; an aggregator without work
	// has an empty list.
	Domains [][]Extent `json:"domains"`
	// Conflicts counts, for each server, changes of owner along its stripes in file order; a stripe
	// shared by several domains adds one for each change inside it.
	Conflicts []int64 `json:"conflicts"`
	// LockRequests is the number of stripe locks taken over all requests; PerServer its split.
	LockRequests          int64   `json:"lock_requests"`
	LockRequestsPerServer []int64 `json:"lock_requests_per_server"`
	// AggregatorsUsed counts aggregators with work.
	AggregatorsUsed int `json:"aggregators_used"`
}

// Divide divides a checked case and counts its locks.
func Divide(c Case) Answer {
	var a Answer
	switch c.Method {
	case Even:
		a.Domains = ranges(c, c.evenBounds())
		a.lockRanges(c)
	case Aligned, StripeSize:
		a.Domains = ranges(c, c.alignedBounds())
		if c.Method == StripeSize {
			perStripe(c, a.Domains)
		}
		a.lockRanges(c)
	default:
		own := c.owners()
		a.Domains = collect(c, own)
		a.lockStripes(c, own)
	}
	for _, d := range a.Domains {
		if len(d) > 0 {
			a.AggregatorsUsed++
		}
	}
	return a
}

// evenBounds cuts the region into pieces of ceil(length/P) bytes: P+1 offsets, the last ones may coincide.
func (c Case) evenBounds() []int64 {
	n := int64(c.Aggregators)
	size := (c.End - c.Start + n - 1) / n
	b := make([]int64, n+1)
	for i := range b {
		// Beyond the region's end the product may overflow; every such bound is the end.
		if i > 0 && (b[i-1] == c.End || c.End-b[i-1] <= size) {
			b[i] = c.End
			continue
		}
		b[i] = c.Start + int64(i)*size
	}
	return b
}

// alignedBounds moves each inner bound of the even cut to the nearest stripe boundary, the lower one
// when both are as near.
func (c Case) alignedBounds() []int64 {
	b := c.evenBounds()
	for i := 1; i < len(b)-1; i++ {
		down := b[i] / c.StripeSize * c.StripeSize
		if up := down + c.StripeSize; up-b[i] < b[i]-down {
			down = up
		}
		b[i] = min(max(down, c.Start), c.End)
	}
	return b
}

func ranges(c Case, bounds []int64) [][]Extent {
	out := make([][]Extent, c.Aggregators)
	for i := range out {
		if n := bounds[i+1] - bounds[i]; n > 0 {
			out[i] = []Extent{{bounds[i], n}}
		} else {
			out[i] = []Extent{}
		}
	}
	return out
}

// perStripe cuts each domain's requests at the stripe boundaries, in place.
func perStripe(c Case, domains [][]Extent) {
	for i, d := range domains {
		cut := d[:0:0] // not nil: an idle aggregator is [] in JSON
		if len(d) > 0 {
			cut = make([]Extent, 0, d[0][1]/c.StripeSize+2)
		}
		for _, e := range d {
			for at, end := e[0], e[0]+e[1]; at < end; {
				next := min((at/c.StripeSize+1)*c.StripeSize, end)
				cut = append(cut, Extent{at, next - at})
				at = next
			}
		}
		domains[i] = cut
	}
}

// owners gives the aggregator of each stripe of the region, for the methods that deal in whole stripes.
func (c Case) owners() []int32 {
	n, k0, s := c.stripes(), c.first(), int64(c.Servers)
	own := make([]int32, n)
	switch c.Method {
	case StaticCyclic:
		for i := range own {
			own[i] = int32((k0 + int64(i)) % int64(c.Aggregators))
		}
	case GroupCyclic:
		p := int64(Matched(c.Aggregators, c.Servers))
		size := min(p, s)
		at := int64(0)
		for g, groups := int64(0), p/size; g < groups; g++ {
			for end := at + share(n, groups, g); at < end; at++ {
				own[at] = int32(g*size + (k0+at)%size)
			}
		}
	case Transpose:
		p := int64(c.Aggregators)
		owner, left := int64(0), share(n, p, 0)
		for column := range s {
			// The column's first stripe at or after the region's first.
			for i := ((column-k0)%s + s) % s; i < n; i += s {
				for left == 0 {
					owner++
					left = share(n, p, owner)
				}
				own[i] = int32(owner)
				left--
			}
		}
	}
	return own
}

// share is the size of part i when n things are cut into parts that differ by at most one, the
// longer ones first.
func share(n, parts, i int64) int64 {
	size := n / parts
	if i < n%parts {
		size++
	}
	return size
}

// Matched is the number of aggregators group-cyclic uses: the largest multiple of the servers, or
// with fewer aggregators than servers their largest divisor, that does not exceed p.
func Matched(p, servers int) int {
	if p >= servers {
		return p - p%servers
	}
	for servers%p != 0 {
		p--
	}
	return p
}

// collect turns owners into requests, in the file's order for static- and group-cyclic and in the
// order of the servers for transpose; touching stripes of one owner become one request.
func collect(c Case, own []int32) [][]Extent {
	count := make([]int, c.Aggregators)
	for _, o := range own {
		count[o]++
	}
	out := make([][]Extent, c.Aggregators)
	all := make([]Extent, 0, len(own))
	for i, n := range count {
		out[i] = all[len(all) : len(all) : len(all)+n]
		all = all[:len(all)+n]
	}
	add := func(i int64) {
		k := c.first() + i
		from, to := max(k*c.StripeSize, c.Start), min((k+1)*c.StripeSize, c.End)
		d := &out[own[i]]
		if last := len(*d) - 1; last >= 0 && (*d)[last][0]+(*d)[last][1] == from {
			(*d)[last][1] += to - from
			return
		}
		*d = append(*d, Extent{from, to - from})
	}
	n, s := int64(len(own)), int64(c.Servers)
	if c.Method != Transpose {
		for i := range n {
			add(i)
		}
		return out
	}
	for column := range s {
		for i := ((column-c.first())%s + s) % s; i < n; i += s {
			add(i)
		}
	}
	return out
}

// ledger counts locks as a region's stripes are visited in file order.
type ledger struct {
	a    *Answer
	last []int32 // owner that each server saw last, -1 before the first
}

func newLedger(a *Answer, servers int) ledger {
	a.Conflicts = make([]int64, servers)
	a.LockRequestsPerServer = make([]int64, servers)
	return ledger{a, slices.Repeat([]int32{-1}, servers)}
}

// lock takes one stripe's lock for an owner.
func (l ledger) lock(server int64, owner int32) {
	l.a.LockRequests++
	l.a.LockRequestsPerServer[server]++
	if l.last[server] >= 0 && l.last[server] != owner {
		l.a.Conflicts[server]++
	}
	l.last[server] = owner
}

// lockRanges counts domains that follow each other in the file.
func (a *Answer) lockRanges(c Case) {
	l := newLedger(a, c.Servers)
	for owner, d := range a.Domains {
		for _, e := range d {
			for k := e[0] / c.StripeSize; k <= (e[0]+e[1]-1)/c.StripeSize; k++ {
				l.lock(k%int64(c.Servers), int32(owner))
			}
		}
	}
}

// lockStripes counts stripes that have one owner each.
func (a *Answer) lockStripes(c Case, own []int32) {
	l := newLedger(a, c.Servers)
	server := c.first() % int64(c.Servers)
	for _, o := range own {
		l.lock(server, o)
		if server++; server == int64(c.Servers) {
			server = 0
		}
	}
}
