package darshan

// Places in the combined records of formats 1.x and 2.x.
const (
	combinedIndepOpens    = 0
	combinedIndepReads    = 2
	combinedCollReads     = 4
	combinedSplitWrites   = 7
	combinedNBReads       = 8
	combinedNBWrites      = 9
	combinedSyncs         = 10
	combinedReads         = 11
	combinedWrites        = 12
	combinedOpens         = 13
	combinedSeeks         = 14
	combinedStats         = 15
	combinedFreads        = 17
	combinedFwrites       = 18
	combinedFopens        = 19
	combinedFseeks        = 20
	combinedFsyncs        = 21
	combinedFdsyncs       = 22
	combinedBytesRead     = 47
	combinedConsecReads   = 51
	combinedFileUnaligned = 58
	combinedSizeRead      = 62
	combinedSizeWrite     = 72
	combinedAggRead       = 82
	combinedAggWrite      = 92
	combinedAccess        = 130
	combinedDevice        = 138
	combinedRanks         = 140

	combinedReadTime    = 6
	combinedSlowestTime = 15
	combinedVariance    = 17
)

// combinedIO takes a record of formats 1.x and 2.x apart. The record has one set of byte counts and
// times for all interfaces: they are given to POSIX, or to stdio where there are no POSIX calls, and the
// counts of bytes to MPI-IO too where that was used. An interface that was not used is nil.
func combinedIO(rec *Record, noRankTimes bool) (posix, stdio, mpiio *IO) {
	c, f := rec.Counters, rec.FCounters
	base := IO{BytesRead: c[combinedBytesRead], BytesWritten: c[combinedBytesRead+1],
		MaxByteRead: c[combinedBytesRead+2], MaxByteWritten: c[combinedBytesRead+3],
		ConsecReads: c[combinedConsecReads], ConsecWrites: c[combinedConsecReads+1],
		SeqReads: c[combinedConsecReads+2], SeqWrites: c[combinedConsecReads+3],
		FileNotAligned: c[combinedFileUnaligned], CollectiveOps: NotRecorded}
	base.Open, base.Close = Span{f[0], NotRecorded}, Span{NotRecorded, f[3]}
	base.Read, base.Write = Span{f[1], f[4]}, Span{f[2], f[5]}
	base.ReadSeconds, base.WriteSeconds, base.MetaSeconds = f[combinedReadTime], f[combinedReadTime+1],
		f[combinedReadTime+2]
	slowest := f[combinedSlowestTime]
	if noRankTimes {
		slowest = NotRecorded
	}
	base.setRank(rec.Rank, slowest, c[combinedRanks:], f[combinedVariance])
	base.oneMiB = exactly1MiB(c[combinedAccess:])
	copy(base.SizeRead[:], c[combinedSizeRead:])
	copy(base.SizeWrite[:], c[combinedSizeWrite:])
	if c[combinedOpens] > 0 || c[combinedStats] > 0 {
		o := base
		o.Opens, o.Reads, o.Writes = c[combinedOpens], c[combinedReads], c[combinedWrites]
		o.Seeks, o.Stats, o.Syncs = c[combinedSeeks], c[combinedStats], total(c[combinedFsyncs], c[combinedFdsyncs])
		posix = &o
	}
	if c[combinedFopens] > 0 {
		o := base
		o.Opens, o.Reads, o.Writes = c[combinedFopens], c[combinedFreads], c[combinedFwrites]
		o.Seeks, o.Stats, o.Syncs = c[combinedFseeks], NotRecorded, NotRecorded
		if posix != nil {
			o.BytesRead, o.BytesWritten, o.SizeRead, o.SizeWrite = NotRecorded, NotRecorded, unsized(), unsized()
		}
		stdio = &o
	}
	if total(c[combinedIndepOpens], c[combinedIndepOpens+1]) > 0 {
		o := base
		o.Opens = total(c[combinedIndepOpens], c[combinedIndepOpens+1])
		o.Reads = total(c[combinedIndepReads], c[combinedCollReads], c[combinedCollReads+2], c[combinedNBReads])
		o.Writes = total(c[combinedIndepReads+1], c[combinedCollReads+1], c[combinedSplitWrites], c[combinedNBWrites])
		o.Seeks, o.Stats, o.Syncs = NotRecorded, NotRecorded, c[combinedSyncs]
		o.ConsecReads, o.ConsecWrites, o.SeqReads, o.SeqWrites = NotRecorded, NotRecorded, NotRecorded, NotRecorded
		o.CollectiveOps = total(c[combinedCollReads : combinedSplitWrites+1]...)
		o.oneMiB = 0
		o.MetaSeconds, o.ReadSeconds, o.WriteSeconds = f[9], f[10], f[11]
		o.setRank(rec.Rank, slowest, c[combinedRanks:], f[combinedVariance])
		copy(o.SizeRead[:], c[combinedAggRead:])
		copy(o.SizeWrite[:], c[combinedAggWrite:])
		mpiio = &o
	}
	return posix, stdio, mpiio
}
