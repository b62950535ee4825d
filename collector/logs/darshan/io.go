package darshan

import "math"

// NotRecorded is the value of a figure that the log's version does not have.
const NotRecorded = -1

// Span is the first and the last time of one kind of operation, seconds since job start: Start when the
// first began, End when the last ended. Both are 0 where there was none, and NotRecorded where the log's
// version does not say.
type Span struct{ Start, End float64 }

// Known says that there was such an operation and when.
func (s Span) Known() bool { return s.End > 0 && s.Start >= 0 }

// join widens s to cover o.
func (s *Span) join(o Span) {
	s.Start = earlier(s.Start, o.Start)
	s.End = max(s.End, o.End)
}

// earlier takes the earlier of two times, where 0 is never and below 0 not recorded.
func earlier(a, b float64) float64 {
	if a > 0 && b > 0 {
		return min(a, b)
	}
	return max(a, b)
}

// IO is what went through one interface to one file, over all ranks. Counts that the interface or the
// log's version does not have are NotRecorded.
type IO struct {
	// Ranks is how many processes opened the file: all of the job's where Shared.
	Ranks int64
	// Shared says that the log holds one record for all ranks; Slowest is meaningful then.
	Shared bool

	Opens, Reads, Writes, Seeks, Stats, Syncs int64
	// CollectiveOps are MPI-IO's collective and split-collective reads and writes; part of Reads and Writes. Opens do
	// not move data and do not count.
	CollectiveOps           int64
	BytesRead, BytesWritten int64
	// Consec counts operations that began exactly where the one before ended, Seq those at any higher
	// offset (Consec among them).
	ConsecReads, ConsecWrites, SeqReads, SeqWrites int64
	// MaxByteRead and MaxByteWritten are the highest offsets touched.
	MaxByteRead, MaxByteWritten int64
	// FileNotAligned counts requests that did not begin at a multiple of FileAlignment bytes.
	FileNotAligned, FileAlignment int64
	// SizeRead and SizeWrite count operations by request size, upper bounds 100, 1K, 10K, 100K, 1M, 4M,
	// 10M, 100M, 1G bytes and above. Absent where all are NotRecorded.
	SizeRead, SizeWrite [10]int64

	Open, Read, Write, Close Span
	// ReadSeconds, WriteSeconds and MetaSeconds are summed over the ranks: they may exceed the job's run time.
	ReadSeconds, WriteSeconds, MetaSeconds float64
	SlowestRank
	// Movers is how many of the ranks moved bytes: of a record for all ranks no more than its variance allows,
	// NotRecorded where it has none.
	Movers int64

	// oneMiB counts requests of exactly 1 MiB, which the runtime puts into the bin of the smaller ones.
	oneMiB int64
	byRank bytesByRank
}

// SlowestRank is the rank that took longest.
type SlowestRank struct {
	// Slowest is its number, NotRecorded where the log does not say.
	Slowest        int64
	SlowestSeconds float64
	// SlowestRead, SlowestWrite and SlowestMeta are the parts of its time: of a record for all ranks as the sums are
	// split.
	SlowestRead, SlowestWrite, SlowestMeta float64
}

// bytesByRank is what a record for all ranks has of those that moved the fewest and the most bytes.
type bytesByRank struct {
	fast, slow int64
	variance   float64
}

// smallBins is how many bins of request size end at 1 MiB or below.
const smallBins = 5

// SmallReads counts reads of less than 1 MiB, NotRecorded where the interface has no sizes.
func (o *IO) SmallReads() int64 { return small(&o.SizeRead, o.oneMiBOf(&o.SizeRead)) }

// SmallWrites is SmallReads for writes.
func (o *IO) SmallWrites() int64 { return small(&o.SizeWrite, o.oneMiBOf(&o.SizeWrite)) }

// oneMiBOf is the part of the requests of exactly 1 MiB that falls to one direction: they are counted together.
func (o *IO) oneMiBOf(bins *[10]int64) int64 {
	const bin = smallBins - 1
	both := o.SizeRead[bin] + o.SizeWrite[bin]
	if o.oneMiB <= 0 || both <= 0 || bins[bin] <= 0 {
		return 0
	}
	return min(bins[bin], int64(math.Round(float64(o.oneMiB)*float64(bins[bin])/float64(both))))
}

