package logread

import (
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"fairway/collector/logs/darshan"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

// Darshan reads a Darshan log of any known version into a job, its files and their names. Bytes and requests of each
// direction are those of the layer that saw more: POSIX and stdio, or MPI-IO, which reads and writes through POSIX.
// Times are those of the layer that took longer, which is the one that the program waits for.
func Darshan(in *io.SectionReader, id int64) (*iolog.Log, error) {
	from, err := darshan.Read(in, in.Size())
	if from == nil || err != nil && len(from.Files) == 0 && len(from.Heatmaps) == 0 {
		return nil, err
	}
	j := jobOf(&from.Header, id)
	addHeat(&j, from.Heatmaps)
	l := &iolog.Log{Kind: "darshan"}
	c := clockOf(from)
	for i := range from.Files {
		f := &from.Files[i]
		if f.Pseudo() {
			continue
		}
		row := fileOf(f, &j, c)
		add(&j, &row)
		l.JobFiles = append(l.JobFiles, row)
		l.Files = append(l.Files, iolog.File{ID: row.File, Path: f.Name, Mount: f.Mount, FS: f.FS})
	}
	if err != nil {
		l.Problem, j.Partial = err.Error(), true
	}
	l.Jobs = []iolog.Job{j}
	return l, nil
}

func jobOf(h *darshan.Header, id int64) iolog.Job {
	exe, _, _ := strings.Cut(h.Job.Exe, " ")
	j := iolog.Job{
		Log: id, UID: h.Job.UID, Exe: h.Job.Exe, Procs: h.Job.NProcs, HeatSeconds: math.NaN(), Notes: h.Notes(),
		Start: h.Job.Start.UTC(), End: h.Job.End.UTC(), RunSeconds: h.Job.RunSeconds, SizeReads: make([]int64, 10),
		SizeWrites: make([]int64, 10),
	}
	if h.Job.JobID > 0 {
		j.JobID = string(topology.JobOf(strconv.FormatInt(h.Job.JobID, 10)))
	}
	if exe != "" {
		j.App = path.Base(exe)
	}
	if j.End.Before(j.Start) {
		j.RunSeconds = math.NaN()
	}
	for _, m := range h.Modules {
		j.Partial = j.Partial || m.Partial
		if !m.Read {
			j.Skipped = append(j.Skipped, m.Module.String())
		}
	}
	return j
}

// clock turns a log's times into seconds from the job's start to its end.
type clock struct{ zero, end float64 }

// graceSeconds are what a log's times may exceed its run: the clocks of nodes and whole seconds differ by as much.
const graceSeconds = 2

// clockOf reads a log's clock: of formats before 2.03 times do not count from the start of the job, but the first one
// is not much later.
func clockOf(l *darshan.Log) clock {
	c := clock{end: math.MaxFloat64}
	if !l.Job.End.Before(l.Job.Start) && l.Job.RunSeconds > 0 {
		c.end = l.Job.RunSeconds + graceSeconds
	}
	if l.Version >= "2.03" {
		return c
	}
	first := math.Inf(1)
	for i := range l.Files {
		for _, o := range []*darshan.IO{l.Files[i].POSIX, l.Files[i].STDIO, l.Files[i].MPIIO} {
			if o == nil {
				continue
			}
			for _, s := range []darshan.Span{o.Open, o.Read, o.Write} {
				if s.Start > 0 {
					first = min(first, s.Start)
				}
			}
		}
	}
	if first > c.end && !math.IsInf(first, 1) {
		c.zero = first
	}
	return c
}

// bound is a span within the job's run. A time that is missing, or lies outside, costs nothing but itself.
func (c clock) bound(s darshan.Span) (start, end float64) {
	start, end = s.Start-c.zero, s.End-c.zero
	if !(start >= 0 && start <= c.end) {
		start = 0
	}
	if !(s.End > 0 && end >= start && end <= c.end) {
		if end = c.end - graceSeconds; c.end == math.MaxFloat64 {
			end = start
		}
	}
	return start, max(start, end)
}

// fileOf makes a file's row, and counts its requests by size into the job.
func fileOf(f *darshan.File, j *iolog.Job, c clock) iolog.JobFile {
	none := math.NaN()
	row := iolog.JobFile{
		Log: j.Log, File: int64(f.ID), JobID: j.JobID, ReadStart: none, ReadEnd: none, WriteStart: none, WriteEnd: none,
		OpenStart: none, CloseEnd: none, TracedRead: none, TracedWrite: none,
		UsesPosix: f.POSIX != nil, UsesStdio: f.STDIO != nil, UsesMPIIO: f.MPIIO != nil, SlowestRank: -1,
	}
	layout(&row, f)
	if m := f.MPIIO; m != nil {
		row.MPIIOOps, row.CollectiveOps = known(m.Reads)+known(m.Writes), known(m.CollectiveOps)
		row.UsesCollective = row.CollectiveOps > 0
		row.MPIIORead, row.MPIIOWritten = known(m.BytesRead), known(m.BytesWritten)
	}
	if l := f.Library; l != nil {
		row.Library, row.LibraryReads, row.LibraryWrites = l.Name, l.Reads, l.Writes
		row.LibraryRead, row.LibraryWritten = l.BytesRead, l.BytesWritten
		row.LibraryCollective, row.LibraryNonblocking = l.Collective, l.Nonblocking
	}
	fs, mpi := layerOf(layerFS, f.POSIX, f.STDIO), layerOf(layerMPIIO, f.MPIIO)
	if len(fs.io) == 0 && len(mpi.io) == 0 {
		fs = tracedLayer(f)
	}
	addTimes(&row, fs, mpi, c)
	addCounts(&row, j, fs, mpi, c)
	addTrace(&row, f, c)
	return row
}

// known is 0 for a counter that the log's version does not have.
func known(n int64) int64 { return max(0, n) }

// layout takes the targets of the components that exist, and the striping of the one that holds most of the bytes that
// were touched.
func layout(row *iolog.JobFile, f *darshan.File) {
	if f.Components == nil {
		return
	}
	var touched int64 = 1
	for _, o := range []*darshan.IO{f.POSIX, f.STDIO} {
		if o != nil {
			touched = max(touched, o.MaxByteRead+1, o.MaxByteWritten+1)
		}
	}
	row.OSTs = []int32{}
	var most, none int64 = -1, 0
	row.StripeCount = &none
	for i := range f.Components {
		c := &f.Components[i]
		if !c.Instantiated() {
			continue
		}
		end := c.ExtentEnd
		if end < 0 {
			end = math.MaxInt64
		}
		if held := min(touched, end) - max(0, c.ExtentStart); held > most {
			most = held
			row.StripeSize, row.StripeCount, row.StripeOffset = &c.StripeSize, &c.StripeCount, c.StripeOffset
		}
		for _, ost := range c.OSTs {
			if ost >= 0 && ost <= math.MaxInt32 {
				row.OSTs = append(row.OSTs, int32(ost))
			}
		}
	}
	slices.Sort(row.OSTs)
	row.OSTs = slices.Compact(row.OSTs)
}

// add sums a file into its job. One that was only looked at was not opened.
func add(j *iolog.Job, f *iolog.JobFile) {
	if f.Opens > 0 || f.BytesRead+f.BytesWritten > 0 {
		j.Files++
		movers := f.Procs
		if f.Movers != nil {
			movers = *f.Movers
		}
		if movers > 1 {
			j.SharedFiles++
		}
		if movers > 0 && movers == j.Procs {
			j.FullFiles++
		}
	}
	for _, c := range []struct {
		to   *int64
		from int64
	}{
		{&j.BytesRead, f.BytesRead}, {&j.BytesWritten, f.BytesWritten}, {&j.Reads, f.Reads}, {&j.Writes, f.Writes},
		{&j.PosixReads, f.PosixReads}, {&j.PosixWrites, f.PosixWrites}, {&j.SeqReads, f.SeqReads},
		{&j.SeqWrites, f.SeqWrites},
		{&j.ConsecReads, f.ConsecReads}, {&j.ConsecWrites, f.ConsecWrites},
	} {
		*c.to += c.from
	}
	j.MetaSeconds += f.MetaSeconds
	j.UsesPosix = j.UsesPosix || f.UsesPosix
	j.UsesStdio = j.UsesStdio || f.UsesStdio
	j.UsesMPIIO = j.UsesMPIIO || f.UsesMPIIO
	j.UsesCollective = j.UsesCollective || f.UsesCollective
}
