package rootcause

import (
	"fmt"

	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

// Op is a direction of I/O.
type Op string

// The directions. IOMiner explains reads and writes each by themselves; Both has an interval for each
// direction of each file.
const (
	Read  Op = "read"
	Write Op = "write"
	Both  Op = "both"
)

// FromLog makes the judge's input of one job of a log; names are the paths by file, and may lack some.
func FromLog(j *iolog.Job, rows []iolog.JobFile, names map[int64]string, op Op) Job {
	out := Job{Procs: Known(j.Procs)}
	for i := range rows {
		r := &rows[i]
		out.Metadata.add(r)
		name := names[r.File]
		if name == "" {
			name = fmt.Sprintf("file %016x", uint64(r.File))
		}
		if op != Write && r.ReadEnd >= r.ReadStart {
			f := common(r, name)
			f.Start, f.End, f.Bytes = r.ReadStart, r.ReadEnd, float64(r.BytesRead)
			f.Small, f.Nonconsec = share(r.SmallReads, r.PosixReads), share(r.PosixReads-r.ConsecReads, r.PosixReads)
			if op == Both {
				f.Name += " (read)"
			}
			out.Files = append(out.Files, f)
		}
		if op != Read && r.WriteEnd >= r.WriteStart {
			f := common(r, name)
			f.Written = true
			f.Start, f.End, f.Bytes = r.WriteStart, r.WriteEnd, float64(r.BytesWritten)
			f.Small, f.Nonconsec = share(r.SmallWrites, r.PosixWrites),
				share(r.PosixWrites-r.ConsecWrites, r.PosixWrites)
			if op == Both {
				f.Name += " (write)"
			}
			out.Files = append(out.Files, f)
		}
	}
	return out
}

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
	m.Files, m.Opens = m.Files+1, m.Opens+r.Opens
	m.Seconds += Known(r.MetaSeconds).or0()
	m.DataSeconds += Known(r.ReadSeconds).or0() + Known(r.WriteSeconds).or0()
}

// common is what a file has in both directions.
func common(r *iolog.JobFile, name string) File {
	f := File{Name: name, Collective: 0, Procs: Known(r.Procs), OSTs: Unknown()}
	if r.UsesCollective {
		f.Collective = 1
	}
	if r.StripeCount != nil {
		f.OSTs = Known(*r.StripeCount)
	}
	for _, ost := range r.OSTs {
		f.Targets = append(f.Targets, TargetOf(ost))
	}
	return f
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