// exactly1MiB finds 1 MiB among the four common sizes of requests, whose counts follow them.
func exactly1MiB(common []int64) (n int64) {
	for i := range 4 {
		if common[i] == 1<<20 {
			n += max(0, common[4+i])
		}
	}
	return n
}

// setMovers finds how many ranks moved the bytes. n ranks of mean m and variance v are at least n / (1 + v/m²) that
// moved some, and just that many where those moved the same.
func (o *IO) setMovers(ranks int64) {
	bytes := max(o.BytesRead, 0) + max(o.BytesWritten, 0)
	o.Movers = NotRecorded
	switch {
	case bytes == 0:
		o.Movers = 0
	case !o.Shared:
		o.Movers = 1
	case o.byRank.slow == bytes || o.byRank.fast == bytes:
		o.Movers = 1
	case ranks > 0 && o.byRank.variance >= 0 && (o.byRank.slow > 0 || o.byRank.fast > 0):
		mean := float64(bytes) / float64(ranks)
		o.Movers = int64(math.Round(float64(ranks) / (1 + o.byRank.variance/(mean*mean))))
		o.Movers = min(max(o.Movers, 1), ranks)
	}
}

func small(bins *[10]int64, without int64) int64 {
	sum := -without
	for _, n := range bins[:smallBins] {
		if n < 0 {
			return NotRecorded
		}
		sum += n
	}
	return sum
}

// merge adds the figures of another rank of the same file.
func (o *IO) merge(n *IO) {
	o.Ranks += n.Ranks
	o.Shared = o.Shared || n.Shared
	// A rank's bytes may be wrong, below 0: those of the others stay.
	read, written := total(o.BytesRead, n.BytesRead), total(o.BytesWritten, n.BytesWritten)
	to, from := o.counts(), n.counts()
	for i := range to {
		if i < sumFigures {
			*to[i] = sum(*to[i], *from[i])
		} else {
			*to[i] = max(*to[i], *from[i])
		}
	}
	o.Movers, o.oneMiB = sum(o.Movers, n.Movers), sum(o.oneMiB, n.oneMiB)
	o.BytesRead, o.BytesWritten = read, written
	for i := range o.SizeRead {
		o.SizeRead[i] = sum(o.SizeRead[i], n.SizeRead[i])
		o.SizeWrite[i] = sum(o.SizeWrite[i], n.SizeWrite[i])
	}
	o.Open.join(n.Open)
	o.Read.join(n.Read)
	o.Write.join(n.Write)
	o.Close.join(n.Close)
	o.ReadSeconds += n.ReadSeconds
	o.WriteSeconds += n.WriteSeconds
	o.MetaSeconds += n.MetaSeconds
	if n.SlowestSeconds > o.SlowestSeconds {
		o.SlowestRank = n.SlowestRank
	}
}

// sum adds two counts; one that is not recorded makes the sum unknown.
func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return NotRecorded
	}
	return a + b
}

// total adds counters of a record; those that are not recorded count for nothing unless all are.
func total(counters ...int64) int64 {
	out, known := int64(0), false
	for _, c := range counters {
		if c >= 0 {
			out, known = out+c, true
		}
	}
	if !known {
		return NotRecorded
	}
	return out
}

func unsized() (bins [10]int64) {
	for i := range bins {
		bins[i] = NotRecorded
	}
	return bins
}

// setRank says whose record it is and what the slowest rank had of its time. ranks are the fastest rank and its bytes,
// then the slowest and its.
func (o *IO) setRank(rank int64, slowest float64, ranks []int64, variance float64) {
	o.Shared = rank < 0
	read, write, meta := positive(o.ReadSeconds), positive(o.WriteSeconds), positive(o.MetaSeconds)
	all := read + write + meta
	o.SlowestRank = SlowestRank{rank, all, read, write, meta}
	if !o.Shared {
		return
	}
	o.byRank = bytesByRank{ranks[1], ranks[3], variance}
	o.Slowest, o.SlowestSeconds = ranks[2], slowest
	if slowest = positive(slowest); slowest > 0 && slowest < all {
		part := slowest / all
		o.SlowestRead, o.SlowestWrite, o.SlowestMeta = read*part, write*part, meta*part
	}
}

// positive is a time that a record may have wrong, 0 where it is not a time.
func positive(v float64) float64 {
	if v > 0 && v <= math.MaxFloat64 {
		return v
	}
	return 0
}
