package darshan

import (
	"slices"
	"strings"
)

// The places of what is read of records of HDF5's datasets and PnetCDF's variables.
const (
	h5dReads      = 1 // then writes
	h5dBytesRead  = 4 // then bytes written
	h5dCollective = 88

	pnetcdfIndepReads = 1 // then writes, and both of collective and of non-blocking calls
	pnetcdfCollReads  = 3
	pnetcdfNBReads    = 5
	pnetcdfBytesRead  = 7 // then bytes written
)

// calls are the counters of an interface's figures, in the order of IO.counts: a name, or several whose counters are
// added, empty where the interface has none.
type calls [countFigures]string

// The figures of an IO that are counters, of which the first sumFigures add up over ranks, and that are times.
const (
	sumFigures, countFigures, timeFigures = 14, 17, 11

	mpiReads  = "INDEP_READS COLL_READS SPLIT_READS NB_READS"
	mpiWrites = "INDEP_WRITES COLL_WRITES SPLIT_WRITES NB_WRITES"
	mpiOpens  = "INDEP_OPENS COLL_OPENS"
	together  = "COLL_READS COLL_WRITES SPLIT_READS SPLIT_WRITES"
)

// counts are the figures that are counters.
func (o *IO) counts() [countFigures]*int64 {
	return [...]*int64{&o.Opens, &o.Reads, &o.Writes, &o.Seeks, &o.Stats, &o.Syncs, &o.CollectiveOps, &o.BytesRead,
		&o.BytesWritten, &o.ConsecReads, &o.ConsecWrites, &o.SeqReads, &o.SeqWrites, &o.FileNotAligned,
		&o.MaxByteRead, &o.MaxByteWritten, &o.FileAlignment}
}

func (o *IO) times() [timeFigures]*float64 {
	return [...]*float64{&o.Open.Start, &o.Open.End, &o.Read.Start, &o.Read.End, &o.Write.Start, &o.Write.End,
		&o.Close.Start, &o.Close.End, &o.ReadSeconds, &o.WriteSeconds, &o.MetaSeconds}
}

// fileTimes are those that records of POSIX, MPI-IO and STDIO have alike.
var fileTimes = [timeFigures]string{"OPEN_START_TIMESTAMP", "OPEN_END_TIMESTAMP", "READ_START_TIMESTAMP",
	"READ_END_TIMESTAMP", "WRITE_START_TIMESTAMP", "WRITE_END_TIMESTAMP", "CLOSE_START_TIMESTAMP",
	"CLOSE_END_TIMESTAMP", "READ_TIME", "WRITE_TIME", "META_TIME"}

// combinedTimes are those of formats 1.x and 2.x, of POSIX or MPI.
func combinedTimes(of string) [timeFigures]string {
	return [...]string{"OPEN_TIMESTAMP", "", "READ_START_TIMESTAMP", "READ_END_TIMESTAMP", "WRITE_START_TIMESTAMP",
		"WRITE_END_TIMESTAMP", "", "CLOSE_TIMESTAMP", of + "_READ_TIME", of + "_WRITE_TIME", of + "_META_TIME"}
}

// figures are the places of an interface's figures in a module's records.
type figures struct {
	counts [countFigures][]int
	times  [timeFigures]int // -1: not recorded
	// Where ten bins of sizes, four common sizes with their counts, and the fastest and slowest rank with their bytes
	// begin; sizes and access are -1 where there are none.
	read, write, access, ranks int
	slowest, variance          int // floats
}

// figuresOf finds the places by the counters' names; sizes is what those of the bins end in, empty where there are
// none.
func figuresOf(m Module, prefix, sizes string, names calls, times [timeFigures]string) *figures {
	c := fixed[m]
	float := func(name string) int { return slices.Index(c.floats, prefix+"F_"+name) }
	place := func(name string) int { return slices.Index(c.ints, prefix+name) }
	f := &figures{read: place("SIZE_READ" + sizes + "0_100"), write: place("SIZE_WRITE" + sizes + "0_100"),
		access: place("ACCESS1_ACCESS"), ranks: place("FASTEST_RANK"), slowest: float("SLOWEST_RANK_TIME"),
		variance: float("VARIANCE_RANK_BYTES")}
	for i, all := range names {
		for name := range strings.FieldsSeq(all) {
			f.counts[i] = append(f.counts[i], place(name))
		}
	}
	for i, name := range times {
		f.times[i] = float(name)
	}
	return f
}

