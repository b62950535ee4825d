package darshan

import (
	"cmp"
	"math"
	"slices"
)

// Interval is a time in which at least one rank was in a call, seconds since job start.
type Interval struct{ Start, End float64 }

// Activity is when one interface was at work on a file, over all ranks, from the trace of its calls.
type Activity struct {
	// Read and Write are in order of time and do not touch.
	Read, Write []Interval
	// Reads and Writes count the calls that were traced: fewer than the file's counters where the trace was cut off.
	Reads, Writes           int64
	BytesRead, BytesWritten int64
	// Ranks counts the ranks' traces.
	Ranks int64
}

// trace adds one rank's calls to a file's.
func (g *gatherer) trace(to **Activity, t *Trace) error {
	if *to == nil {
		*to = &Activity{}
	}
	a := *to
	a.Ranks++
	a.Reads, a.Writes = a.Reads+int64(len(t.Reads)), a.Writes+int64(len(t.Writes))
	a.BytesRead, a.BytesWritten = a.BytesRead+bytesOf(t.Reads), a.BytesWritten+bytesOf(t.Writes)
	before := len(a.Read) + len(a.Write)
	a.Read, a.Write = appendCalls(a.Read, t.Reads), appendCalls(a.Write, t.Writes)
	return g.grow(16 * (len(a.Read) + len(a.Write) - before))
}

func bytesOf(calls []Segment) (sum int64) {
	for i := range calls {
		if n := calls[i].Length; n > 0 && n <= math.MaxInt64-sum {
			sum += n
		}
	}
	return sum
}

// maxSeconds is longer than any job: over 30,000 years.
const maxSeconds = 1e12

// appendCalls leaves out calls without a time.
func appendCalls(to []Interval, calls []Segment) []Interval {
	for i := range calls {
		s, e := calls[i].Start, calls[i].End
		if !(s >= 0 && e >= s && e <= maxSeconds) {
			continue
		}
		if last := len(to) - 1; last >= 0 && s >= to[last].Start && s <= to[last].End {
			to[last].End = max(to[last].End, e)
			continue
		}
		to = append(to, Interval{s, e})
	}
	return to
}

func (a *Activity) merge() {
	if a != nil {
		a.Read, a.Write = union(a.Read), union(a.Write)
	}
}

// union sorts intervals and joins those that meet, in their own memory.
func union(in []Interval) []Interval {
	slices.SortFunc(in, func(a, b Interval) int { return cmp.Compare(a.Start, b.Start) })
	out := in[:0]
	for _, i := range in {
		if last := len(out) - 1; last >= 0 && i.Start <= out[last].End {
			out[last].End = max(out[last].End, i.End)
			continue
		}
		out = append(out, i)
	}
	return out
}
