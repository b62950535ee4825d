package darshan

import "slices"

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
	// CollectiveOps are MPI-IO's collective and split-collective reads, writes and opens; part of Reads,
	// Writes and Opens.
	CollectiveOps           int64
	BytesRead, BytesWritten int64
	// Consec counts operations that began exactly where the one before ended, Seq those at any higher
	// offset (Consec among them).
	ConsecReads, ConsecWrites, SeqReads, SeqWrites int64
	// MaxByteRead and MaxByteWritten are the highest offsets touched.
	MaxByteRead, MaxByteWritten int64
	RWSwitches                  int64
	FileNotAligned              int64
	// SizeRead and SizeWrite count operations by request size, upper bounds 100, 1K, 10K, 100K, 1M, 4M,
	// 10M, 100M, 1G bytes and above. Absent where all are NotRecorded.
	SizeRead, SizeWrite [10]int64

	Open, Read, Write, Close Span
	// ReadSeconds, WriteSeconds and MetaSeconds are summed over the ranks: they may exceed the job's run
	// time.
	ReadSeconds, WriteSeconds, MetaSeconds float64
	// SlowestSeconds is the time of the rank that took longest.
	SlowestSeconds float64
}

// smallBins is how many bins of request size are below 1 MB.
const smallBins = 5

// SmallReads counts reads of less than 1 MB, NotRecorded where the interface has no sizes.
func (o *IO) SmallReads() int64 { return small(&o.SizeRead) }

// SmallWrites is SmallReads for writes.
func (o *IO) SmallWrites() int64 { return small(&o.SizeWrite) }

