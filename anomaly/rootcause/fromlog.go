package rootcause

import (
	"fmt"
	"math"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

// Op is a direction of I/O.
type Op string

// The directions. IOMiner explains reads and writes each by themselves; Both has an interval for each
// direction of each file, and one for its metadata.
const (
	Read  Op = "read"
	Write Op = "write"
	Both  Op = "both"
)

// FromLog makes the judge's input of one job of a log; names are the paths by file, and may lack some.
func FromLog(j *iolog.Job, rows []iolog.JobFile, names map[int64]string, op Op) Job {
	out := Job{Procs: Known(j.Procs), RunSeconds: Known(j.RunSeconds), Notes: notesOf(j, rows)}
	heatRead, heatWrite := heatTimes(j.HeatRead, j.HeatSeconds), heatTimes(j.HeatWrite, j.HeatSeconds)
	for i := range rows {
		r := &rows[i]
		out.Metadata.add(r)
		name := names[r.File]
		if name == "" {
			name = fmt.Sprintf("file %016x", uint64(r.File))
		}
		uses := []File{}
		if op != Write && r.ReadEnd >= r.ReadStart {
			uses = append(uses, readsOf(r, j, heatRead))
		}
		if op != Read && r.WriteEnd >= r.WriteStart {
			uses = append(uses, writesOf(r, j, heatWrite))
		}
		if op == Both && r.MetaSeconds > 0 {
			uses = append(uses, metadataOf(r, j))
		}
		for _, f := range uses {
			suffix := f.Name
			if f.Name = name; op == Both {
				f.Name += suffix
			}
			out.Files = append(out.Files, f)
		}
	}
	return out
}

// heatTimes are the starts and ends, in turn, of the times in which a heat map has bytes.
func heatTimes(bins []int64, width float64) (out []float64) {
	for i, bytes := range bins {
		start := float64(i) * width
		switch last := len(out) - 1; {
		case bytes <= 0:
		case last > 0 && i > 0 && bins[i-1] > 0:
			out[last] = start + width
		case len(out) >= maxHeat:
			return nil
		default:
			out = append(out, start, start+width)
		}
	}
	return out
}

// maxHeat bounds the times of a heat map; the runtime writes fewer bins.
const maxHeat = 2048

func readsOf(r *iolog.JobFile, j *iolog.Job, heat []float64) File {
	f := common(r, j, " (read)")
	f.Calls.Heat = heat
	f.Start, f.End, f.Bytes = r.ReadStart, r.ReadEnd, float64(r.BytesRead)
	u := &f.Calls.Above
	u.MPIIOBytes, u.Accesses, u.Bytes = float64(r.MPIIORead), r.LibraryReads, float64(r.LibraryRead)
	d := oneWay{r.Reads, r.PosixReads, r.SmallReads, r.SeqReads, r.ConsecReads, r.BytesRead, r.ReadExtent}
	d.patterns(r, &f)
	f.setTime(r, r.ReadSeconds, r.SlowestReadSeconds, r.ReadTrace, r.TracedRead)
	return f
}

func writesOf(r *iolog.JobFile, j *iolog.Job, heat []float64) File {
	f := common(r, j, " (write)")
	f.Calls.Heat = heat
	f.Written = true
	f.Start, f.End, f.Bytes = r.WriteStart, r.WriteEnd, float64(r.BytesWritten)
	u := &f.Calls.Above
	u.MPIIOBytes, u.Accesses, u.Bytes = float64(r.MPIIOWritten), r.LibraryWrites, float64(r.LibraryWritten)
	d := oneWay{r.Writes, r.PosixWrites, r.SmallWrites, r.SeqWrites, r.ConsecWrites, r.BytesWritten, r.WrittenExtent}
	d.patterns(r, &f)
	f.setTime(r, r.WriteSeconds, r.SlowestWriteSeconds, r.WriteTrace, r.TracedWrite)
	return f
}

// metadataOf has no requests: its factors are not known.
func metadataOf(r *iolog.JobFile, j *iolog.Job) File {
	f := common(r, j, " (metadata)")
	f.Collective, f.OSTs, f.Targets, f.Procs = Unknown(), Unknown(), nil, Known(r.Procs)
	f.Small, f.Nonconsec = Unknown(), Unknown()
	f.Calls.Metadata = true
	f.Start, f.End = Known(r.OpenStart).or0(), r.CloseEnd
	if !(f.End > f.Start) {
		f.End = j.RunSeconds
	}
	f.setTime(r, r.MetaSeconds, r.SlowestMetaSeconds, nil, 0)
	return f
}

// setTime takes the time of a direction's calls: as traced, else of the slowest process, never more than of all nor
// than its interval. Rows without a layer are of archives that did not have it, and know the sum alone.
func (f *File) setTime(r *iolog.JobFile, all, slowest float64, trace []float64, traced float64) {
	c := f.Calls
	c.AllSeconds = Known(all).or0()
	c.Seconds = c.AllSeconds
	switch {
	case r.TimedBy == "" && c.AllSeconds == 0:
		f.Calls = nil
		return
	case r.TimedBy == "" && c.Rank != AllRanks:
		c.Rank = unknownRank(r.File)
	case r.TimedBy == "":
	case len(trace) > 0 && traced > 0:
		c.Trace, c.Seconds = trace, min(traced, c.AllSeconds)
	case Known(slowest).OK():
		c.Seconds = min(c.Seconds, slowest)
	}
	if !(f.End > f.Start) && c.Seconds > 0 {
		f.End = f.Start + c.Seconds
	}
	c.Seconds = min(c.Seconds, max(0, f.End-f.Start))
}

// unknownRank stands for the process of a file that one had to itself: another one than of each other file.
func unknownRank(file int64) int64 {
	if file < AllRanks {
		return file
	}
	return AllRanks - 1 - max(0, file)
}

// oneWay are the counts of one direction.
type oneWay struct{ requests, posix, small, seq, consec, bytes, extent int64 }

// patterns says how the requests of a direction were made.
func (d oneWay) patterns(r *iolog.JobFile, f *File) {
	whole := d.posix
	if r.CountedBy == mpiio {
		whole = d.requests
	}
	f.Small = share(d.small, whole)
	f.Calls.Requests, f.Calls.Random = d.requests, Unknown()
	if d.extent > 0 {
		f.Calls.Again = Known(f.Calls.Above.asked(float64(d.bytes))) / Known(d.extent)
	}
	if r.CountedBy == mpiio {
		f.Nonconsec = Unknown() // POSIX saw less
		return
	}
	// The first request of each process has none before it.
	after := d.posix - min(d.posix, int64(max(1, f.Procs.or0())))
	f.Nonconsec = share(after-d.consec, after)
	f.Calls.Random = share(after-d.seq, after)
}

const mpiio = "MPI-IO"

// ByDirection are the reads of a log's job and its writes, each for itself. Metadata is of no direction: it is with the
// writes, where there are some, and not in both.
func ByDirection(j *iolog.Job, rows []iolog.JobFile, names map[int64]string) (read, write Job) {
	read, write = FromLog(j, rows, names, Read), FromLog(j, rows, names, Write)
	if len(write.Files) > 0 {
		read.Metadata = Metadata{}
	}
	return read, write
}

// add counts a file of which the log has times.
func (m *Metadata) add(r *iolog.JobFile) {
	if r.Opens > 0 || r.BytesRead+r.BytesWritten > 0 {
		m.Files++
	}
	m.Opens += r.Opens
	m.Reopens += max(0, r.Opens-max(1, r.Procs))
	m.Requests += r.Reads + r.Writes
	m.Seconds += Known(r.MetaSeconds).or0()
	m.SlowestSeconds = max(m.SlowestSeconds, Known(r.SlowestMetaSeconds).or0())
	m.DataSeconds += Known(r.ReadSeconds).or0() + Known(r.WriteSeconds).or0()
}

// common is what a file has in both directions. Its processes are those that moved its bytes, where that is known.
func common(r *iolog.JobFile, j *iolog.Job, suffix string) File {
	f := File{Name: suffix, Procs: Known(r.Procs), OSTs: Unknown(), Calls: &Calls{Rank: r.SlowestRank,
		Layer: r.TimedBy, Opened: r.Procs, Unaligned: Unknown(), Independent: Unknown(), Again: Unknown()}}
	accesses := r.LibraryReads + r.LibraryWrites
	f.Calls.Above = Above{Library: r.Library, Collective: share(r.LibraryCollective, accesses),
		Nonblocking: share(r.LibraryNonblocking, accesses)}
	if r.Movers != nil && *r.Movers > 0 {
		f.Procs = Known(*r.Movers)
	}
	if r.Procs > 1 && 2*r.Procs > j.Procs {
		f.Calls.Rank = AllRanks
	}
	f.Collective = share(r.CollectiveOps, r.MPIIOOps)
	if r.MPIIOOps == 0 {
		f.Collective = 0
		if r.UsesCollective { // of an archive that has no counts
			f.Collective = 1
		}
	} else {
		f.Calls.Independent = 1 - f.Collective
	}
	if r.Unaligned != nil && r.Alignment != nil {
		f.Calls.Unaligned, f.Calls.Alignment = share(*r.Unaligned, r.PosixReads+r.PosixWrites), *r.Alignment
	}
	if r.StripeCount != nil {
		f.OSTs = Known(*r.StripeCount)
	}
	for _, ost := range r.OSTs {
		f.Targets = append(f.Targets, TargetOf(ost))
	}
	return f
}

// notesOf are what the log lacks, a sentence each.
func notesOf(j *iolog.Job, rows []iolog.JobFile) []string {
	var out []string
	for _, n := range j.Notes {
		out = append(out, "Of the log: "+n+".")
	}
	if len(j.Notes) == 0 && j.Partial {
		out = append(out, "The log is cut off: what it counts are lower bounds.")
	}
	if len(rows) > 0 || len(j.HeatRead)+len(j.HeatWrite) == 0 {
		return out
	}
	var read, written float64
	first, last, bins := math.MaxInt, -1, 0
	for i := range max(len(j.HeatRead), len(j.HeatWrite)) {
		before := read + written
		if i < len(j.HeatRead) {
			read += float64(j.HeatRead[i])
		}
		if i < len(j.HeatWrite) {
			written += float64(j.HeatWrite[i])
		}
		if read+written > before {
			first, last, bins = min(first, i), i, bins+1
		}
	}
	if last < 0 {
		return out
	}
	return append(out, fmt.Sprintf("The log has no counters of files, but its heat map says that %s were read and %s "+
		"written from %s to %s of the job, in %s at most.", anomaly.Size(read), anomaly.Size(written),
		secs(float64(first)*j.HeatSeconds), secs(float64(last+1)*j.HeatSeconds), secs(float64(bins)*j.HeatSeconds)))
}

// TargetOf is the name that Lustre gives a target after the file system's own, such as OST0014 for 20.
func TargetOf(index int32) topology.TargetID { return topology.TargetID(fmt.Sprintf("OST%04x", index)) }

// share is part of whole, unknown without a whole. Counters of a damaged log may say anything.
func share(part, whole int64) Known {
	if whole <= 0 {
		return Unknown()
	}
	return min(1, max(0, Known(part)/Known(whole)))
}

// Summarise is the explanation of one direction as the archive keeps it; NaN where unknown.
func Summarise(j *iolog.Job, rows []iolog.JobFile, op Op) iolog.Factors {
	a := Explain(FromLog(j, rows, nil, op), Defaults())
	out := iolog.Factors{
		IOSeconds: a.IOTime, BytesPerSec: float64(a.Bandwidth), CriticalFiles: int64(len(a.Critical)),
		LongestShare: float64(Unknown()),
		Small:        float64(a.Factors.Small), Nonconsec: float64(a.Factors.Nonconsec),
		Collective: float64(a.Factors.Collective),
		OSTs:       float64(a.Factors.OSTs), ProcsPerOST: float64(a.Factors.ProcsPerOST),
	}
	if a.IOTime > 0 {
		out.LongestShare = longest(&a).Exclusive / a.IOTime
	}
	return out
}