var (
	posixFigures = figuresOf(POSIX, "POSIX_", "_", calls{"OPENS", "READS", "WRITES", "SEEKS", "STATS", "FSYNCS FDSYNCS",
		"", "BYTES_READ", "BYTES_WRITTEN", "CONSEC_READS", "CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES",
		"FILE_NOT_ALIGNED", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "FILE_ALIGNMENT"}, fileTimes)
	mpiioFigures = figuresOf(MPIIO, "MPIIO_", "_AGG_", calls{mpiOpens, mpiReads, mpiWrites, "", "", "SYNCS", together,
		"BYTES_READ", "BYTES_WRITTEN"}, fileTimes)
	stdioFigures = figuresOf(STDIO, "STDIO_", "_", calls{"OPENS", "READS", "WRITES", "SEEKS", "", "FLUSHES", "",
		"BYTES_READ", "BYTES_WRITTEN", "", "", "", "", "", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN"}, fileTimes)

	// Of formats 1.x and 2.x.
	combinedPOSIX = figuresOf(Combined, "CP_", "_", calls{"POSIX_OPENS", "POSIX_READS", "POSIX_WRITES", "POSIX_SEEKS",
		"POSIX_STATS", "POSIX_FSYNCS POSIX_FDSYNCS", "", "BYTES_READ", "BYTES_WRITTEN", "CONSEC_READS",
		"CONSEC_WRITES", "SEQ_READS", "SEQ_WRITES", "FILE_NOT_ALIGNED", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN"},
		combinedTimes("POSIX"))
	combinedSTDIO = figuresOf(Combined, "CP_", "_", calls{"POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES",
		"POSIX_FSEEKS", "", "", "", "BYTES_READ", "BYTES_WRITTEN", "CONSEC_READS", "CONSEC_WRITES", "SEQ_READS",
		"SEQ_WRITES", "FILE_NOT_ALIGNED", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN"}, combinedTimes("POSIX"))
	combinedMPIIO = figuresOf(Combined, "CP_", "_AGG_", calls{mpiOpens, mpiReads, mpiWrites, "", "", "SYNCS", together,
		"BYTES_READ", "BYTES_WRITTEN", "", "", "", "", "FILE_NOT_ALIGNED", "MAX_BYTE_READ", "MAX_BYTE_WRITTEN"},
		combinedTimes("MPI"))
	combinedDevice = slices.Index(fixed[Combined].ints, "CP_DEVICE")
)

// io reads an interface's figures off a record.
func (f *figures) io(rec *Record) *IO {
	o := &IO{SizeRead: unsized(), SizeWrite: unsized()}
	for i, to := range o.counts() {
		*to = NotRecorded
		known := false
		for _, place := range f.counts[i] {
			if n := rec.Counters[place]; n >= 0 && known {
				*to += n
			} else if n >= 0 {
				*to, known = n, true
			} else if len(f.counts[i]) == 1 {
				*to = n // as it is, also below 0: the log is then partial
			}
		}
	}
	for i, to := range o.times() {
		if *to = NotRecorded; f.times[i] >= 0 {
			*to = rec.FCounters[f.times[i]]
		}
	}
	if f.read >= 0 {
		copy(o.SizeRead[:], rec.Counters[f.read:])
		copy(o.SizeWrite[:], rec.Counters[f.write:])
	}
	if f.access >= 0 {
		o.oneMiB = exactly1MiB(rec.Counters[f.access:])
	}
	o.setRank(rec.Rank, rec.FCounters[f.slowest], rec.Counters[f.ranks:], rec.FCounters[f.variance])
	return o
}

// combinedIO takes a record of formats 1.x and 2.x apart. The record has one set of byte counts and
// times for all interfaces: they are given to POSIX, or to stdio where there are no POSIX calls, and the
// counts of bytes to MPI-IO too where that was used. An interface that was not used is nil.
func combinedIO(rec *Record) (posix, stdio, mpiio *IO) {
	if posix = combinedPOSIX.io(rec); posix.Opens <= 0 && posix.Stats <= 0 {
		posix = nil
	}
	if stdio = combinedSTDIO.io(rec); stdio.Opens <= 0 {
		stdio = nil
	} else if posix != nil {
		stdio.BytesRead, stdio.BytesWritten = NotRecorded, NotRecorded
		stdio.SizeRead, stdio.SizeWrite = unsized(), unsized()
	}
	if mpiio = combinedMPIIO.io(rec); mpiio.Opens <= 0 {
		return posix, stdio, nil
	}
	mpiio.oneMiB = 0
	return posix, stdio, mpiio
}
