package darshan

// Places of counters in the newest version's records, for those the package itself uses.
const (
	posixOpens = iota
	posixFilenos
	posixDups
	posixReads
	posixWrites
	posixSeeks
	posixStats
	posixMmaps
	posixFsyncs
	posixFdsyncs
	posixRenameSources
	posixRenameTargets
	posixRenamedFrom
	posixMode
	posixBytesRead
	posixBytesWritten
	posixMaxByteRead
	posixMaxByteWritten
	posixConsecReads
	posixConsecWrites
	posixSeqReads
	posixSeqWrites
	posixRWSwitches
	posixMemNotAligned
	posixMemAlignment
	posixFileNotAligned
	posixFileAlignment
	posixMaxReadTimeSize
	posixMaxWriteTimeSize
	posixSizeRead
	posixSizeWrite = posixSizeRead + 10
	posixAccess    = posixSizeWrite + 18 // the common sizes, then their counts
	posixRanks     = posixAccess + 8     // the fastest rank and its bytes, then the slowest and its
)

const (
	mpiioIndepOpens = iota
	mpiioCollOpens
	mpiioIndepReads
	mpiioIndepWrites
	mpiioCollReads
	mpiioCollWrites
	mpiioSplitReads
	mpiioSplitWrites
	mpiioNBReads
	mpiioNBWrites
	mpiioSyncs
	mpiioHints
	mpiioViews
	mpiioMode
	mpiioBytesRead
	mpiioBytesWritten
	mpiioRWSwitches
	mpiioMaxReadTimeSize
	mpiioMaxWriteTimeSize
	mpiioSizeRead
	mpiioSizeWrite = mpiioSizeRead + 10
	mpiioAccess    = mpiioSizeWrite + 10
	mpiioRanks     = mpiioAccess + 8
)

const (
	stdioOpens = iota
	stdioFdopens
	stdioReads
	stdioWrites
	stdioSeeks
	stdioFlushes
	stdioBytesWritten
	stdioBytesRead
	stdioMaxByteRead
	stdioMaxByteWritten
	stdioRanks
)

// Floats of POSIX, MPI-IO and H5D records.
const (
	floatOpenStart = iota
	floatReadStart
	floatWriteStart
	floatCloseStart
	floatOpenEnd
	floatReadEnd
	floatWriteEnd
	floatCloseEnd
	floatReadTime
	floatWriteTime
	floatMetaTime
	floatMaxReadTime
	floatMaxWriteTime
	floatFastestRankTime
	floatSlowestRankTime
	floatVarianceTime
	floatVarianceBytes
)

// Floats of STDIO records.
const (
	stdioMetaTime = iota
	stdioWriteTime
	stdioReadTime
	stdioOpenStart
	stdioCloseStart
	stdioWriteStart
	stdioReadStart
	stdioOpenEnd
	stdioCloseEnd
	stdioWriteEnd
	stdioReadEnd
	stdioFastestRankTime
	stdioSlowestRankTime
	stdioVarianceTime
	stdioVarianceBytes
)