func small(bins *[10]int64) int64 {
	sum := int64(0)
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
	for _, c := range []struct{ to, from *int64 }{
		{&o.Opens, &n.Opens}, {&o.Reads, &n.Reads}, {&o.Writes, &n.Writes}, {&o.Seeks, &n.Seeks}, {&o.Stats, &n.Stats},
		{&o.Syncs, &n.Syncs}, {&o.CollectiveOps, &n.CollectiveOps}, {&o.BytesRead, &n.BytesRead},
		{&o.BytesWritten, &n.BytesWritten}, {&o.ConsecReads, &n.ConsecReads}, {&o.ConsecWrites, &n.ConsecWrites},
		{&o.SeqReads, &n.SeqReads}, {&o.SeqWrites, &n.SeqWrites}, {&o.RWSwitches, &n.RWSwitches},
		{&o.FileNotAligned, &n.FileNotAligned},
	} {
		*c.to = sum(*c.to, *c.from)
	}
	for i := range o.SizeRead {
		o.SizeRead[i] = sum(o.SizeRead[i], n.SizeRead[i])
		o.SizeWrite[i] = sum(o.SizeWrite[i], n.SizeWrite[i])
	}
	o.MaxByteRead, o.MaxByteWritten = max(o.MaxByteRead, n.MaxByteRead), max(o.MaxByteWritten, n.MaxByteWritten)
	o.Open.join(n.Open)
	o.Read.join(n.Read)
	o.Write.join(n.Write)
	o.Close.join(n.Close)
	o.ReadSeconds += n.ReadSeconds
	o.WriteSeconds += n.WriteSeconds
	o.MetaSeconds += n.MetaSeconds
	o.SlowestSeconds = max(o.SlowestSeconds, n.SlowestSeconds)
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

// fileTimes reads the floats of POSIX and MPI-IO records.
func (o *IO) fileTimes(f []float64, rank int64) {
	o.Open = Span{f[floatOpenStart], f[floatOpenEnd]}
	o.Read = Span{f[floatReadStart], f[floatReadEnd]}
	o.Write = Span{f[floatWriteStart], f[floatWriteEnd]}
	o.Close = Span{f[floatCloseStart], f[floatCloseEnd]}
	o.ReadSeconds, o.WriteSeconds, o.MetaSeconds = f[floatReadTime], f[floatWriteTime], f[floatMetaTime]
	o.rank(rank, f[floatSlowestRankTime])
}

func (o *IO) rank(rank int64, slowest float64) {
	o.Shared = rank < 0
	o.SlowestSeconds = slowest
	if !o.Shared {
		o.SlowestSeconds = o.ReadSeconds + o.WriteSeconds + o.MetaSeconds
	}
}

func posixIO(rec *Record) IO {
	c := rec.Counters
	o := IO{Opens: c[posixOpens], Reads: c[posixReads], Writes: c[posixWrites], Seeks: c[posixSeeks],
		Stats: c[posixStats],
		Syncs: total(c[posixFsyncs], c[posixFdsyncs]), CollectiveOps: NotRecorded,
		BytesRead: c[posixBytesRead], BytesWritten: c[posixBytesWritten],
		ConsecReads: c[posixConsecReads], ConsecWrites: c[posixConsecWrites],
		SeqReads: c[posixSeqReads], SeqWrites: c[posixSeqWrites],
		MaxByteRead: c[posixMaxByteRead], MaxByteWritten: c[posixMaxByteWritten],
		RWSwitches: c[posixRWSwitches], FileNotAligned: c[posixFileNotAligned]}
	copy(o.SizeRead[:], c[posixSizeRead:])
	copy(o.SizeWrite[:], c[posixSizeWrite:])
	o.fileTimes(rec.FCounters, rec.Rank)
	return o
}

func mpiioIO(rec *Record) IO {
	c := rec.Counters
	o := IO{Opens: total(c[mpiioIndepOpens], c[mpiioCollOpens]),
		Reads:  total(c[mpiioIndepReads], c[mpiioCollReads], c[mpiioSplitReads], c[mpiioNBReads]),
		Writes: total(c[mpiioIndepWrites], c[mpiioCollWrites], c[mpiioSplitWrites], c[mpiioNBWrites]),
		Seeks:  NotRecorded, Stats: NotRecorded, Syncs: c[mpiioSyncs],
		CollectiveOps: total(slices.Concat(c[mpiioCollOpens:mpiioCollOpens+1],
			c[mpiioCollReads:mpiioSplitWrites+1])...),
		BytesRead: c[mpiioBytesRead], BytesWritten: c[mpiioBytesWritten],
		ConsecReads: NotRecorded, ConsecWrites: NotRecorded, SeqReads: NotRecorded, SeqWrites: NotRecorded,
		MaxByteRead: NotRecorded, MaxByteWritten: NotRecorded, RWSwitches: c[mpiioRWSwitches],
		FileNotAligned: NotRecorded}
	copy(o.SizeRead[:], c[mpiioSizeRead:])
	copy(o.SizeWrite[:], c[mpiioSizeWrite:])
	o.fileTimes(rec.FCounters, rec.Rank)
	return o
}

func stdioIO(rec *Record) IO {
	c, f := rec.Counters, rec.FCounters
	o := IO{Opens: c[stdioOpens], Reads: c[stdioReads], Writes: c[stdioWrites], Seeks: c[stdioSeeks],
		Stats: NotRecorded,
		Syncs: c[stdioFlushes], CollectiveOps: NotRecorded, BytesRead: c[stdioBytesRead],
		BytesWritten: c[stdioBytesWritten],
		ConsecReads:  NotRecorded, ConsecWrites: NotRecorded, SeqReads: NotRecorded, SeqWrites: NotRecorded,
		MaxByteRead: c[stdioMaxByteRead], MaxByteWritten: c[stdioMaxByteWritten], RWSwitches: NotRecorded,
		FileNotAligned: NotRecorded, SizeRead: unsized(), SizeWrite: unsized()}
	o.Open = Span{f[stdioOpenStart], f[stdioOpenEnd]}
	o.Read = Span{f[stdioReadStart], f[stdioReadEnd]}
	o.Write = Span{f[stdioWriteStart], f[stdioWriteEnd]}
	o.Close = Span{f[stdioCloseStart], f[stdioCloseEnd]}
	o.ReadSeconds, o.WriteSeconds, o.MetaSeconds = f[stdioReadTime], f[stdioWriteTime], f[stdioMetaTime]
	o.rank(rec.Rank, f[stdioSlowestRankTime])
	return o
}
