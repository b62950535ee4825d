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

// Places in the records of HDF5's datasets and PnetCDF's variables.
const (
	h5dReads      = 1 // then writes
	h5dBytesRead  = 4 // then bytes written
	h5dCollective = 88

	pnetcdfIndepReads = 1 // then writes, and both of collective and of non-blocking calls
	pnetcdfCollReads  = 3
	pnetcdfNBReads    = 5
	pnetcdfBytesRead  = 7 // then bytes written
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
